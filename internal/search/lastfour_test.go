// Last four digits: who sees them finds by them, and by nothing else of the number.

package search

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/query"
	"understudy/spec"
)

// endings are the calls and messages that a role is shown digits in, by those digits.
func (r *rig) endings(role string) map[string][]string {
	r.Helper()
	all := map[string]map[string]bool{}
	for _, kind := range []string{"calls", "messages"} {
		for _, f := range r.spec.Kind(kind).Fields {
			if f.Class != spec.ClassPhone {
				continue
			}
			for id, shown := range r.shown(role, kind, f.Name) {
				if digits, ok := strings.CutPrefix(shown, "********"); ok && len(digits) == 4 {
					if all[digits] == nil {
						all[digits] = map[string]bool{}
					}
					all[digits][id] = true
				}
			}
		}
	}
	found := map[string][]string{}
	for digits, ids := range all {
		found[digits] = slices.Sorted(maps.Keys(ids))
	}
	return found
}

func (r *rig) sorted(role, text string) []string {
	r.Helper()
	found := r.all(role, query.SearchRequest{Text: text, Kinds: []string{"calls", "messages"}})
	slices.Sort(found)
	return found
}

func TestLastFourDigitsFindWhatShowsThem(t *testing.T) {
	r := newRig(t, true)
	endings := r.endings("support")
	if len(endings) < 20 {
		t.Fatalf("only %d endings are shown", len(endings))
	}
	shownFrom := r.shown("support", "calls", "from")
	for _, digits := range slices.Sorted(maps.Keys(endings))[:4] {
		want := endings[digits]
		for _, text := range []string{"number:…" + digits, `number="…` + digits + `"`, "number:********" + digits, "number:••••••••" + digits,
			"number:..." + digits} {
			if got := r.sorted("support", text); !slices.Equal(got, want) {
				t.Errorf("%s finds %v, want %v", text, got, want)
			}
		}
		for _, text := range []string{digits, `"` + digits + `"`, "…" + digits, "********" + digits, "••••••••" + digits} {
			got := r.sorted("support", text) // words that say so are among them
			if missed := slices.DeleteFunc(slices.Clone(want), func(id string) bool { return slices.Contains(got, id) }); len(missed) > 0 {
				t.Errorf("%s does not find %v", text, missed)
			}
		}
		from := r.sorted("support", "kind:calls from:…"+digits)
		for id, shown := range shownFrom {
			found := slices.Contains(from, id)
			if want := strings.HasSuffix(shown, "*"+digits); found != want {
				t.Errorf("from:…%s finds %s, where %s is shown: %v", digits, id, shown, found)
			}
		}
	}
}

func TestLastFourDigitsFindNothingWhereTheyAreNotShown(t *testing.T) {
	r := newRig(t, true)
	endings := r.endings("support")
	digits := slices.Sorted(maps.Keys(endings))[0]
	for _, text := range []string{"number:…" + digits, "from:…" + digits, "kind:calls to:…" + digits} {
		if _, err := r.s.Find(t.Context(), as("analyst"), query.SearchRequest{Text: text}); !errors.Is(err, understudy.ErrForbidden) &&
			!errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("a role that sees hashes asks %s: %v", text, err)
		}
	}
	for _, text := range []string{"number:…" + digits[1:], "number:…" + digits + "*", "from>…" + digits, "from:…" + digits + ",+15550100123",
		"has:from", "from:*x" + digits} {
		if _, err := r.s.Find(t.Context(), as("support"), query.SearchRequest{Text: text}); err == nil {
			t.Errorf("%s is answered", text)
		}
	}
	_, err := r.s.Find(t.Context(), as("support"), query.SearchRequest{Text: "number:+15550100123"})
	if err == nil || !strings.Contains(err.Error(), "number:…1234") {
		t.Errorf("the refusal of a whole number does not say what can be asked: %v", err)
	}
	r.put("Messages", `{"sid":"SM000000000000000000000000000000f1","date_created":"Mon, 01 Jun 2026 10:00:00 +0000",`+
		`"from":"5550199","body":"x"}`)
	if got := r.sorted("support", "kind:messages from:…0199"); slices.Contains(got, "messages/SM000000000000000000000000000000f1") {
		t.Error("a number of seven digits, of which nothing is shown, is found by the last four")
	}
}

