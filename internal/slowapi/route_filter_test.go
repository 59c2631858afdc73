// Tests of the filters of every route: the table of docs/reference/twilio.md.
package slowapi_test

import (
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/internal/slowapi"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/slowapitest"
	"understudy/internal/slowapi/world"
)

// documented reads the table of docs/reference/twilio.md: the filters of every path, a star
// for each SID in it.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/twilio.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(cells[1], ".json") {
			continue
		}
		first, second, two := strings.Cut(cells[3], ";")
		for n, path := range documentedPaths(cells[1]) {
			found[path] = documentedFilters(first)
			if two && n > 0 {
				found[path] = documentedFilters(second)
			}
		}
	}
	return found
}

// documentedPaths reads the first cell of a row: whole paths, and those that go
// on where the one before them ends.
func documentedPaths(cell string) (paths []string) {
	cell = regexp.MustCompile(`\{[A-Z]{2}\}`).ReplaceAllString(cell, "*")
	alternatives := regexp.MustCompile(`\{([^}]*)\}`)
	if inner := alternatives.FindStringSubmatch(cell); inner != nil {
		for one := range strings.SplitSeq(inner[1], ",") {
			paths = append(paths, documentedPaths(strings.Replace(cell, inner[0], strings.TrimSpace(one), 1))...)
		}
		return paths
	}
	base := ""
	for _, path := range strings.FieldsFunc(cell, func(c rune) bool { return strings.ContainsRune(", ()+", c) }) {
		if path[0] == '~' || strings.HasPrefix(path, format.Version) {
			base = strings.TrimSuffix(path, ".json")
			path = base
		} else {
			path = base + strings.TrimSuffix(path, ".json")
		}
		paths = append(paths, path+".json")
	}
	return paths
}

// documentedFilters reads the last cell of a row.
func documentedFilters(cell string) (filters []string) {
	cell = regexp.MustCompile(`\([^)]*\)`).ReplaceAllString(cell, "")
	cell = regexp.MustCompile(`(\w+)All/Local/Foreign(\w+)`).ReplaceAllString(cell, "${1}All$2,${1}Local$2,${1}Foreign$2")
	last := ""
	for part := range strings.SplitSeq(cell, ",") {
		switch part = strings.TrimSpace(part); part {
		case "none":
			continue
		case "<", ">":
			part = last + part
		default:
			last = part
		}
		filters = append(filters, part)
	}
	return filters
}

// fieldOf is where a filter's value shows in a record.
var fieldOf = map[string]string{
	"To": "to", "From": "from", "ParentCallSid": "parent_call_sid", "Status": "status", "StartTime": "start_time",
	"EndTime": "end_time", "DateSent": "date_sent", "FriendlyName": "friendly_name", "Beta": "beta",
	"PhoneNumber": "phone_number", "Origin": "origin", "DateCreated": "date_created", "DateUpdated": "date_updated",
	"CallSid": "call_sid", "ConferenceSid": "conference_sid", "Muted": "muted", "Hold": "hold", "Coaching": "coaching",
	"Log": "log", "MessageDate": "message_date", "CustomerName": "customer_name", "EmergencyEnabled": "emergency_enabled",
	"IsoCountry": "iso_country",
}

// widening filters show more instead of less; they have tests of their own.
var widening = []string{"IncludeSoftDeleted"}

func TestEveryDocumentedFilterFindsSomeRecordsAndNotOthers(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 400})
	below := r.Page("/2010-04-01/Accounts.json").Records.SIDs()[0]
	r.Write("POST", "/2010-04-01/Accounts/"+below+".json", url.Values{"Status": {"suspended"}}, 200)
	table := documented(t)
	if len(table) < 50 {
		t.Fatalf("only %d paths in the table", len(table))
	}
	for _, one := range slowapi.Routes() {
		if one.Instance {
			continue
		}
		path := strings.Replace(one.Pattern, "Accounts/*/", "~/", 1)
		path = strings.Replace(path, "Accounts", "/2010-04-01/Accounts", 1) + ".json"
		filters, there := table[path]
		if !there {
			t.Errorf("%s is not in the table", path)
			continue
		}
		if !slices.Equal(one.Filters, filters) {
			t.Errorf("%s: filters %v, the table has %v", path, one.Filters, filters)
		}
		if one.Parent != nil {
			continue // which TestListsOfARecord tries
		}
		if one.Kind == nil {
			continue // which have tests of their own
		}
		target := strings.Replace(path, "~", root, 1)
		all := r.Walk(target+"?PageSize=1000", nil)
		for _, key := range filters {
			if slices.Contains(widening, key) {
				continue
			}
			t.Run(path+" "+key, func(t *testing.T) { r := r; r.T = t; tryFilter(r, target, key, all) })
		}
	}
}

