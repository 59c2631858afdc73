// The rules of a store with a limit: what goes, what stays, and that what is
// still there is what it was.

package storetest

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"understudy"
	"understudy/internal/store"
	"understudy/request"
)

// Limit is the limit in bytes of the stores that RunLimited opens.
const Limit = 1 << 20

// RunLimited runs the rules of a store with a limit. open returns a new, empty store with that limit and clock
// each time, and closes it with t.Cleanup.
func RunLimited(t *testing.T, open func(t testing.TB, limit int64, now func() time.Time) Store) {
	t.Run("what-was-not-read-for-longest-goes-first", func(t *testing.T) {
		w := &watch{}
		longestUnreadGoesFirst(t, &suite{T: t, Store: open(t, Limit, w.Now)}, w)
	})
	t.Run("what-is-replaced-makes-room", func(t *testing.T) {
		w := &watch{}
		replacedMakesRoom(t, &suite{T: t, Store: open(t, Limit, w.Now)}, w)
	})
	t.Run("records-stay", func(t *testing.T) {
		w := &watch{}
		recordsStay(t, &suite{T: t, Store: open(t, Limit, w.Now)}, w)
	})
	t.Run("any-history-near-the-limit", func(t *testing.T) {
		w, run := &watch{}, 0
		var s Store
		rapid.Check(t, func(rt *rapid.T) {
			if run%histories == 0 {
				s = open(t, Limit, w.Now)
			}
			run++
			k := (&suite{T: t, Store: s}).kind("calls")
			h := &crowded{T: rt, Store: s, watch: w, run: run, before: k.Changes, generation: k.Generation, pages: map[string]*understudy.Page{},
				bodies: map[string]string{}}
			for range rapid.IntRange(10, 40).Draw(rt, "steps") {
				h.step()
			}
			h.compare()
		})
	})
}

// histories is the number of random histories that are written to one store before the next store is opened.
const histories = 6

// watch is a clock that the test sets. Several goroutines may read it.
type watch struct{ seconds atomic.Int64 }

func (w *watch) Now() time.Time { return at(int(w.seconds.Load())) }

// pass moves the clock forward and returns the new time.
func (w *watch) pass(d time.Duration) time.Time {
	w.seconds.Add(int64(d / time.Second))
	return w.Now()
}

