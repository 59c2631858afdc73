// Counts that are kept: they are those of a count anew, and cost what changed.

package search

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/sample"
	"understudy/internal/store"
)

// countedAs is what a searcher counts.
func (r *rig) countedAs(s *Searcher, role string, a query.SearchRequest) string {
	r.Helper()
	a.Facets, a.CountOnly = true, true
	out, err := s.Find(r.Context(), as(role), a)
	if err != nil {
		r.Fatalf("%q as %s: %v", a.Text, role, err)
	}
	text, err := json.Marshal([]any{out.Total, out.Facets})
	if err != nil {
		r.Fatal(err)
	}
	return string(text)
}

// someCalls are bodies of calls that are held, as upstream sent them.
func (r *rig) someCalls(n int) (bodies []string) {
	r.Helper()
	err := r.store.Seek(r.Context(), query.RecordQuery{Source: "twilio", Kinds: []string{"calls"}}, func(f query.Hit) bool {
		if strings.Contains(string(f.Record.Body), `"status":"completed"`) {
			bodies = append(bodies, string(f.Record.Body))
		}
		return len(bodies) < n
	})
	if err != nil || len(bodies) < n {
		r.Fatal(len(bodies), err)
	}
	return bodies
}

// gone saves that a call is no more.
func (r *rig) gone(id string) {
	r.Helper()
	target, err := r.spec.Resolve("twilio", "/2010-04-01/Accounts/"+account+"/Calls/"+id+".json", "")
	if err != nil {
		r.Fatal(err)
	}
	p := &understudy.Page{Key: target.Key, Kind: "calls", ID: id, Shape: target.Instance.Shape, Status: 404, ContentType: "application/json",
		At: epoch.Add(r.later), Body: []byte(`{}`)}
	if _, err := r.store.Save(r.Context(), p); err != nil {
		r.Fatal(err)
	}
}

func sidOf(body string) string {
	var row struct{ SID string }
	_ = json.Unmarshal([]byte(body), &row)
	return row.SID
}

// Whatever comes, changes, goes or is forgotten, what is kept is what a count anew
// says, for every role.
func TestKeptCountsAreThoseCountedAnew(t *testing.T) {
	r := newRig(t, true)
	r.later = 24 * 365 * time.Hour // after the pages that were fetched
	asks := []query.SearchRequest{
		{Source: "twilio", Kinds: []string{"calls"}}, {Text: "status:failed", Kinds: []string{"calls"}},
		{Text: "kind:calls direction:inbound duration>0"}, {}, {Text: "date:-100d.."},
	}
	run := sample.OneIn(t, 16)
	check := func(what string) {
		t.Helper()
		anew := r.with(func(*Options) {})
		for _, role := range []string{"all", "support", "open", "texts", "failed"} {
			for _, a := range asks {
				if !run() {
					continue
				}
				if role == "texts" && (len(a.Kinds) > 0 || a.Text != "") {
					continue
				}
				if kept, want := r.countedAs(r.s, role, a), r.countedAs(anew, role, a); kept != want {
					t.Errorf("after %s, %q as %s:\nkept %s\nanew %s", what, a.Text, role, kept, want)
				}
			}
		}
		_ = anew.Close()
	}
	check("nothing")
	before := r.countedAs(r.s, "all", asks[0])
	some := r.someCalls(6)
	r.later += time.Hour
	r.put("Calls", strings.Replace(some[0], `"completed"`, `"failed"`, 1), strings.Replace(some[1], `"completed"`, `"busy"`, 1))
	check("a change")
	r.later += time.Hour
	r.put("Calls", strings.ReplaceAll(some[2], sidOf(some[2]), "CA"+strings.Repeat("ab", 16)))
	check("a new one")
	r.later += time.Hour
	r.gone(sidOf(some[3]))
	check("a deletion")
	if _, _, err := r.store.ForgetRecord(t.Context(), "twilio", "calls", sidOf(some[4])); err != nil {
		t.Fatal(err)
	}
	check("a purge")
	r.later += time.Hour
	r.put("Calls", some[4])
	check("its next view")
	if before == r.countedAs(r.s, "all", asks[0]) {
		t.Error("nothing of it was counted")
	}
}

// reading is a store that counts what is read of it.
type reading struct {
	*store.DB
	records, seeks, counts atomic.Int64
}

func (s *reading) Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error {
	s.seeks.Add(1)
	return s.DB.Seek(ctx, q, func(f query.Hit) bool { s.records.Add(1); return yield(f) })
}

func (s *reading) Count(ctx context.Context, q query.RecordQuery, most int64, by time.Time) (query.Count, error) {
	s.counts.Add(1)
	return s.DB.Count(ctx, q, most, by)
}