// tryFilter asks for a value that some records have and compares with what the
// unfiltered list says.
func tryFilter(r slowapitest.API, target, key string, all []record) {
	value := someValue(key, all[len(all)/2:])
	if value == "" {
		r.T.Fatalf("no record has a %s", key)
	}
	asked, want := wanted(r.T, key, value, all)
	got := called(r.Walk(target+"?PageSize=77&"+url.QueryEscape(key)+"="+url.QueryEscape(asked), nil))
	if !slices.Equal(got, want) {
		r.T.Errorf("%s=%s: %d records, want %d", key, asked, len(got), len(want))
	}
	if len(want) == 0 || len(want) == len(all) && !narrowed(target) {
		r.T.Errorf("%s=%s tells nothing apart: %d of %d", key, asked, len(want), len(all))
	}
	other := nobody(key, value)
	none := r.Walk(target+"?"+url.QueryEscape(key)+"="+url.QueryEscape(other), nil)
	if len(none) != 0 && len(none) == len(all) {
		r.T.Errorf("%s=%s finds all %d", key, other, len(none))
	}
}

// someValue is what the first record that has it shows where a filter looks.
func someValue(key string, all []record) string {
	for _, one := range all {
		if value := one[fieldOf[strings.TrimRight(key, "<>")]]; value != nil {
			return fmt.Sprint(value)
		}
	}
	return ""
}

// called is what records are called: most by a SID, participants by their call.
func called(records []record) (all []string) {
	for _, one := range records {
		name, has := one["sid"].(string)
		if !has {
			name = one["call_sid"].(string)
		}
		all = append(all, name)
	}
	return all
}

// wanted is how a value is asked for, and the records a filter must find.
func wanted(t *testing.T, key, value string, all []record) (asked string, want []string) {
	t.Helper()
	name := strings.TrimRight(key, "<>")
	field := fieldOf[name]
	matches := func(one record) bool { return fmt.Sprint(one[field]) == value }
	asked = value
	if clock, err := time.Parse(time.RFC1123Z, value); err == nil {
		asked = clock.Format(time.RFC3339)
		matches = func(one record) bool {
			if one[field] == nil {
				return false
			}
			at, err := time.Parse(time.RFC1123Z, one[field].(string))
			if err != nil {
				t.Fatal(err)
			}
			switch strings.TrimPrefix(key, name) {
			case "<":
				return !at.After(clock)
			case ">":
				return !at.Before(clock)
			}
			return at.Equal(clock)
		}
	}
	for _, one := range all {
		if matches(one) {
			want = append(want, called([]record{one})...)
		}
	}
	return asked, want
}

// TestListsOfARecord tries the lists that belong to one record: each filter
// finds what it should in the lists of all of them, and tells some apart.
func TestListsOfARecord(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 200, Quirks: []string{world.ParticipantsKept}})
	for _, one := range slowapi.Routes() {
		if one.Parent == nil || one.Instance {
			continue
		}
		path := strings.Replace(one.Pattern, "Accounts/*/", "", 1)
		t.Run(path, func(t *testing.T) {
			r := r
			r.T = t
			parents, last, _ := strings.Cut(path, "/*/")
			met, unmet, rows := map[string]int{}, map[string]int{}, 0
			for _, owner := range called(r.Walk(root+"/"+parents+".json?PageSize=1000", nil)) {
				target := root + "/" + parents + "/" + owner + "/" + last + ".json"
				all := r.Walk(target, nil)
				rows += len(all)
				for _, key := range one.Filters {
					some, others := tryHere(r, target, key, all)
					met[key], unmet[key] = met[key]+some, unmet[key]+others
				}
			}
			if rows == 0 {
				t.Error("all these lists are empty")
			}
			for _, key := range one.Filters {
				if met[key] == 0 || unmet[key] == 0 {
					t.Errorf("%s: %d records met it, %d did not", key, met[key], unmet[key])
				}
			}
		})
	}
}

// tryHere asks one list for the value its last record has, and for a time also
// a second earlier and later; it counts the records that met that and that did not.
func tryHere(r slowapitest.API, target, key string, all []record) (met, unmet int) {
	if len(all) == 0 {
		return 0, 0
	}
	values := []string{someValue(key, all[len(all)-1:])}
	if at, err := time.Parse(time.RFC1123Z, values[0]); err == nil {
		values = append(values, at.Add(-time.Second).Format(time.RFC1123Z), at.Add(time.Second).Format(time.RFC1123Z))
	}
	if key == "Log" {
		values = []string{"0", "1"}
	}
	for _, value := range values {
		asked, want := wanted(r.T, key, value, all)
		got := called(r.Walk(target+"?PageSize=2&"+url.QueryEscape(key)+"="+url.QueryEscape(asked), nil))
		if !slices.Equal(got, want) {
			r.T.Errorf("%s?%s=%s: %v, want %v", target, key, asked, got, want)
		}
		met, unmet = met+len(want), unmet+len(all)-len(want)
	}
	return met, unmet
}

// narrowed lists are so short that a filter may find everything in them.
func narrowed(target string) bool {
	return strings.HasSuffix(target, "/Local.json") || strings.HasSuffix(target, "/Mobile.json") || strings.HasSuffix(target, "/TollFree.json")
}

// absent is a value few or no records have that do not have the one given.
func nobody(key, value string) string {
	switch {
	case value == "true":
		return "false"
	case value == "false":
		return "true"
	case key == "Origin":
		return "hosted"
	case strings.HasSuffix(key, "<"):
		return "1999-01-01"
	case strings.HasSuffix(key, ">"):
		return "2199-01-01"
	case strings.HasSuffix(key, "Time"), strings.Contains(key, "Date"):
		return "1999"
	}
	return "nobody"
}