// noise returns a text that compresses badly.
func noise(seed uint64, n int) string {
	r := rand.New(rand.NewPCG(seed, 1))
	raw := make([]byte, n*3/4)
	for i := range raw {
		raw[i] = byte(r.Uint32())
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// large returns a record whose body has about a kilobyte. Each state has another body.
func large(n int, state uint64) row {
	return row{id: sid(n), body: fmt.Sprintf(`{"sid": "%s", "noise": "%s"}`, sid(n), noise(uint64(n)<<32|state, 1000))}
}

// largeList returns a list of the 20 records from number from on, all in the same state.
func largeList(uri string, when time.Time, from int, state uint64) *understudy.Page {
	var rows []row
	for i := range 20 {
		rows = append(rows, large(from+i, state))
	}
	return list(uri, when, rows...)
}

func (s *suite) space() store.Space {
	s.Helper()
	space, err := s.MeasureSpace(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	if space.File > Limit || space.Limit != Limit {
		s.Fatalf("space %+v, with a limit of %d", space, Limit)
	}
	return space
}

// evict evicts pages and versions, and checks that the store is within its limit.
func (s *suite) evict() store.Space {
	s.Helper()
	if err := s.Evict(s.Context()); err != nil {
		s.Fatal(err)
	}
	return s.space()
}

// Pages are replaced hour after hour; the first ones are read now and then.
func longestUnreadGoesFirst(t *testing.T, s *suite, w *watch) {
	var pages []*understudy.Page
	uri := func(n int) string { return fmt.Sprintf("/%d", n) }
	for s.space().EvictedPages == 0 {
		n := len(pages)
		if n == 2000 {
			t.Fatal("nothing was evicted")
		}
		// The same few records, so that pages share them and differ by little.
		p := largeList(uri(n), w.pass(time.Hour), 0, uint64(n/8))
		pages = append(pages, p)
		s.save(p)
		if n%5 == 0 {
			for i := 0; i < n; i += 50 {
				s.page(pages[i])
			}
		}
		s.evict()
	}
	held := map[int]bool{}
	for i, p := range pages {
		if _, err := s.ReadPage(t.Context(), p.Key); err == nil {
			held[i] = true
			s.page(p)
		} else if !errors.Is(err, understudy.ErrNotFound) {
			t.Fatal(err)
		}
	}
	going := true
	for i := range pages {
		switch {
		case i%50 == 0 && i+5 < len(pages):
			if !held[i] {
				t.Errorf("page %d of %d was read lately and went", i, len(pages))
			}
		case !held[i] && !going:
			t.Errorf("page %d of %d went before one that was unread for longer", i, len(pages))
		case held[i]:
			going = false
		}
	}
	space := s.space()
	if int(space.EvictedPages) != len(pages)-len(held) || space.EvictedAt.IsZero() {
		t.Errorf("%d of %d pages are held, but %+v", len(held), len(pages), space)
	}
	mustVerify(t, s.Store)
}

// The same records change again and again: many times the limit in all, and
// nothing is ever refused.
func replacedMakesRoom(t *testing.T, s *suite, w *watch) {
	var last *understudy.Page
	for n := range 150 {
		last = largeList("/l", w.pass(time.Minute), 0, uint64(n))
		s.save(last)
		s.evict()
	}
	s.page(last)
	for i := range 20 {
		s.record(large(i, 149))
	}
	if space := s.space(); space.EvictedVersions < 1500 {
		t.Errorf("%+v: want most of 3,000 versions evicted", space)
	}
	if all := s.changes(); len(all) != 3000 || all[0].ID != sid(0) || all[2999].ID != sid(19) {
		t.Errorf("%d changes", len(all))
	}
	mustVerify(t, s.Store)
}

// New records fill the store: in the end pages are refused, not records lost.
func recordsStay(t *testing.T, s *suite, w *watch) {
	n := 0
	for ; n < 500; n++ {
		p := largeList(fmt.Sprintf("/%d", n), w.pass(time.Minute), 20*n, 0)
		if _, err := s.Save(t.Context(), p); err != nil {
			var reason interface{ ShortString() string }
			if !errors.Is(err, understudy.ErrNotStored) || !errors.As(err, &reason) || reason.ShortString() != "store.limit reached" {
				t.Fatal(err)
			}
			break
		}
		s.evict()
	}
	if n < 10 || n == 500 {
		t.Fatalf("%d pages were stored", n)
	}
	for i := range 20 * n {
		s.record(large(i, 0))
	}
	mustVerify(t, s.Store)
}

// crowded is a random history of a store that is nearly full.
type crowded struct {
	*rapid.T
	Store
	watch      *watch
	run        int                         // keeps its pages and records apart
	before     int64                       // changes before it
	pages      map[string]*understudy.Page // as last saved, unless forgotten
	bodies     map[string]string           // by id: the newest, unless forgotten
	ids        []string                    // of all changes, in order
	generation int64
}

func (h *crowded) step() {
	ctx := context.Background()
	h.watch.pass(time.Duration(rapid.IntRange(1, 100_000).Draw(h.T, "seconds")) * time.Second)
	switch rapid.SampledFrom([]string{"save", "save", "save", "save", "read", "touch", "evict", "page", "record"}).Draw(h.T, "step") {
	case "save":
		h.save()
	case "read":
		h.read(h.uri())
	case "touch":
		g, err := h.Touch(ctx, request.Invalidation{Source: Source, Kind: "calls", ID: h.id()})
		if err != nil {
			h.Fatal(err)
		}
		h.generation = g
	case "evict":
		if err := h.Evict(ctx); err != nil {
			h.Fatal(err)
		}
	case "page":
		uri := h.uri()
		if _, err := h.ForgetPage(ctx, key(uri)); err != nil {
			h.Fatal(err)
		}
		delete(h.pages, uri)
	case "record":
		h.forget(h.id())
	}
	if space, err := h.MeasureSpace(ctx); err != nil || space.File > Limit {
		h.Fatalf("space %+v, %v", space, err)
	}
}

func (h *crowded) uri() string { return h.uriOf(rapid.IntRange(0, 30).Draw(h.T, "uri")) }
func (h *crowded) id() string  { return sid(h.number(rapid.IntRange(0, 40).Draw(h.T, "id"))) }

func (h *crowded) uriOf(n int) string { return fmt.Sprint("/", h.run, "/", n) }
func (h *crowded) number(n int) int   { return h.run*1000 + n }

func (h *crowded) save() {
	var rows []row
	from := rapid.IntRange(0, 25).Draw(h.T, "from")
	for i := range rapid.IntRange(1, 25).Draw(h.T, "rows") {
		rows = append(rows, large(h.number((from+i)%41), uint64(rapid.IntRange(0, 20).Draw(h.T, "state"))))
	}
	p := list(h.uri(), h.watch.Now(), rows...)
	p.Generation = h.generation
	saved, err := h.Save(context.Background(), p)
	if errors.Is(err, understudy.ErrNotStored) {
		return
	}
	if err != nil {
		h.Fatal(err)
	}
	h.pages[p.Key.URI] = p
	for _, r := range rows {
		h.bodies[r.id] = r.body
	}
	for _, c := range saved.Changes {
		h.ids = append(h.ids, c.ID)
	}
}

// forget forgets a record, and with it the pages that show it.
func (h *crowded) forget(id string) {
	if _, _, err := h.ForgetRecord(context.Background(), Source, "calls", id); err != nil {
		h.Fatal(err)
	}
	delete(h.bodies, id)
	for uri, p := range h.pages {
		for _, r := range p.Rows {
			if r.ID == id {
				delete(h.pages, uri)
			}
		}
	}
}

// read reads a page. It must be the page that was saved last, or not found.
func (h *crowded) read(uri string) {
	got, err := h.ReadPage(context.Background(), key(uri))
	want := h.pages[uri]
	switch {
	case errors.Is(err, understudy.ErrNotFound):
	case err != nil:
		h.Fatal(err)
	case want == nil:
		h.Fatalf("page %s came back", uri)
	case string(got.Body) != string(want.Body) || !got.At.Equal(want.At) || got.Sum != sum(want.Body):
		h.Fatalf("page %s is not what it was", uri)
	}
}

func (h *crowded) compare() {
	ctx := context.Background()
	for n := range 31 {
		h.read(h.uriOf(n))
	}
	for n := range 41 {
		id := sid(h.number(n))
		rec, err := h.Record(ctx, Source, "calls", "calls", id)
		want, held := h.bodies[id]
		if held != (err == nil) || held && string(rec.Body) != want {
			h.Fatalf("record %d: %v, want it held: %v", n, err, held)
		}
	}
	all, err := h.ReadChanges(ctx, Source, h.before, store.MaxChanges)
	if err != nil || len(all) != len(h.ids) {
		h.Fatalf("%d changes, want %d, %v", len(all), len(h.ids), err)
	}
	for i, c := range all {
		if c.N != h.before+int64(i)+1 || c.ID != h.ids[i] {
			h.Fatalf("change %d is %+v, want of %s", i+1, c, h.ids[i])
		}
	}
	mustVerify(h.T, h.Store)
}
