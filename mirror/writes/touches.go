// Package writes remembers what writes have changed, until upstream and the store have
// shown or been told it: the generations of records, the writes since the newest page,
// and what is pending for the store. Many goroutines may use each type at once.
package writes

import (
	"sync"
	"sync/atomic"
)

// maxTouches bounds the records remembered of a kind; above it every record
// counts as touched.
const maxTouches = 4096

// Touches are the generations of the last writes to records of a kind.
type Touches struct {
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

// Begin notes that a write to a record is passed on. What it returns ends it, and
// reports whether others were under way meanwhile.
func (t *Touches) Begin(id string) (end func() (overlapped bool)) {
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

// Touch raises a kind's generation for a write to a record; "": it is not
// known which.
func (t *Touches) Touch(generation *atomic.Int64, id string) int64 {
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

// Raise lifts a kind's generation to at least n: others wrote, and it is unknown
// what.
func (t *Touches) Raise(generation *atomic.Int64, n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if generation.Load() < n {
		generation.Store(n)
		t.floor = n
	}
}

// Last is the generation of the last write that may have touched a record.
func (t *Touches) Last(id string) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(t.floor, t.of[id])
}
