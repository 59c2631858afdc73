package search

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"understudy/internal/query"
	"understudy/internal/search/lang"
)

// What the columns count is what reading every record counts, for every role and condition.
func TestCountsOfColumnsAreThoseOfRecords(t *testing.T) {
	r := newRig(t, true)
	s := r.with(func(*Options) {})
	rowed := 0
	for _, role := range []string{"all", "support", "billing", "texts", "partial", "open", "analyst", "failed"} {
		for _, a := range []query.SearchRequest{
			{}, {Kinds: []string{"calls"}}, {Kinds: []string{"messages"}}, {Text: "status:failed"}, {Text: "date:-100d.."},
			{Text: "direction:inbound duration>0", Kinds: []string{"calls"}}, {Text: "price<-0", Kinds: []string{"messages"}},
			{Text: "price>0.01", Kinds: []string{"messages"}},
			{Text: "-status:completed", Kinds: []string{"calls"}}, {Text: "has:error_code"},
		} {
			a.Source, a.Facets, a.CountOnly = "twilio", true, true
			q, err := s.read(as(role), &a, epoch)
			if err != nil {
				continue // the role may not ask
			}
			v := newCount(s, as(role), &a, q)
			if slices.ContainsFunc(v.views, func(in *lang.KindView) bool { return !r.fromRows(s, v, in) }) {
				continue
			}
			rows, err := newCount(s, as(role), &a, q).count(t.Context())
			if err != nil {
				t.Fatalf("%q as %s: %v", a.Text, role, err)
			}
			records, err := v.countNow(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprint(records.total, said(t, records.facets))
			if got := fmt.Sprint(rows.total, said(t, rows.facets)); got != want {
				t.Errorf("%q as %s: the columns count\n%s\nthe records are\n%s", a.Text, role, got, want)
			}
			rowed++
		}
	}
	if rowed < 12 {
		t.Errorf("the columns tell %d counts", rowed)
	}
}

// fromRows reports whether the matches of a kind are counted from its columns.
func (r *rig) fromRows(s *Searcher, v *aggregation, in *lang.KindView) bool {
	table := s.tables.Table(in.Source, in.Kind)
	table.Lock()
	defer table.Unlock()
	return canCountRows(v.q.Cond, in, table)
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
				if value.AtLeast {
					t.Errorf("%q: %s %s is at least %d", a.Text, f.Name, value.Value, value.N)
				}
			}
		}
	}
}
