// Whole numbers that are looked up: who may, what is found, and what is told of the rest.

package search

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/query"
	"understudy/spec"
)

// plain are the numbers of the sample in the fields from and to of calls and messages.
func (r *rig) plain() []string {
	r.Helper()
	all := map[string]bool{}
	for _, kind := range []string{"calls", "messages"} {
		for _, field := range []string{"from", "to"} {
			for _, number := range r.shown(understudy.RoleAll, kind, field) {
				if understudy.ParsePhone(number).HasCountryCode {
					all[number] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func TestLookupFindsWhatTheNumberIsIn(t *testing.T) {
	r := newRig(t, true)
	numbers := r.plain()
	if len(numbers) < 20 {
		t.Fatalf("only %d numbers", len(numbers))
	}
	for _, number := range numbers[:6] {
		want := slices.DeleteFunc(r.all("open", query.SearchRequest{Text: "number:" + number}), func(id string) bool {
			return strings.HasPrefix(id, "conferences/") || strings.HasPrefix(id, "participants/")
		})
		slices.Sort(want)
		for _, written := range []string{number, "00" + number[1:], number[:3] + " (" + number[3:6] + ") " + number[6:]} {
			found := r.all("finder", query.SearchRequest{Number: written, Limit: 3})
			slices.Sort(found)
			if !slices.Equal(found, want) {
				t.Errorf("%s finds %v, want %v", written, found, want)
			}
		}
		out, err := r.s.Find(t.Context(), as("finder"), query.SearchRequest{Number: number, Facets: true})
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := json.Marshal(out); strings.Contains(string(text), number[1:]) {
			t.Errorf("the answer holds the number: %s", text)
		}
		if n := len(r.all("blind", query.SearchRequest{Number: number})); n == 0 {
			t.Errorf("a role from which numbers are hidden finds nothing of %s", number)
		}
	}
}

func TestLookupTakesOneWholeNumberAlone(t *testing.T) {
	r := newRig(t, true)
	number := r.plain()[0]
	find := func(role string, a query.SearchRequest) (int, error) {
		out, err := r.s.Find(t.Context(), as(role), a)
		if err != nil {
			return 0, err
		}
		return len(out.Hits), nil
	}
	for _, part := range []string{number[1:], number[2:], number + "*", number[len(number)-4:], "anna", "h:aaaaaaaaaaaaaaaa",
		"+0" + number[1:]} {
		if n, err := find("finder", query.SearchRequest{Number: part}); !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("%s finds %d: %v", part, n, err)
		}
	}
	for _, part := range []string{number[:len(number)-1], number[:len(number)-2] + "00"} {
		if n, err := find("finder", query.SearchRequest{Number: part}); err != nil || n > 0 {
			t.Errorf("%s, which is another number, finds %d: %v", part, n, err)
		}
	}
	for _, a := range []query.SearchRequest{{Number: number, Text: "status:failed"},
		{Number: number, Where: []query.FieldCondition{{Field: "status", Comparison: query.CompareIs, Value: "failed"}}}} {
		if _, err := find("finder", a); !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("%+v: %v", a, err)
		}
	}
	for _, role := range []string{"support", "open", understudy.RoleAll, "analyst"} {
		if _, err := find(role, query.SearchRequest{Number: number}); !errors.Is(err, understudy.ErrForbidden) {
			t.Errorf("a role without the permission, %s: %v", role, err)
		}
	}
	one := query.SavedSearch{Name: "a caller", Request: query.SearchRequest{Number: number}}
	if err := r.s.Save(t.Context(), as("finder"), one); !errors.Is(err, understudy.ErrInvalid) || strings.Contains(err.Error(), number) {
		t.Errorf("it is saved: %v", err)
	}
	out, err := r.s.Find(t.Context(), as("finder"), query.SearchRequest{Number: number, Limit: 1})
	if err != nil || out.Next == "" {
		t.Fatalf("one of several: %v %v", out, err)
	}
	if _, err := find("finder", query.SearchRequest{Number: r.plain()[1], Cursor: out.Next}); !errors.Is(err, understudy.ErrInvalid) {
		t.Errorf("the cursor of another number: %v", err)
	}
}

// A number that only records have which the role may not find is read as far as one that no record
// has, and is answered the same.
func TestLookupOfHiddenRecordsIsThatOfNone(t *testing.T) {
	for name, rule := range map[string]access.RowRule{
		"by value":  {Where: map[string]access.Match{"status": {In: []string{"sent"}}}},
		"by prefix": {Where: map[string]access.Match{"status": {Prefix: "sen"}}},
		"by number": {Numbers: []string{"+15550100003"}},
		"by age":    {Age: time.Hour},
	} {
		r := worldOf(t, 40, func(n int) (string, string) {
			if n < 20 {
				return "sent", "+15550200000"
			}
			return "failed", "+15550209876"
		})
		var err error
		r.gate, err = access.NewWith(access.Options{Specs: map[string]*spec.Spec{"twilio": r.spec}, Roles: roles, Do: does,
			NewestVersion: r.newest,
			Rows:          map[string]map[string]access.RowRules{"finder": {"twilio": {"messages": rule, "*": {Word: "all"}}}},
			Now:           func() time.Time { return epoch }})
		if err != nil {
			t.Fatal(err)
		}
		r.o.Gate, r.o.Masked = gated{r.gate}, r.gate
		s, w := r.watch(func(*Options) {})
		given := func(number string) (int, string) {
			w.asked, w.given = nil, nil
			out, err := s.Find(t.Context(), as("finder"), query.SearchRequest{Number: number})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return len(out.Hits), strings.Join(w.given, " ")
		}
		if n, _ := given("+15550200000"); name != "by age" && name != "by number" && n != 20 {
			t.Errorf("%s: %d of 20 records are found", name, n)
		}
		n, hidden := given("+15550209876")
		_, never := given("+15550208888")
		if n > 0 {
			t.Errorf("%s: %d hidden records are found", name, n)
		}
		if hidden != never {
			t.Errorf("%s: %s is read of hidden records, and of none %s", name, hidden, never)
		}
	}
}
