// Weighted: a limit on what is held at once, in bytes.

// Package semaphore lets work run at once as long as its weights together stay
// under a limit.
package semaphore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// ErrTooHeavy is the error of a load heavier than the limit, when the semaphore refuses
// such loads.
var ErrTooHeavy = errors.New("semaphore: heavier than the limit")

// Options of a semaphore.
type Options struct {
	// Limit is what may be held at once, in the caller's unit (bytes). 0 or
	// less: every load counts as heavier than the limit.
	Limit int64
	// Overtake is how many later loads may be let in before one that does not fit yet. Then
	// no other load is let in until that one is. 0 = 32, less = none, first come first
	// served.
	Overtake int
	// Refuse turns away a load heavier than Limit, with ErrTooHeavy. Otherwise
	// it is let in once nothing else is held, and nothing is beside it: the one
	// case in which more than Limit is held.
	Refuse bool
}

// Weighted lets loads in while their weights together stay within a limit. First come
// is first served, but light loads pass a heavy one that does not fit yet, a bounded
// number of times. As long as loads are released, every load gets in. It is safe for
// concurrent use.
type Weighted struct {
	limit    int64
	overtake int
	refuse   bool

	mu      sync.Mutex
	held    int64 // the weights of what is let in
	loads   int   // how many that are
	stuck   int   // how many of these have a holder that waits for more
	beyond  *Load // the one that went beyond the limit so that another can end
	waiting []*waiter
	stats   Stats // the counts that only rise
}

// waiter is one that waits, in the order of coming; those whose holder has a load
// already come first.
type waiter struct {
	weight int64
	load   *Load   // it is to hold that much more
	grows  bool    // the load is held already
	held   []*Load // the loads that the waiter holds meanwhile
	passed int     // how often it was overtaken
	in     chan struct{}
}

// New makes a semaphore that holds nothing.
func New(o Options) *Weighted {
	switch {
	case o.Overtake == 0:
		o.Overtake = 32
	case o.Overtake < 0:
		o.Overtake = 0
	}
	return &Weighted{limit: max(o.Limit, 0), overtake: o.Overtake, refuse: o.Refuse}
}

// Acquire waits until weight can be held and holds it; the load must be
// released. A negative weight is 0. The error is ErrTooHeavy, at once, or that
// of ctx, wrapped; then nothing is held.
//
// held are loads that the waiter holds, and does not release before it has this one.
// The waiter then comes before those that hold nothing. When the holders of all loads
// wait, one of them goes beyond the limit: a semaphore whose loads are released when
// their work is done never comes to a standstill.
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
	w := &waiter{weight: weight, load: &Load{semaphore: s}, held: held, in: make(chan struct{})}
	s.enter(w)
	s.mu.Unlock()
	select {
	case <-w.in:
		return w.load, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.leave(w) { // let in meanwhile
		w.load.release()
	}
	s.admit()
	return nil, fmt.Errorf("semaphore: %d bytes: %w", weight, context.Cause(ctx))
}

// enter puts a waiter on the list, and lets in what fits.
func (s *Weighted) enter(w *waiter) {
	at := len(s.waiting)
	if len(w.held) > 0 {
		if i := slices.IndexFunc(s.waiting, func(w *waiter) bool { return len(w.held) == 0 }); i >= 0 {
			at = i
		}
	}
	for _, l := range w.held {
		if l.waits++; l.waits == 1 && !l.released {
			s.stuck++
		}
	}
	s.waiting = slices.Insert(s.waiting, at, w)
	s.admit()
}

// left notes that the holder of loads waits no more.
func (s *Weighted) left(w *waiter) {
	for _, l := range w.held {
		if l.waits--; l.waits == 0 && !l.released {
			s.stuck--
		}
	}
}

// leave takes a waiter that gave up off the list; false: it was let in meanwhile.
func (s *Weighted) leave(w *waiter) bool {
	i := slices.Index(s.waiting, w)
	if i < 0 {
		return false
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	s.stats.GaveUp++
	s.left(w)
	return true
}

// TryAcquire is Acquire without waiting: nil when weight cannot be held now, or
// when that would overtake one that was overtaken often enough.
func (s *Weighted) TryAcquire(weight int64) *Load {
	weight = max(weight, 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &waiter{weight: weight, load: &Load{semaphore: s}, in: make(chan struct{})}
	s.enter(w)
	if last := len(s.waiting) - 1; last >= 0 && s.waiting[last] == w {
		s.waiting = s.waiting[:last]
		return nil
	}
	return w.load
}

// admit lets in what fits, first come first served, as long as no waiter has been
// overtaken often enough.
func (s *Weighted) admit() {
	left := s.waiting[:0]
	shut := false
	for _, w := range s.waiting {
		if shut || !s.fits(w) {
			left = append(left, w)
			shut = shut || w.passed >= s.overtake
			continue
		}
		for _, ahead := range left {
			ahead.passed++
			s.stats.Overtaken++
			shut = shut || ahead.passed >= s.overtake
		}
		s.letIn(w)
	}
	clear(s.waiting[len(left):])
	s.waiting = left
	s.unstick()
}

// letIn gives one that waits what it waits for.
func (s *Weighted) letIn(w *waiter) {
	s.held += w.weight
	s.stats.Peak = max(s.stats.Peak, s.held)
	w.load.weight += w.weight
	s.left(w)
	if !w.grows {
		s.loads++
		s.stats.Admitted++
	}
	close(w.in)
}

// unstick lets one load go beyond the limit when the holders of all loads wait for
// more, because then none would ever be released. It picks the load that needs least,
// and no other until that one is released. So the semaphore holds at most one load's
// need beyond its limit.
func (s *Weighted) unstick() {
	if s.stuck == 0 || s.stuck < s.loads {
		return
	}
	var least *waiter
	for _, w := range s.waiting {
		switch {
		case len(w.held) == 0 || s.beyond != nil && !slices.Contains(w.held, s.beyond):
		case least == nil || w.weight < least.weight:
			least = w
		}
	}
	if least == nil {
		return
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(w *waiter) bool { return w == least })
	if s.beyond == nil {
		s.beyond = least.load
	}
	s.stats.Beyond++
	s.letIn(least)
}

// fits reports whether one that waits can be let in.
func (s *Weighted) fits(w *waiter) bool {
	if w.weight > s.limit {
		return !s.refuse && s.loads == 0
	}
	return w.weight <= s.limit-s.held
}

// Stats are what a semaphore holds, and the results of its callers.
type Stats struct {
	Limit, Held   int64 // bytes
	Loads         int   // let in and not released
	Waiting       int
	WaitingWeight int64 // of all waiters together
	Peak          int64 // the most that was ever held

	Admitted  int64 // let in, ever
	Overtaken int64 // how often a later load went before a waiter
	Refused   int64 // turned away: heavier than the limit
	GaveUp    int64 // their context ended while they waited
	NotGrown  int64 // TryGrow did not fit
	Beyond    int64 // let in beyond the limit, because no load could have ended otherwise
}

// Stats are the numbers of this moment.
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
