// Package hints fetches records that may have changed, because a caller said so.
//
// A hint for a record starts a fetch. A hint during the fetch or just after it causes one more fetch, a
// second after the last began. A hint for a record whose fetch still waits has no effect.
package hints

import (
	"context"
	"sync"
	"time"

	"understudy/spec"
)

const (
	fetchInterval = time.Second           // minimum time between two fetches of one record
	burstWait     = 50 * time.Millisecond // wait before a fetch, so that a burst of hints causes one fetch
	maxBackoff    = 30 * time.Second
)

// Workers is the maximum number of fetches for hints at once.
const Workers = 4

// Record is the record that a hint names.
type Record struct {
	Source, Kind, ID string
	Target           *spec.Target // nil if the kind has no path of a single record
}

// name identifies a record.
type name struct{ source, kind, id string }

// Options are the settings of a Queue.
type Options struct {
	Context context.Context // a context that ends when the mirror is closed
	Now     func() time.Time
	// Wait waits until d after from. It returns an error if the mirror ends first.
	Wait func(from time.Time, d time.Duration) error
	// Go starts a goroutine of the mirror. It returns false if the mirror is closed.
	Go func(func()) bool
	// Fetch fetches a record. early reports that it shared a fetch that had started before.
	Fetch func(context.Context, *Record) (early bool, err error)
	// Limit returns how many records may wait at once.
	Limit func() int
}

// Queue is the set of records with a recent hint. Many goroutines may use it at once.
type Queue struct {
	options Options
	mu      sync.Mutex
	hints   map[name]*hint
	refused int64
	running chan struct{} // limits concurrent fetches
}

// New returns a queue without hints.
func New(o Options) *Queue {
	return &Queue{options: o, hints: map[name]*hint{}, running: make(chan struct{}, Workers)}
}

// hint is the fetch of one record: it waits, runs, or ended less than a second ago.
type hint struct {
	record   Record
	required bool     // the fetch is repeated until it succeeds
	ends     []func() // functions that end the intents of writes
	started  bool
	repeat   bool // a hint came after the fetch started
}

// Load returns how many records have a hint and how many hints were refused.
func (q *Queue) Load() (known int, refused int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.hints), q.refused
}

// Add queues a fetch of a record. With end, the fetch is tried until upstream has answered, and then end is
// called. Without end, the hint is dropped if too many wait or the fetch fails.
func (q *Queue) Add(r Record, end func()) {
	owed, n := end != nil, name{r.Source, r.Kind, r.ID}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch h := q.hints[n]; {
	case h != nil:
		h.repeat, h.required = h.repeat || h.started, h.required || owed
		if owed {
			h.ends = append(h.ends, end)
		}
	case !owed && len(q.hints) >= q.options.Limit():
		q.refused++
	default:
		h = &hint{record: r, required: owed}
		if owed {
			h.ends = append(h.ends, end)
		}
		if q.options.Go(func() { q.runHint(n, h) }) {
			q.hints[n] = h
		}
	}
}

// runHint fetches one record as long as hints come, and a required one until upstream has answered.
func (q *Queue) runHint(n name, h *hint) {
	wait, fails := burstWait, 0
	for {
		if q.options.Wait(q.options.Now(), wait) != nil {
			return
		}
		select {
		case q.running <- struct{}{}:
		case <-q.options.Context.Done():
			return
		}
		q.mu.Lock()
		h.started, h.repeat = true, false
		q.mu.Unlock()
		began := q.options.Now()
		early, err := q.options.Fetch(q.options.Context, &h.record)
		<-q.running
		if fails++; err == nil {
			fails = 0
		}
		if q.options.Wait(began, fetchInterval) != nil || !q.finishFetch(n, h, early, err) {
			return
		}
		wait = 0
		if fails > 1 {
			wait = min(fetchInterval<<min(fails-2, 10), maxBackoff)
		}
	}
}

// finishFetch reports whether a record must be fetched again. Otherwise it removes the hint.
func (q *Queue) finishFetch(n name, h *hint, early bool, err error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if h.repeat || early || h.required && err != nil {
		h.started = false
		return true
	}
	delete(q.hints, n)
	for _, end := range h.ends {
		end()
	}
	return false
}