// Four digits behind a field are those that the role is shown, and a role that is shown whole numbers is told how to ask for
// the last ones.
func TestFourDigitsBehindAField(t *testing.T) {
	r := newRig(t, true)
	digits := slices.Sorted(maps.Keys(r.endings("support")))[0]
	want := r.sorted("support", "kind:calls,messages from:…"+digits+" OR to:…"+digits)
	if got := r.sorted("support", "kind:calls,messages from:"+digits+" OR to:"+digits); len(got) == 0 || !slices.Equal(got, want) {
		t.Errorf("from:%s and to:%s find %v, with … before the digits %v", digits, digits, got, want)
	}
	for _, text := range []string{"from:" + digits, "number:" + digits} {
		found, err := r.s.Find(t.Context(), as("all"), query.SearchRequest{Text: text, Kinds: []string{"calls"}})
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(text, ":")
		if notes := strings.Join(found.Notes, " "); len(found.Hits) > 0 || !strings.Contains(notes, "write "+name+":…"+digits) {
			t.Errorf("%s finds %d records, and is answered %q", text, len(found.Hits), notes)
		}
	}
}

// Last digits are looked for in an index: no other record is read, and the count is exact, however they are written.
func TestLastFourDigitsAskAnIndex(t *testing.T) {
	r := worldOf(t, 400, func(n int) (string, string) {
		if n == 100 {
			return "sent", "11112222333344449876" // it is shown so, and is no number
		}
		if n%100 == 0 {
			return "sent", "+15550209876"
		}
		return "sent", "+15550200000"
	})
	for _, role := range []string{"support", "all"} {
		for _, text := range []string{"9876", "••••••••9876", "...9876", "number:…9876", "to:…9876", "kind:messages to:9876"} {
			if role == "all" && !strings.ContainsAny(text, "….•") {
				continue // a number of four digits, or a word
			}
			s, w := r.watch(func(*Options) {})
			a := query.SearchRequest{Text: text, Kinds: []string{"messages"}}
			found, err := s.Find(t.Context(), as(role), a)
			if err != nil {
				t.Fatalf("%s as %s: %v", text, role, err)
			}
			if len(found.Hits) != 4 || len(w.given) != 4 {
				t.Errorf("%s as %s: %d messages are found and %d read, want 4", text, role, len(found.Hits), len(w.given))
			}
			w.given, a.CountOnly, a.Facets = nil, true, true
			counted, err := s.Find(t.Context(), as(role), a)
			if err != nil {
				t.Fatalf("%s as %s: %v", text, role, err)
			}
			if *counted.Total != (query.Count{N: 4}) || len(w.given) != 4 {
				t.Errorf("%s as %s: counted %+v, and %d read, want 4", text, role, *counted.Total, len(w.given))
			}
		}
	}
}

// Under row rules last digits find records that may be found alone, and read as much for those
// that only hidden records have as for those that no record has.
func TestLastFourDigitsUnderRowRules(t *testing.T) {
	r := worldOf(t, 40, func(n int) (string, string) {
		if n < 20 {
			return "sent", "+15550200000"
		}
		return "failed", "+15550209876"
	})
	var err error
	r.gate, err = access.NewWith(access.Options{Specs: map[string]*spec.Spec{"twilio": r.spec}, Roles: roles, NewestVersion: r.newest,
		Rows: map[string]map[string]access.RowRules{"support": {"twilio": {
			"messages": {Where: map[string]access.Match{"status": {In: []string{"sent"}}}}, "*": {Word: "all"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	r.o.Gate, r.o.Masked = gated{r.gate}, r.gate
	r.s = r.with(func(*Options) {})
	for _, form := range []string{"number:…%s", "%s", "to:…%s", "kind:messages %s"} {
		ask := func(digits string) string { return strings.ReplaceAll(form, "%s", digits) }
		if n := len(r.all("support", query.SearchRequest{Text: ask("0000")})); n < 20 {
			t.Errorf("%s finds %d of 20 messages", ask("0000"), n)
		}
		askedHidden, hidden := r.given("support", ask("9876"))
		askedNever, never := r.given("support", ask("6789"))
		if hidden != never {
			t.Errorf("%s gives %s\nof hidden records, and of none %s (asked %s and %s)", form, hidden, never, askedHidden, askedNever)
		}
		if n := len(r.all("support", query.SearchRequest{Text: ask("9876")})); n > 0 {
			t.Errorf("%s finds %d hidden records", ask("9876"), n)
		}
	}
}
