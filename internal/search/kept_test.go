// What is kept: right without room in the columns, of several sources, and gone without a trace.

package search

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/internal/query"
	"understudy/internal/search/columns"
)

// Records for which the columns have no room are counted all the same, and of what changes nothing else is read.
func TestCountsWithoutColumnsAreExact(t *testing.T) {
	r := newRig(t, true)
	r.later = 24 * 365 * time.Hour
	store := &reading{DB: r.store}
	set := columns.NewSet(store, 1, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = set.Close() })
	s := r.with(func(o *Options) { o.Store, o.Columns = store, set })
	ask := query.SearchRequest{Source: "twilio", Kinds: []string{"calls"}}
	check := func(when string) {
		t.Helper()
		anew := r.with(func(*Options) {})
		if got, want := r.countedAs(s, "all", ask), r.countedAs(anew, "all", ask); got != want {
			t.Errorf("%s:\n%s, want\n%s", when, got, want)
		}
	}
	check("at first")
	some := r.someCalls(3)
	r.later += time.Hour
	r.put("Calls", strings.Replace(some[0], `"completed"`, `"failed"`, 1))
	store.records.Store(0)
	check("after a change")
	if n := store.records.Load(); n != 1 {
		t.Errorf("%d records were read for a change of one", n)
	}
	r.later += time.Hour
	r.gone(sidOf(some[1]))
	check("after a deletion")
	r.later += time.Hour
	r.put("Calls", strings.ReplaceAll(some[2], sidOf(some[2]), "CA"+strings.Repeat("cd", 16)))
	check("after a new one")
}

// Counts stay when another kind takes the room of the columns they were made of.
func TestCountsOutliveTheirColumns(t *testing.T) {
	r := newRig(t, true)
	store := &reading{DB: r.store}
	set := columns.NewSet(store, 50_000, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = set.Close() })
	s := r.with(func(o *Options) { o.Store, o.Columns = store, set })
	calls, messages := query.SearchRequest{Kinds: []string{"calls"}}, query.SearchRequest{Kinds: []string{"messages"}}
	before := r.countedAs(s, "all", calls) + r.countedAs(s, "all", messages)
	store.records.Store(0)
	if after := r.countedAs(s, "all", calls) + r.countedAs(s, "all", messages); after != before {
		t.Errorf("%s, then %s", before, after)
	}
	if n := store.records.Load(); n > 0 {
		t.Errorf("%d records were read once more", n)
	}
}

// A count that nobody asks for follows a limited number of changes, and is right when it is asked for again.
func TestCountsThatNobodyAsksForAreLeft(t *testing.T) {
	r := newRig(t, false)
	left := query.SearchRequest{Text: "your", Kinds: []string{"messages"}}
	asked := query.SearchRequest{Kinds: []string{"messages"}}
	save := func(n, status int) {
		r.saveMessage(map[string]any{"sid": fmt.Sprintf("SM%032x", n), "body": "your code", "status": fmt.Sprint("s", status),
			"date_sent": epoch.Format(time.RFC1123Z)})
	}
	save(0, 0)
	r.countedAs(r.s, "open", left)
	for i := range maxUnreadChanges + 200 {
		if save(i, i%3); i%100 == 0 {
			r.countedAs(r.s, "open", asked)
		}
	}
	q, err := r.s.read(as("open"), &left, epoch)
	if err != nil {
		t.Fatal(err)
	}
	k, err := r.s.counts.take(t.Context(), newCount(r.s, as("open"), &left, q).key)
	if err != nil {
		t.Fatal(err)
	}
	for table, p := range k.parts {
		table.Lock()
		if !p.count.abandoned || len(p.count.pages) > 0 {
			t.Errorf("%d changes later it is still followed", maxUnreadChanges+200)
		}
		table.Unlock()
	}
	k.release()
	anew := r.with(func(*Options) {})
	for _, a := range []query.SearchRequest{left, asked} {
		if got, want := r.countedAs(r.s, "open", a), r.countedAs(anew, "open", a); got != want {
			t.Errorf("%q: %s, want %s", a.Text, got, want)
		}
	}
}

