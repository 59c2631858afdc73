// Invalidations: which records writes changed, so that a fetch is old only for what
// was written after it began, and a list of records only until its newest page
// has come.

package mirror

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/request"
)

// maxTouches bounds the records remembered of a kind; above it every record
// counts as touched.
const maxTouches = 4096

// invalidations are the generations of the last writes to records of a kind.
type invalidations struct {
	mu    sync.Mutex
	of    map[string]int64
	floor int64 // a write of this generation may have touched any record

	writing map[string]*writing
}

// writing are the writes to one record that are under way.
type writing struct {
	n          int
	overlapped bool // there were two: which of them upstream did last is unknown
}

// begin notes that a write to a record is passed on. What it returns ends it, and
// reports whether others were under way meanwhile.
func (t *invalidations) begin(id string) (end func() (overlapped bool)) {
	if id == "" {
		return func() bool { return false }
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.writing == nil {
		t.writing = map[string]*writing{}
	}
	w := t.writing[id]
	if w == nil {
		w = &writing{}
		t.writing[id] = w
	}
	w.n++
	w.overlapped = w.n > 1 || w.overlapped
	return func() bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		if w.n--; w.n == 0 {
			delete(t.writing, id)
		}
		return w.overlapped
	}
}

// touch raises a kind's generation for a write to a record; "": nobody knows
// which.
func (t *invalidations) touch(generation *atomic.Int64, id string) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := generation.Add(1)
	if id == "" || len(t.of) >= maxTouches {
		t.floor = n
		clear(t.of)
		return n
	}
	if t.of == nil {
		t.of = map[string]int64{}
	}
	t.of[id] = n
	return n
}

// raise lifts a kind's generation to at least n: others wrote, and it is unknown
// what.
func (t *invalidations) raise(generation *atomic.Int64, n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if generation.Load() < n {
		generation.Store(n)
		t.floor = n
	}
}

// last is the generation of the last write that may have touched a record.
func (t *invalidations) last(id string) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(t.floor, t.of[id])
}

// invalidated reports that a write or a purge came after the flight began: what
// it brings is for its waiters and is not kept. A record's own page is old by
// writes to that record alone.
func (f *flight) invalidated() bool {
	if f.purged() {
		return true
	}
	if f.generation == f.kind.generation.Load() {
		return false
	}
	return f.target.Instance == nil || f.target.ID == "" || f.generation < f.kind.invalidations.last(f.target.ID)
}

// purged reports that a purge came after the flight began.
func (f *flight) purged() bool { return f.forgets < f.kind.forgets.Load() }

// untouched are the rows of a flight's page that no write has touched since it
// began.
func (f *flight) untouched(rows []understudy.Row) (kept []understudy.Row) {
	for _, r := range rows {
		if r.ID != "" && f.kind.invalidations.last(r.ID) <= f.generation {
			kept = append(kept, r)
		}
	}
	return kept
}

// recentWrites is what writes may have changed of a kind since the newest page came.
type recentWrites struct {
	mu   sync.Mutex
	at   time.Time       // the last
	ids  map[string]bool // records they touched, not seen since
	many bool            // more than are remembered
}

// maxRecentWrites bounds the records remembered.
const maxRecentWrites = 64

// last is when the last write was; zero: there was none.
func (w *recentWrites) last() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *recentWrites) note(now time.Time, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = now
	if id == "" {
		return
	}
	if w.ids == nil {
		w.ids = map[string]bool{}
	}
	if len(w.ids) < maxRecentWrites || w.ids[id] {
		w.ids[id] = true
	} else {
		w.many = true
	}
}

// recallWrites finds out, once for a kind, whether something was written before the
// start that no newest page has shown: then it is as if it were written now.
func (co *composer) recallWrites(ctx context.Context, k *kind) error {
	if k.written == 0 || k.recalled.Load() {
		return nil
	}
	shown := false
	for key, p := range k.source.polls() {
		if p.kind != k || !p.whole {
			continue
		}
		page, err := co.store.Page(ctx, key)
		if err != nil && !errors.Is(err, understudy.ErrNotFound) {
			return err
		}
		shown = shown || err == nil && page.Generation >= k.written
	}
	if !shown {
		k.recentWrites.note(co.now(), "")
	}
	k.recalled.Store(true)
	return nil
}

// wroteSince reports whether a write touched a kind and what it changed has not
// been seen yet: the newest page is older, or a record it named.
func (co *composer) wroteSince(ctx context.Context, k *kind, c *request.Coverage) bool {
	w := &k.recentWrites
	if co.recallWrites(ctx, k) != nil {
		return true // unknown
	}
	w.mu.Lock()
	at, many := w.at, w.many
	ids := make([]string, 0, len(w.ids))
	for id := range w.ids {
		ids = append(ids, id)
	}
	w.mu.Unlock()
	seen := c.Newest
	if seen.IsZero() || many {
		seen = c.At
	}
	if at.IsZero() {
		return false
	}
	if !seen.After(at) {
		return true
	}
	for _, id := range ids {
		rec, err := co.lookUp(ctx, k.source, k.source.Spec.Kind(k.name), id)
		if err != nil || rec != nil && (rec.Invalid || k.unflushed(id)) {
			return true // or unknown: the caller has left, or it cannot be read
		}
		w.mu.Lock()
		if w.at.Equal(at) { // not touched again meanwhile
			delete(w.ids, id)
		}
		w.mu.Unlock()
	}
	return false
}