// While nothing changes nothing is recounted; when one record changes that one
// alone is read.
func TestCountsReadWhatChangedAlone(t *testing.T) {
	r := newRig(t, true)
	store := &reading{DB: r.store}
	s := r.with(func(o *Options) { o.Store = store })
	r.later = 24 * 365 * time.Hour
	some := r.someCalls(1)
	for i, role := range []string{"all", "support", "failed"} {
		a := query.SearchRequest{Source: "twilio", Kinds: []string{"calls"}}
		store.records.Store(0)
		if r.countedAs(s, role, a); store.records.Load() < []int64{300, 0, 10}[i] { // the second finds the columns filled
			t.Fatalf("%s: %d records were read at first", role, store.records.Load())
		}
		status := []string{"failedall", "failedsupport", "busy"}[i]
		for i, want := range []int64{0, 1, 0} {
			if want == 1 {
				r.later += time.Hour
				r.put("Calls", strings.Replace(some[0], `"completed"`, `"`+status+`"`, 1))
			}
			store.records.Store(0)
			store.seeks.Store(0)
			for range 3 {
				r.countedAs(s, role, a)
			}
			n := store.records.Load()
			checktest.Equal(t, n, want, "%s, %d: n", role, i)
			checktest.Equal(t, store.seeks.Load(), want, "%s, %d: store.seeks.Load()", role, i)
			checktest.Equal(t, store.counts.Load(), 0, "%s, %d: store.counts.Load()", role, i)
		}
		if got := r.countedAs(s, role, a); !strings.Contains(got, `"`+status+`"`) {
			t.Errorf("the change is not counted: %s", got)
		}
	}
}

// What depends on the time of day is counted once a second at most, and no count is older.
func TestCountsByTheTimeOfDayAreKeptForASecond(t *testing.T) {
	r := newRig(t, true)
	store := &reading{DB: r.store}
	var later atomic.Int64
	s := r.with(func(o *Options) {
		o.Store, o.Now = store, func() time.Time { return epoch.Add(time.Duration(later.Load())) }
	})
	ask := query.SearchRequest{Text: "date:-100d..", Source: "twilio", Kinds: []string{"calls"}}
	for _, role := range []string{"failed", "all"} { // from records, and from columns
		later.Store(0)
		before := r.countedAs(s, role, ask)
		for _, step := range []struct {
			wait  time.Duration
			reads bool
		}{{time.Second - 1, false}, {1, role == "failed"}, {time.Second - 1, false}} {
			store.records.Store(0)
			later.Add(int64(step.wait))
			if after := r.countedAs(s, role, ask); after != before || (store.records.Load() > 0) != step.reads {
				t.Errorf("%s, %v later: %d records read for\n%s, before it\n%s", role, step.wait, store.records.Load(), after, before)
			}
		}
		later.Add(int64(10 * 365 * 24 * time.Hour))
		if after := r.countedAs(s, role, ask); after == before || strings.Contains(after, "at_least") {
			t.Errorf("%s, ten years later: %s", role, after)
		}
	}
}

// What is kept stays within bounds, and what was asked last is kept.
func TestKeptCountsAreBounded(t *testing.T) {
	r := newRig(t, true)
	var keys []string
	for i := range 3 * maxCounts {
		a := query.SearchRequest{Text: fmt.Sprintf("-none%d", i), Kinds: []string{"queues"}, Facets: true, CountOnly: true}
		if _, err := r.s.Find(t.Context(), as("all"), a); err != nil {
			t.Fatal(err)
		}
		q, err := r.s.read(as("all"), &a, epoch)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, newCount(r.s, as("all"), &a, q).key)
	}
	for i, key := range keys[len(keys)-maxCounts:] {
		if k, ok := r.s.counts.runs.Get(key); !ok || k.result == nil {
			t.Fatalf("number %d of the last %d is not kept", i, maxCounts)
		}
	}
	if _, ok := r.s.counts.runs.Get(keys[0]); ok {
		t.Errorf("the first of %d is still kept", len(keys))
	}
	if bytes := r.s.counts.runs.Weight(); bytes > maxKept {
		t.Errorf("%d bytes are kept, want at most %d", bytes, maxKept)
	}
}

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
	slow.counts.readSlot <- struct{}{} // nothing is counted behind the search
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
				sum += v.N
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
	for _, a := range []query.SearchRequest{{Text: "kind:calls price<-1000"}, {Text: "kind:calls duration:60..10000", Limit: query.MaxHits},
		{Text: "kind:calls has:direction", Limit: query.MaxHits}} {
		a.Facets = true
		out, err := slow.Find(t.Context(), as("all"), a)
		checktest.MustNoError(t, err, "%s", a.Text)
		checktest.Equal(t, out.Next, "", "%s: out.Next", a.Text)
		checktest.True(t, !out.Total.AtLeast, "%s: out.Total.AtLeast is true", a.Text)
		checktest.Equal(t, out.Total.N, int64(len(out.Hits)), "%s: out.Total.N", a.Text)
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
				if found.Total.N != v.N {
					t.Errorf("%s: %d in %s, which finds %d", text, v.N, v.Value, found.Total.N)
				}
				if f.Name == "month" {
					counted += v.N
				}
			}
		}
		if counted != out.Total.N {
			t.Errorf("%s: %d in months, %d found", text, counted, out.Total.N)
		}
	}
}
