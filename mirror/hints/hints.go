// Package hints fetches records again of which a caller said that they may have changed.
//
// A hint for a record starts a fetch. Hints that arrive during the fetch or shortly after it cause one more fetch, a
// second after the last one began. A hint for a record whose fetch has not started yet has no effect.
package hints

import (
	"context"
	"time"

	"understudy/kit/lockwatch"
	"understudy/spec"
)

const (
	fetchInterval = time.Second           // the minimum time between the starts of two fetches of the same record
	burstWait     = 50 * time.Millisecond // how long a fetch waits before it starts, so that many hints at once cause only one fetch
	maxBackoff    = 30 * time.Second
)

// Workers is the maximum number of fetches that run at the same time because of hints.
const Workers = 4

// Record is a record that may have changed.
type Record struct {
	Source, Kind, ID string
	Target           *spec.Target // the target that fetches the record; nil if the kind has no path for a single record
}

// name identifies a record whose fetch is queued or running.
type name struct{ source, kind, id string }

// Options are the settings of a Queue.
type Options struct {
	Context context.Context // a context that ends when the mirror is closed
	Now     func() time.Time
	// Wait waits until the duration d has passed since from. It returns an error if the mirror is closed before.
	Wait func(from time.Time, d time.Duration) error
	// Go starts a goroutine of the mirror. It returns false if the mirror is closed.
	Go func(func()) bool
	// Fetch fetches a record. early is true if it joined a fetch that had started before the call.
	Fetch func(context.Context, *Record) (early bool, err error)
	// Limit returns the maximum number of records in the queue.
	Limit func() int
}

// Queue has the records with a hint whose fetch is waiting, running, or less than a second old. It is safe for concurrent use.
type Queue struct {
	options Options
	mu      lockwatch.Mutex
	hints   map[name]*hint
	refused int64
	running chan struct{} // a semaphore that limits how many fetches run at once
}

// New returns an empty queue.
func New(o Options) *Queue {
	return &Queue{options: o, hints: map[name]*hint{}, running: make(chan struct{}, Workers)}
}

// hint is a record in the queue, whose fetch is waiting, running, or less than a second old.
type hint struct {
	record   Record
	required bool     // whether the fetch is repeated until it succeeds
	ends     []func() // the functions to call after the fetch, which end intents of writes
	started  bool
	repeat   bool // whether another hint has arrived since the fetch started
}

// Load returns how many records are in the queue, and how many hints were refused because the queue was full.
func (q *Queue) Load() (known int, refused int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.hints), q.refused
}

// Add queues a fetch of a record. If end is not nil, the fetch is repeated until upstream has answered, and then end
// is called. If end is nil, the hint is dropped if the queue is full or the fetch fails.
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

// runHint fetches one record again and again while new hints for it arrive. If the record has an end function, it
// does so until upstream has answered.
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

// finishFetch reports whether a record must be fetched again. If not, it removes the record from the queue.
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
