// Weighted: limits the sum of weights held at once, such as bytes.

// Package semaphore lets operations run at once as long as the sum of their weights is within a limit.
package semaphore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// ErrTooHeavy is the error for a load heavier than the limit, if the semaphore refuses such loads.
var ErrTooHeavy = errors.New("semaphore: heavier than the limit")

// Options are the options of a semaphore.
type Options struct {
	// Limit is the maximum sum of weights held at once, in a unit that the caller chooses, such as bytes. If it
	// is 0 or less, every load counts as heavier than the limit.
	Limit int64
	// Overtake is how many later loads may be admitted before a waiting load that does not fit yet. After that no other
	// load is admitted before the waiting load. 0 means 32. A negative number means that loads are admitted strictly in
	// order of arrival.
	Overtake int
	// Refuse makes Acquire return ErrTooHeavy for a load heavier than Limit. Otherwise such a load is admitted
	// when nothing else is held, and runs alone. Only in that case more than Limit is held.
	Refuse bool
}

// Weighted admits loads while the sum of their weights is within a limit. Loads are admitted in order of
// arrival, but light loads may overtake a heavy load that does not fit yet, a limited number of times. As long
// as holders release their loads, every load is admitted at some time. Weighted is safe for concurrent use.
type Weighted struct {
	limit    int64
	overtake int
	refuse   bool

	mu        sync.Mutex
	held      int64 // the sum of the weights of all admitted loads
	loads     int   // the number of admitted loads
	blocked   int   // the number of admitted loads whose holder waits for more weight
	overLimit *Load // the load that exceeded the limit to end a deadlock, or nil
	waiting   []*waiter
	stats     Stats // only the counters in it that never decrease are used
}

// waiter is a waiting call. Waiters are in order of arrival, but those whose caller already holds loads come first.
type waiter struct {
	weight    int64
	load      *Load   // the load that will get the weight
	grows     bool    // whether the load is already admitted
	held      []*Load // the loads that the caller keeps while it waits
	overtaken int     // how many times a later load was admitted before this waiter
	admitted  chan struct{}
}

// New returns a semaphore without loads.
func New(o Options) *Weighted {
	switch {
	case o.Overtake == 0:
		o.Overtake = 32
	case o.Overtake < 0:
		o.Overtake = 0
	}
	return &Weighted{limit: max(o.Limit, 0), overtake: o.Overtake, refuse: o.Refuse}
}

// Acquire waits until weight can be held, and returns a load that the caller must release. A negative weight
// counts as 0. If the semaphore refuses the weight, Acquire returns ErrTooHeavy at once. If ctx ends, it
// returns the wrapped cause. After an error nothing is held.
//
// The caller lists in held the loads that it already holds and will not release before it gets this one. It
// then takes precedence over callers that hold nothing. If the holders of all loads wait, one of them may
// exceed the limit. So the semaphore never stays in a deadlock, as long as loads are released when their work
// is done.
func (s *Weighted) Acquire(ctx context.Context, weight int64, held ...*Load) (*Load, error) {
	weight = max(weight, 0)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("semaphore: %d bytes: %w", weight, context.Cause(ctx))
	}
	s.mu.Lock()
	if weight > s.limit && s.refuse {
		s.stats.Refused++
		s.mu.Unlock()
		return nil, fmt.Errorf("%w: %d of %d bytes", ErrTooHeavy, weight, s.limit)
	}
	w := &waiter{weight: weight, load: &Load{semaphore: s}, held: held, admitted: make(chan struct{})}
	s.addWaiter(w)
	s.mu.Unlock()
	select {
	case <-w.admitted:
		return w.load, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.removeWaiter(w) { // the load was admitted meanwhile
		w.load.release()
	}
	s.admit()
	return nil, fmt.Errorf("semaphore: %d bytes: %w", weight, context.Cause(ctx))
}

// addWaiter adds a waiter to the list and admits the waiters that fit.
func (s *Weighted) addWaiter(w *waiter) {
	at := len(s.waiting)
	if len(w.held) > 0 {
		if i := slices.IndexFunc(s.waiting, func(w *waiter) bool { return len(w.held) == 0 }); i >= 0 {
			at = i
		}
	}
	for _, l := range w.held {
		if l.waits++; l.waits == 1 && !l.released {
			s.blocked++
		}
	}
	s.waiting = slices.Insert(s.waiting, at, w)
	s.admit()
}

