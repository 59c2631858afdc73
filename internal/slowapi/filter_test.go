// Tests of filters: the table of docs/twilio.md, the edges, the forms of dates.
package slowapi

import (
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/world"
)

// documented reads the table of docs/twilio.md: the filters of every path, a star
// for each SID in it.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/twilio.md")
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
	r := start(t, Options{Records: 400})
	below := sids(r.page("/2010-04-01/Accounts.json").records)[0]
	r.write("POST", "/2010-04-01/Accounts/"+below+".json", url.Values{"Status": {"suspended"}}, 200)
	table := documented(t)
	if len(table) < 50 {
		t.Fatalf("only %d paths in the table", len(table))
	}
	for i := range routes {
		one := &routes[i]
		if one.instance {
			continue
		}
		path := strings.Replace(one.pattern, "Accounts/*/", "~/", 1)
		path = strings.Replace(path, "Accounts", "/2010-04-01/Accounts", 1) + ".json"
		filters, there := table[path]
		if !there {
			t.Errorf("%s is not in the table", path)
			continue
		}
		var ours []string
		for _, f := range one.listFilters() {
			ours = append(ours, f.Key)
		}
		if !slices.Equal(ours, filters) {
			t.Errorf("%s: filters %v, the table has %v", path, ours, filters)
		}
		if one.parent != nil {
			continue // which TestListsOfARecord tries
		}
		if one.kind == nil {
			continue // which have tests of their own
		}
		target := strings.Replace(path, "~", root, 1)
		all := r.walk(target+"?PageSize=1000", nil)
		for _, key := range filters {
			if slices.Contains(widening, key) {
				continue
			}
			t.Run(path+" "+key, func(t *testing.T) { r := r; r.T = t; r.tryFilter(target, key, all) })
		}
	}
}