// Counts that are made of records take no room in the columns, also of those that change.
func TestCountsOfWordsTakeNoRows(t *testing.T) {
	r := newRig(t, false)
	for n := range 3 {
		r.saveMessage(map[string]any{"sid": fmt.Sprintf("SM%032x", n), "body": "your code", "date_sent": epoch.Format(time.RFC1123Z)})
		if got := r.countedAs(r.s, "open", query.SearchRequest{Text: "your"}); !strings.HasPrefix(got, fmt.Sprintf(`[{"n":%d}`, n+1)) {
			t.Errorf("%d messages: %s", n+1, got)
		}
	}
	table := r.s.tables.Table("twilio", r.spec.Kind("messages"))
	table.Lock()
	defer table.Unlock()
	for row := range table.VisitRows {
		t.Errorf("there is a row %d", row)
	}
}

// blocked is a store that is read only when it has been asked for its edition so many times.
type blocked struct {
	reading
	left  atomic.Int64
	ready chan struct{}
}

func (s *blocked) ReadEdition(ctx context.Context, source string) (change, silent int64, err error) {
	if s.left.Add(-1) == 0 {
		close(s.ready)
	}
	return s.DB.ReadEdition(ctx, source)
}

func (s *blocked) Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error {
	<-s.ready
	return s.reading.Seek(ctx, q, yield)
}

// Many callers at once wait for one reading, also when what is kept is too old for the next caller before it ends.
func TestCallersAtOnceShareAReading(t *testing.T) {
	const callers = 8
	r := newRig(t, true)
	store := &blocked{reading: reading{DB: r.store}, ready: make(chan struct{})}
	store.left.Store(callers)
	var hours atomic.Int64
	s := r.with(func(o *Options) {
		o.Store, o.Now = store, func() time.Time { return epoch.Add(time.Duration(hours.Add(1)) * time.Hour) }
	})
	ask := query.SearchRequest{Text: "date:-9000d..", Kinds: []string{"calls"}}
	var all [callers]string
	var asking sync.WaitGroup
	for i := range callers {
		asking.Go(func() { all[i] = r.countedAs(s, "failed", ask) })
	}
	asking.Wait()
	for i, one := range all {
		if one != all[0] || strings.Contains(one, "at_least") {
			t.Errorf("caller %d: %s, the first: %s", i, one, all[0])
		}
	}
	if n := store.seeks.Load(); n != 1 {
		t.Errorf("%d readings for %d callers", n, callers)
	}
}

// A search in several sources is counted to its end, however short the time beside its hits is.
func TestCountsOfSeveralSourcesAreExact(t *testing.T) {
	r := newRig(t, true, "github")
	s := r.with(func(o *Options) {
		o.Limits = Limits{Time: time.Minute, Count: time.Nanosecond, Facets: time.Nanosecond}
	})
	out, err := s.Find(t.Context(), as("all"), query.SearchRequest{Facets: true, CountOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if want := len(r.all("all", query.SearchRequest{})); out.Total.AtLeast || out.Total.N != int64(want) {
		t.Errorf("%+v, want %d", *out.Total, want)
	}
}

// What is let go of is told of no change any more, whether for want of room or at the end of the policy.
func TestWhatIsDroppedIsTakenFromItsTables(t *testing.T) {
	r := newRig(t, true)
	set := columns.NewSet(r.store, 0, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = set.Close() })
	s := r.with(func(o *Options) { o.Columns = set })
	ask := query.SearchRequest{Kinds: []string{"calls"}}
	parts := func() (all []*part) {
		r.countedAs(s, "all", ask)
		q, err := s.read(as("all"), &ask, epoch)
		if err != nil {
			t.Fatal(err)
		}
		k, err := s.counts.take(context.Background(), newCount(s, as("all"), &ask, q).key)
		if err != nil {
			t.Fatal(err)
		}
		defer k.release()
		for _, p := range k.parts {
			all = append(all, p)
		}
		return all
	}
	check := func(when string, all []*part) {
		t.Helper()
		for _, p := range all {
			p.table.Lock()
			if !p.watch.Ended {
				t.Errorf("%s: it is still told of changes", when)
			}
			p.table.Unlock()
		}
		if len(all) != 1 {
			t.Errorf("%s: %d parts of one kind", when, len(all))
		}
	}
	all := parts()
	for i := range 3 * maxCounts {
		s.counts.find(fmt.Sprint(i))
	}
	s.counts.work.Wait()
	check("without room", all)
	all = parts()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	check("at the end", all)
	if _, err := s.Find(t.Context(), as("all"), query.SearchRequest{Kinds: ask.Kinds, CountOnly: true}); err != nil {
		t.Errorf("a search that goes on at the end: %v", err)
	}
}
