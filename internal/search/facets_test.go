// Facets: what is told when counting was broken off.

package search

import (
	"testing"
	"time"

	"understudy/internal/query"
)

// What was counted in part is never told as all there is.
func TestBrokenOffCountsFitTogether(t *testing.T) {
	r := newRig(t, true)
	months := map[string]bool{}
	for _, s := range r.views("all") {
		if text, ok := s.fields["start_time"]; s.kind.Name == "calls" && ok {
			at, err := time.Parse(time.RFC1123Z, text)
			if err != nil {
				t.Fatal(err)
			}
			months[at.UTC().Format("2006-01")] = true
		}
	}
	at := epoch
	slow := r.with(func(o *Options) { // each look at the clock is an hour later
		o.Now = func() time.Time { at = at.Add(time.Hour); return at }
	})
	slow.counts.scanning <- struct{}{} // nothing is counted behind the search
	for _, a := range []query.SearchRequest{{Text: "kind:calls"}, {Text: "kind:calls", Limit: 1}, {Text: "kind:calls direction:inbound"},
		{Text: "duration>0"}, {Text: "kind:calls -x"}} {
		a.Facets = true
		out, err := slow.Find(t.Context(), as("all"), a)
		if err != nil {
			t.Fatal(err)
		}
		want := int64(len(r.all("all", query.SearchRequest{Text: a.Text})))
		if out.Total.N > want || !out.Total.AtLeast && out.Total.N < want {
			t.Errorf("%s: %+v of %d", a.Text, *out.Total, want)
		}
		for _, f := range out.Facets {
			sum := int64(0)
			for _, v := range f.Values {
				sum += v.Count.N
			}
			if sum > out.Total.N {
				t.Errorf("%s: %d by %s, and %+v in all", a.Text, sum, f.Name, *out.Total)
			}
			if f.Name == "month" && len(f.Values) < len(months) && !f.More {
				t.Errorf("%s: %d of %d months, and no more", a.Text, len(f.Values), len(months))
			}
		}
	}
	// Everything that was found is on the page.
	for _, a := range []query.SearchRequest{{Text: "kind:calls price<-1000"}, {Text: "kind:calls duration:60..10000", Limit: query.MostHits},
		{Text: "kind:calls has:direction", Limit: query.MostHits}} {
		a.Facets = true
		out, err := slow.Find(t.Context(), as("all"), a)
		if err != nil || out.Next != "" || out.Total.AtLeast || out.Total.N != int64(len(out.Hits)) {
			t.Errorf("%s: %d hits, %+v: %v", a.Text, len(out.Hits), out.Total, err)
		}
	}
	if len(months) < 2 {
		t.Fatal("the world has too little for this")
	}
}

// TestCountsByMonthAreThoseOfADate compares the counts by month and day with the searches that they lead to, also of
// calls that never began.
func TestCountsByMonthAreThoseOfADate(t *testing.T) {
	r := newRig(t, true)
	s := r.with(func(*Options) {})
	for _, text := range []string{"kind:calls", "kind:calls status:failed", "kind:messages"} {
		out, err := s.Find(t.Context(), as("all"), query.SearchRequest{Text: text, Facets: true})
		if err != nil {
			t.Fatal(err)
		}
		counted := int64(0)
		for _, f := range out.Facets {
			for _, v := range f.Values {
				if f.Name != "month" && f.Name != "day" {
					continue
				}
				found, err := s.Find(t.Context(), as("all"), query.SearchRequest{Text: text + " date:" + v.Value, CountOnly: true})
				if err != nil {
					t.Fatal(err)
				}
				if found.Total.N != v.Count.N {
					t.Errorf("%s: %d in %s, which finds %d", text, v.Count.N, v.Value, found.Total.N)
				}
				if f.Name == "month" {
					counted += v.Count.N
				}
			}
		}
		if counted != out.Total.N {
			t.Errorf("%s: %d in months, %d found", text, counted, out.Total.N)
		}
	}
}