// tryFilter asks for a value that some records have and compares with what the
// unfiltered list says.
func (r running) tryFilter(target, key string, all []record) {
	value := someValue(key, all[len(all)/2:])
	if value == "" {
		r.Fatalf("no record has a %s", key)
	}
	asked, want := wanted(r.T, key, value, all)
	got := called(r.walk(target+"?PageSize=77&"+url.QueryEscape(key)+"="+url.QueryEscape(asked), nil))
	if !slices.Equal(got, want) {
		r.Errorf("%s=%s: %d records, want %d", key, asked, len(got), len(want))
	}
	if len(want) == 0 || len(want) == len(all) && !narrowed(target) {
		r.Errorf("%s=%s tells nothing apart: %d of %d", key, asked, len(want), len(all))
	}
	other := nobody(key, value)
	none := r.walk(target+"?"+url.QueryEscape(key)+"="+url.QueryEscape(other), nil)
	if len(none) != 0 && len(none) == len(all) {
		r.Errorf("%s=%s finds all %d", key, other, len(none))
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
	r := start(t, Options{Records: 200, Quirks: []string{world.ParticipantsKept}})
	for _, one := range routes {
		if one.parent == nil || one.instance {
			continue
		}
		path := strings.Replace(one.pattern, "Accounts/*/", "", 1)
		t.Run(path, func(t *testing.T) {
			r := r
			r.T = t
			parents, last, _ := strings.Cut(path, "/*/")
			met, unmet, rows := map[string]int{}, map[string]int{}, 0
			for _, owner := range called(r.walk(root+"/"+parents+".json?PageSize=1000", nil)) {
				target := root + "/" + parents + "/" + owner + "/" + last + ".json"
				all := r.walk(target, nil)
				rows += len(all)
				for _, f := range one.listFilters() {
					some, others := r.tryHere(target, f.Key, all)
					met[f.Key], unmet[f.Key] = met[f.Key]+some, unmet[f.Key]+others
				}
			}
			if rows == 0 {
				t.Error("all these lists are empty")
			}
			for _, f := range one.listFilters() {
				if met[f.Key] == 0 || unmet[f.Key] == 0 {
					t.Errorf("%s: %d records met it, %d did not", f.Key, met[f.Key], unmet[f.Key])
				}
			}
		})
	}
}

// tryHere asks one list for the value its last record has, and for a time also
// a second earlier and later; it counts the records that met that and that did not.
func (r running) tryHere(target, key string, all []record) (met, unmet int) {
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
		got := called(r.walk(target+"?PageSize=2&"+url.QueryEscape(key)+"="+url.QueryEscape(asked), nil))
		if !slices.Equal(got, want) {
			r.Errorf("%s?%s=%s: %v, want %v", target, key, asked, got, want)
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

func TestEveryStatusOccurs(t *testing.T) {
	r := start(t, Options{Records: 3000})
	for _, status := range []string{"queued", "ringing", "in-progress", "completed", "busy", "failed", "no-answer", "canceled"} {
		if p := r.page(root + "/Calls.json?PageSize=1&Status=" + status); len(p.records) != 1 || p.records[0]["status"] != status {
			t.Errorf("no call is %s", status)
		}
	}
	seen := map[any]bool{}
	for _, one := range r.walk(root+"/Messages.json?PageSize=1000", nil) {
		seen[one["status"]] = true
	}
	for _, status := range []string{"queued", "sent", "failed", "delivered", "undelivered", "received", "read", "partially_delivered",
		"canceled"} {
		if !seen[status] {
			t.Errorf("no message is %s; there are %v", status, seen)
		}
	}
}

func TestNumberPatterns(t *testing.T) {
	r := start(t, Options{})
	all := r.page(root + "/IncomingPhoneNumbers.json").records
	for pattern, like := range map[string]string{
		"+1415": `^\+1415`, "415*": `415\d`, "+1***22": `\+1\d\d\d22`, "*******": `\d{7}`, "888": `888`, "+44*0": `\+44\d0`, "++": `\+\+`,
	} {
		var want []string
		for _, one := range all {
			if regexp.MustCompile(like).MatchString(one["phone_number"].(string)) {
				want = append(want, one["sid"].(string))
			}
		}
		got := sids(r.page(root + "/IncomingPhoneNumbers.json?PhoneNumber=" + url.QueryEscape(pattern)).records)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", pattern, got, want)
		}
	}
	sorts := 0
	for _, path := range []string{"Local", "Mobile", "TollFree"} {
		sorts += len(r.page(root + "/IncomingPhoneNumbers/" + path + ".json").records)
	}
	if sorts != 8 || len(all) != 8 {
		t.Errorf("%d numbers in the three lists, %d in all, want 8", sorts, len(all))
	}
}

func TestEdges(t *testing.T) {
	midnight := time.Date(2026, 3, 10, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		quirk, key, value string
		want              string // of b(efore), m(idnight), n(oon), l(ast second), a(fter)
	}{
		{"", "StartTime", "2026-03-10", "lnm"},
		{"", "StartTime<", "2026-03-10", "mb"},
		{"", "StartTime>", "2026-03-10", "alnm"},
		{"", "StartTime<", "2026-03-10T12:00:00Z", "nmb"},
		{"", "StartTime>", "2026-03-10T12:00:00Z", "aln"},
		{"", "StartTime", "2026-03", "alnmb"},
		{"", "StartTime", "2026-03-10T12:00:00Z", "n"},
		{"", "EndTime<", "2026-03-10", "mb"},
		{world.EdgeExclusive, "StartTime<", "2026-03-10", "b"},
		{world.EdgeExclusive, "StartTime>", "2026-03-10", "aln"},
		{world.BeforeWholeDay, "StartTime<", "2026-03-10", "lnmb"},
		{world.OperatorRefused, "StartTime", "2026-03-10", "lnm"},
		{"", "DateSent", "2026-03-10", "lnm"},
		{"", "DateSent<", "2026-03-10", "lnmb"},
		{"", "DateSent>", "2026-03-10", "alnm"},
		{"", "DateSent<", "2026-03-10T12:00:00Z", "nmb"},
		{world.BeforeMidnight, "DateSent<", "2026-03-10", "mb"},
		{world.EdgeExclusive, "DateSent<", "2026-03-10", "b"},
		{"", "DateSent", ">=2026-03-10", "alnmb"},
	} {
		s := edgeWorld(t, c.quirk, midnight)
		list := "/Calls.json"
		if strings.HasPrefix(c.key, "Date") {
			list = "/Messages.json"
		}
		got := ""
		for _, one := range s.walk(root+list+"?"+url.QueryEscape(c.key)+"="+url.QueryEscape(c.value), nil) {
			got += one["to"].(string)[len("client:"):]
		}
		if got != c.want {
			t.Errorf("%s %s=%s: %q, want %q", c.quirk, c.key, c.value, got, c.want)
		}
	}
}

// edgeWorld has one call and one message just before, at, within, at the end of
// and after a day. Calls end the second they start.
func edgeWorld(t *testing.T, quirk string, midnight time.Time) running {
	t.Helper()
	var on []string
	if quirk != "" {
		on = []string{quirk}
	}
	r := start(t, Options{Records: 1, Quirks: on, Epoch: midnight.AddDate(-1, 0, 0)})
	clock := midnight.AddDate(-1, 0, 0)
	for _, one := range []struct {
		name string
		at   time.Duration
	}{{"b", -time.Second}, {"m", 0}, {"n", 12 * time.Hour}, {"l", 24*time.Hour - time.Second}, {"a", 24 * time.Hour}} {
		at := midnight.Add(one.at)
		r.control("/-/advance", fmt.Sprintf(`{"seconds":%d}`, int(at.Sub(clock).Seconds())), 200)
		clock = at
		r.write("POST", root+"/Calls.json", url.Values{"To": {"client:" + one.name}, "From": {"+15005550001"}}, 201)
		r.write("POST", root+"/Messages.json", url.Values{"To": {"client:" + one.name}, "Body": {"x"}}, 201)
		for range 3 {
			r.control("/-/advance", `{}`, 200)
		}
	}
	// What the seed made is out of the way.
	for _, list := range []string{"/Calls", "/Messages"} {
		for _, one := range r.walk(root+list+".json", nil) {
			if !strings.HasPrefix(fmt.Sprint(one["to"]), "client:") || len(fmt.Sprint(one["to"])) != 8 {
				r.write("DELETE", root+list+"/"+one["sid"].(string)+".json", nil, 204)
			}
		}
	}
	return r
}

func TestBadDatesAreRefused(t *testing.T) {
	r := start(t, Options{Records: 5})
	for _, bad := range []string{"yesterday", "2019-13-01", "2019-02-30", "20190808", "08/08", "2019-08-08T10:11", "1", "2019-08-08T25:00:00Z",
		"2019-08-08 MST", "-", "NaN"} {
		for _, key := range []string{"StartTime", "StartTime<", "EndTime>"} {
			status, body, _ := r.ask("GET", root+"/Calls.json?"+url.QueryEscape(key)+"="+url.QueryEscape(bad), nil)
			if status != 400 || !strings.Contains(string(body), `{"code":20001,"message":"Invalid date value."`) {
				t.Errorf("%s=%s: %d %s", key, bad, status, body)
			}
		}
	}
}

func TestQuirks(t *testing.T) {
	if _, err := New(Options{Quirks: []string{"edge"}}); err == nil || !strings.Contains(err.Error(), world.EdgeExclusive) {
		t.Errorf("an unknown quirk: %v", err)
	}
	on := func(quirk string) running { return start(t, Options{Records: 60, Quirks: []string{quirk}}) }
	status := func(r running, target string) int {
		code, _, _ := r.ask("GET", root+target, nil)
		return code
	}
	if got := status(on(world.OperatorRefused), "/Messages.json?DateSent=%3E%3D2019-08-08"); got != 400 {
		t.Errorf("%s: %d", world.OperatorRefused, got)
	}
	if got := status(on(world.SizeRefused), "/Calls.json?PageSize=1001"); got != 400 {
		t.Errorf("%s: %d", world.SizeRefused, got)
	}
	if p := on(world.SizeForgiven).page(root + "/Calls.json?PageSize=zero"); p.Size != 50 {
		t.Errorf("%s: %+v", world.SizeForgiven, p)
	}
	if got := status(on(world.Retention), "/Messages.json?DateSent%3E=2020-01-01"); got != 400 {
		t.Errorf("%s: %d", world.Retention, got)
	}
	r := on(world.PageIgnored)
	if p := r.page(root + "/Calls.json?Page=1"); p.Page != 1 || sids(p.records)[0] != sids(r.page(root + "/Calls.json").records)[0] {
		t.Errorf("%s: %+v", world.PageIgnored, p)
	}
	r = on(world.UnfinishedRefused)
	calls := sids(r.page(root + "/Calls.json").records)
	r.write("DELETE", root+"/Calls/"+calls[0]+".json", nil, 409)
	r.write("DELETE", root+"/Calls/"+calls[40]+".json", nil, 204)
	messages := sids(r.page(root + "/Messages.json").records)
	r.write("POST", root+"/Messages/"+messages[0]+".json", url.Values{"Body": {""}}, 409)
	r.write("POST", root+"/Messages/"+messages[40]+".json", url.Values{"Body": {""}}, 200)
}
