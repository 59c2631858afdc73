// Narrow: what a store is told of a rule finds all that the rule finds.

package access_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream"
)

// One number is looked up, in whatever form a record has it; several, and own
// ones, are not.
func TestNumbersAreLookedUp(t *testing.T) {
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	specs := map[string]*spec.Spec{"twilio": sp}
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	at, err := sp.Resolve("twilio", "/2010-04-01/Accounts/AC00000000000000000000000000000001/Messages.json", "")
	if err != nil {
		t.Fatal(err)
	}
	for rule, want := range map[string]string{"+1 555 000 0001": "15550000001", "whatsapp:+15550000001": "15550000001", "0155500001": "",
		"12345": "", access.OwnNumbers: ""} {
		g, err := access.NewWith(access.Options{
			Specs: specs, Roles: access.Roles{"r": {"twilio": {"*": "see"}}},
			Users:       map[string]string{"twilio": "AC00000000000000000000000000000001"},
			Rows:        map[string]map[string]access.RowRules{"r": {"twilio": {"messages": {Numbers: []string{rule}}}}},
			IsOwnNumber: func(string, string) bool { return false }, Now: func() time.Time { return now },
		})
		if err != nil {
			t.Fatal(err)
		}
		c := understudy.Caller{Name: "r", Source: "twilio", Grant: &understudy.Grant{Role: "r"}}
		var terms []query.Predicate
		sight := g.Visibility(c, at)
		_, _ = sight.RequestPage(t.Context(), request.Request{Target: at}, func(_ context.Context, a request.Request) (*request.Response, error) {
			terms = a.Local.Predicates
			return nil, understudy.ErrNotMirrored
		})
		if want == "" && len(terms) > 0 || want != "" && (len(terms) != 1 || terms[0].Number != want || terms[0].Field != "") {
			t.Errorf("%q: the store is told %v", rule, terms)
		}
		if want == "" {
			continue
		}
		finds := g.RecordFilter(c, "twilio", "messages")
		found := 0
		for i, form := range []string{"+15550000001", "1 (555) 000-0001", "15550000001", "+1.555.000.0001", "whatsapp:+15550000001",
			"rcs:15550000001", "sms2:15550000001", "1/555/0000001", "+25550000001", "client:15550000001x"} {
			rec := &understudy.Record{Source: "twilio", Kind: "messages", ID: fmt.Sprint("SM", i),
				Body: fmt.Appendf(nil, `{"sid":"SM%d","from":%q}`, i, form)}
			if !finds(rec) {
				continue
			}
			found++
			if !storedRecords(t, specs, terms, rec, now) {
				t.Errorf("%q is found by the rule %q and not by the store", form, rule)
			}
		}
		if found < 7 {
			t.Errorf("%q finds %d forms", rule, found)
		}
	}
}

// storedRecords reports whether a store that has a record finds it by terms.
func storedRecords(t *testing.T, specs map[string]*spec.Spec, terms []query.Predicate, rec *understudy.Record, now time.Time) bool {
	t.Helper()
	db := storetest.Open(t, store.Options{Specs: specs, Now: func() time.Time { return now }})
	shape := specs["twilio"].Kind("messages").Lists[0].Shape
	page := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: "/m"}, Kind: "messages", List: true, Shape: shape, Status: 200,
		At: now, Body: fmt.Appendf(nil, `{"messages":[%s]}`, rec.Body)}
	page.Rows = []understudy.Row{{ID: rec.ID, Start: 13, End: 13 + len(rec.Body)}}
	if _, err := db.Save(t.Context(), page); err != nil {
		t.Fatal(err)
	}
	found := false
	err := db.Seek(t.Context(), query.RecordQuery{Source: "twilio", Kinds: []string{"messages"}, Predicates: terms},
		func(query.Hit) bool { found = true; return true })
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A store is told all of a rule that its indexes know; where there is more it is
// said.
func TestRulesAreTold(t *testing.T) {
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	at, err := sp.Resolve("twilio", "/2010-04-01/Accounts/AC00000000000000000000000000000001/Messages.json", "")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		rule    access.RowRule
		whole   bool
		terms   int
		numbers int
	}{
		"value":      {access.RowRule{Where: map[string]access.Match{"status": {In: []string{"sent", "failed"}}}}, true, 1, 0},
		"age":        {access.RowRule{Age: time.Hour}, true, 1, 0},
		"number":     {access.RowRule{Numbers: []string{"+15550000001"}}, true, 1, 0},
		"numbers":    {access.RowRule{Numbers: []string{"+15550000001", "+15550000002"}, Age: time.Hour}, true, 1, 2},
		"own":        {access.RowRule{Numbers: []string{access.OwnNumbers}}, false, 0, 0},
		"short":      {access.RowRule{Numbers: []string{"+15550000001", "12345"}}, false, 0, 0},
		"beginning":  {access.RowRule{Where: map[string]access.Match{"status": {Prefix: "s"}}}, false, 0, 0},
		"no index":   {access.RowRule{Where: map[string]access.Match{"body": {In: []string{"x"}}}}, false, 1, 0},
		"none":       {access.RowRule{Word: access.FindNone}, false, 0, 0},
		"everything": {access.RowRule{Word: access.FindAll}, true, -1, 0},
	} {
		rows := access.RowRules{"messages": want.rule, "*": {Word: access.FindAll}}
		g, err := access.NewWith(access.Options{
			Specs: map[string]*spec.Spec{"twilio": sp}, Roles: access.Roles{"r": {"twilio": {"*": "see"}}},
			Rows: map[string]map[string]access.RowRules{"r": {"twilio": rows}},
		})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		c := understudy.Caller{Name: "r", Source: "twilio", Grant: &understudy.Grant{Role: "r"}}
		r := g.Rule(c, "twilio", "messages")
		if want.terms < 0 {
			if r != nil {
				t.Errorf("%s: %+v", name, r)
			}
			continue
		}
		checktest.MustTrue(t, r != nil, "%s: r is nil", name)
		checktest.MustTrue(t, r.CanFind != nil, "%s: r.CanFind is nil", name)
		checktest.Equal(t, r.Complete, want.whole, "%s: r.Complete", name)
		checktest.MustEqual(t, len(r.Predicates), want.terms, "%s: len(r.Predicates)", name)
		checktest.Equal(t, len(r.Numbers), want.numbers, "%s: len(r.Numbers)", name)
		if want.rule.Word != access.FindNone { // H2: a list is told the same, or asks no index for its filters
			var w *request.LocalQuery
			sight := g.Visibility(c, at)
			ask := func(_ context.Context, a request.Request) (*request.Response, error) {
				w = a.Local
				return nil, understudy.ErrNotMirrored
			}
			_, _ = sight.RequestPage(t.Context(), request.Request{Target: at}, ask)
			checktest.MustTrue(t, w != nil, "%s: w is nil", name)
			checktest.MustTrue(t, w.CanFind != nil, "%s: w.CanFind is nil", name)
			checktest.Equal(t, w.NoIndex, (!want.whole || want.numbers > 0), "%s: w.NoIndex", name)
			checktest.Equal(t, len(w.Predicates), want.terms, "%s: len(w.Predicates)", name)
		}
	}
}
