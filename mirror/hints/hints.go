// Package hints has records fetched of which a caller says that they changed.
//
//	hint --> of nothing known ---> fetched
//	     --> of one being fetched, fetched once more, a second after the last
//	         or just so            began, however many hints came meanwhile
//	     --> of one that waits --> nothing: what comes is new enough
package hints

import (
	"context"
	"sync"
	"time"

	"understudy/spec"
)

const (
	every    = time.Second           // between two fetches of one record
	after    = 50 * time.Millisecond // so that a burst is one fetch
	maxRetry = 30 * time.Second
)

// Workers is how many fetches for hints there are at once.
const Workers = 4

// Record is what is hinted at.
type Record struct {
	Source, Kind, ID string
	Target           *spec.Target // nil: the kind has no instance
}

// name tells records apart.
type name struct{ source, kind, id string }

// Options are what a Queue works with.
type Options struct {
	Context context.Context // ends with the mirror
	Now     func() time.Time
	// Wait waits until so long after a time, or until the mirror ends, which is an error.
	Wait func(from time.Time, d time.Duration) error
	// Go begins a goroutine of the mirror; false: it is closed.
	Go func(func()) bool
	// Fetch fetches a record. early says that it shared a fetch that had begun before.
	Fetch func(context.Context, *Record) (early bool, err error)
	// Limit is how many records may wait at once.
	Limit func() int
}

// Queue is the records that were lately hinted at. Many goroutines may use it at once.
type Queue struct {
	o       Options
	mu      sync.Mutex
	known   map[name]*hint
	refused int64
	running chan struct{} // a place for each fetch
}

// New is a queue without hints.
func New(o Options) *Queue {
	return &Queue{o: o, known: map[name]*hint{}, running: make(chan struct{}, Workers)}
}

// hint is one record's fetch: waiting for its turn, under way, or over for less
// than a second.
type hint struct {
	record Record
	owed   bool     // a fetch that fails is tried again
	ends   []func() // of the intents of writes that ask for it
	begun  bool
	again  bool // a hint came after it began
}

// Load is how many records are known, and how many hints were refused.
func (q *Queue) Load() (known int, refused int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.known), q.refused
}

// Add has a record fetched. With end it is owed: its fetch is tried until upstream has
// answered, and then end is called. A candidate, without end, is forgotten when there
// are many or when its fetch fails.
func (q *Queue) Add(r Record, end func()) {
	owed, n := end != nil, name{r.Source, r.Kind, r.ID}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch h := q.known[n]; {
	case h != nil:
		h.again, h.owed = h.again || h.begun, h.owed || owed
		if owed {
			h.ends = append(h.ends, end)
		}
	case !owed && len(q.known) >= q.o.Limit():
		q.refused++
	default:
		h = &hint{record: r, owed: owed}
		if owed {
			h.ends = append(h.ends, end)
		}
		if q.o.Go(func() { q.look(n, h) }) {
			q.known[n] = h
		}
	}
}

// look fetches one record for as long as hints come, and an owed one until
// upstream has answered.
func (q *Queue) look(n name, h *hint) {
	wait, fails := after, 0
	for {
		if q.o.Wait(q.o.Now(), wait) != nil {
			return
		}
		select {
		case q.running <- struct{}{}:
		case <-q.o.Context.Done():
			return
		}
		q.mu.Lock()
		h.begun, h.again = true, false
		q.mu.Unlock()
		began := q.o.Now()
		early, err := q.o.Fetch(q.o.Context, &h.record)
		<-q.running
		if fails++; err == nil {
			fails = 0
		}
		if q.o.Wait(began, every) != nil || !q.lookAgain(n, h, early, err) {
			return
		}
		wait = 0
		if fails > 1 {
			wait = min(every<<min(fails-2, 10), maxRetry)
		}
	}
}

// lookAgain reports whether a record is to be fetched again; else its hints are
// forgotten.
func (q *Queue) lookAgain(n name, h *hint, early bool, err error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if h.again || early || h.owed && err != nil {
		h.begun = false
		return true
	}
	delete(q.known, n)
	for _, end := range h.ends {
		end()
	}
	return false
}
