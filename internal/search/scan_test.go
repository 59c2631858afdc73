package search

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"understudy/internal/query"
)

// What the columns count is what reading every record counts, for every role and condition.
func TestCountsOfColumnsAreThoseOfRecords(t *testing.T) {
	r := newRig(t, true)
	s := r.with(func(*Options) {})
	rowed := 0
	for _, role := range []string{"all", "support", "billing", "texts", "partial", "open", "analyst", "failed"} {
		for _, a := range []query.SearchRequest{
			{}, {Kinds: []string{"calls"}}, {Kinds: []string{"messages"}}, {Text: "status:failed"}, {Text: "date:-100d.."},
			{Text: "direction:inbound duration>0", Kinds: []string{"calls"}}, {Text: "price<0", Kinds: []string{"messages"}},
			{Text: "-status:completed", Kinds: []string{"calls"}}, {Text: "has:error_code"},
		} {
			a.Source, a.Facets, a.CountOnly = "twilio", true, true
			v := &execution{s: s, c: as(role), request: &a, began: s.o.Now()}
			var err error
			if v.q, err = s.read(v.c, &a, epoch); err != nil {
				continue // the role may not ask
			}
			ready, err := v.refreshRows(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !ready {
				continue
			}
			rows, ok, err := v.tallyRows(t.Context())
			if err != nil || !ok {
				t.Fatalf("%q as %s: %t, %v", a.Text, role, ok, err)
			}
			if err := v.countNow(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprint(*v.out.Total, said(t, v.out.Facets))
			if got := fmt.Sprint(query.Count{N: rows.total}, said(t, rows.facets(false))); got != want {
				t.Errorf("%q as %s: the columns count\n%s\nthe records are\n%s", a.Text, role, got, want)
			}
			rowed++
		}
	}
	if rowed < 12 {
		t.Errorf("the columns tell %d counts", rowed)
	}
}

func said(t *testing.T, facets []query.SearchFacet) string {
	text, err := json.Marshal(facets)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A list's count is exact however short the time for counting records is, also after more changes
// than are read one by one, and for a search that depends on the time of day.
func TestCountIsExactWithoutTimeForRecords(t *testing.T) {
	r := newRig(t, true)
	s := r.with(func(o *Options) {
		o.Limits = Limits{Time: time.Minute, Count: time.Nanosecond, Facets: time.Nanosecond}
	})
	messages := []string{"messages"}
	for _, one := range []struct {
		role string
		query.SearchRequest
	}{
		{"all", query.SearchRequest{Kinds: messages}}, {"all", query.SearchRequest{Text: "date:-9000d", Kinds: messages}},
		{"all", query.SearchRequest{Kinds: messages,
			Where: []query.FieldCondition{{Field: "account_sid", Comparison: query.CompareSame, Value: account}}}},
		{"all", query.SearchRequest{Text: "your", Kinds: messages}}, {"all", query.SearchRequest{Text: "your date:-9000d", Kinds: messages}},
		{"aged", query.SearchRequest{Kinds: messages}}, {"aged", query.SearchRequest{Text: "date:-9000d", Kinds: messages}},
	} {
		a := one.SearchRequest
		want := len(r.all(one.role, a))
		a.Facets, a.CountOnly = true, true
		out, err := s.Find(t.Context(), as(one.role), a)
		if err != nil {
			t.Fatal(err)
		}
		if out.Total.AtLeast || out.Total.N != int64(want) {
			t.Errorf("%s, %q: %+v, want %d", one.role, a.Text, *out.Total, want)
		}
		if want == 0 {
			t.Errorf("%s, %q: nothing is there to count", one.role, a.Text)
		}
		for _, f := range out.Facets {
			for _, value := range f.Values {
				if value.Count.AtLeast {
					t.Errorf("%q: %s %s is at least %d", a.Text, f.Name, value.Value, value.Count.N)
				}
			}
		}
	}
}
