// Invalidations: which records writes changed, so that a fetch is old only for what
// was written after it began.

package mirror

import (
	"sync"
	"sync/atomic"

	"understudy"
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
	overlapped bool // there were two: nobody knows which of them upstream did last
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

// raise lifts a kind's generation to at least n: others wrote, and nobody knows
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