// endWait records that the holder of the waiter's held loads no longer waits.
func (s *Weighted) endWait(w *waiter) {
	for _, l := range w.held {
		if l.waits--; l.waits == 0 && !l.released {
			s.blocked--
		}
	}
}

// removeWaiter removes a waiter that gave up. It returns false if the waiter was admitted meanwhile.
func (s *Weighted) removeWaiter(w *waiter) bool {
	i := slices.Index(s.waiting, w)
	if i < 0 {
		return false
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	s.stats.GaveUp++
	s.endWait(w)
	return true
}

// TryAcquire acquires weight without waiting. It returns nil if weight cannot be held now, or if that would
// overtake a waiter that was overtaken Overtake times already.
func (s *Weighted) TryAcquire(weight int64) *Load {
	weight = max(weight, 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &waiter{weight: weight, load: &Load{semaphore: s}, admitted: make(chan struct{})}
	s.addWaiter(w)
	if last := len(s.waiting) - 1; last >= 0 && s.waiting[last] == w {
		s.waiting = s.waiting[:last]
		return nil
	}
	return w.load
}

// admit admits the waiters that fit in their order. It stops after a waiter that does not fit and was overtaken
// as often as allowed.
func (s *Weighted) admit() {
	left := s.waiting[:0]
	shut := false
	for _, w := range s.waiting {
		if shut || !s.canAdmit(w) {
			left = append(left, w)
			shut = shut || w.overtaken >= s.overtake
			continue
		}
		for _, ahead := range left {
			ahead.overtaken++
			s.stats.Overtaken++
			shut = shut || ahead.overtaken >= s.overtake
		}
		s.grantWeight(w)
	}
	clear(s.waiting[len(left):])
	s.waiting = left
	s.resolveDeadlock()
}

// grantWeight gives a waiter the weight that it waits for.
func (s *Weighted) grantWeight(w *waiter) {
	s.held += w.weight
	s.stats.Peak = max(s.stats.Peak, s.held)
	w.load.weight += w.weight
	s.endWait(w)
	if !w.grows {
		s.loads++
		s.stats.Admitted++
	}
	close(w.admitted)
}

// resolveDeadlock lets one load exceed the limit when the holders of all loads wait for more weight, because
// then no load would ever be released. It chooses the load that needs the least weight, and no other load
// before that one is released. So the limit is exceeded by the need of a single load at most.
func (s *Weighted) resolveDeadlock() {
	if s.blocked == 0 || s.blocked < s.loads {
		return
	}
	var least *waiter
	for _, w := range s.waiting {
		switch {
		case len(w.held) == 0 || s.overLimit != nil && !slices.Contains(w.held, s.overLimit):
		case least == nil || w.weight < least.weight:
			least = w
		}
	}
	if least == nil {
		return
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(w *waiter) bool { return w == least })
	if s.overLimit == nil {
		s.overLimit = least.load
	}
	s.stats.OverLimit++
	s.grantWeight(least)
}

// canAdmit reports whether the weight of a waiter fits now.
func (s *Weighted) canAdmit(w *waiter) bool {
	if w.weight > s.limit {
		return !s.refuse && s.loads == 0
	}
	return w.weight <= s.limit-s.held
}

// Stats describes what a semaphore holds, and counts the results of its callers.
type Stats struct {
	Limit, Held   int64 // the maximum and the current sum of weights, in the caller's unit, such as bytes
	Loads         int   // the number of loads admitted and not yet released
	Waiting       int
	WaitingWeight int64 // the sum of the weights of all waiters
	Peak          int64 // the largest value of Held so far

	Admitted  int64 // the number of loads admitted so far
	Overtaken int64 // how many times a later load was admitted before a waiter
	Refused   int64 // the number of loads refused because they are heavier than the limit
	GaveUp    int64 // the number of calls whose context ended while they waited
	NotGrown  int64 // the number of calls of TryGrow that returned false
	OverLimit int64 // the number of loads admitted beyond the limit to end a deadlock
}

// Stats returns the current numbers.
func (s *Weighted) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Limit, st.Held, st.Loads, st.Waiting = s.limit, s.held, s.loads, len(s.waiting)
	for _, w := range s.waiting {
		st.WaitingWeight += w.weight
	}
	return st
}
