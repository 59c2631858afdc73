// Scale: a limit on what is held at once, in bytes.

// Package weigh lets work run at once as long as its weights together stay
// under a limit.
package weigh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// ErrTooHeavy is what a scale that refuses says to a load heavier than its
// limit.
var ErrTooHeavy = errors.New("weigh: heavier than the limit")

// Options of a scale.
type Options struct {
	// Limit is what may be held at once, in the caller's unit (bytes). 0 or
	// less: every load counts as heavier than the limit.
	Limit int64
	// Overtake is how many later ones may be let in before one that waits
	// because it does not fit yet; then nobody is until it is in. 0 = 32, less
	// = none, first come first served.
	Overtake int
	// Refuse turns away a load heavier than Limit, with ErrTooHeavy. Otherwise
	// it is let in once nothing else is held, and nothing is beside it: the one
	// case in which more than Limit is held.
	Refuse bool
}

// Scale lets loads in while their weights together stay within a limit. Who
// comes first goes first, but light ones pass a heavy one that waits for room,
// a bounded number of times: as long as what is held is given back, everyone
// gets in. It is safe for concurrent use.
type Scale struct {
	limit    int64
	overtake int
	refuse   bool

	mu      sync.Mutex
	held    int64 // the weights of what is let in
	loads   int   // how many that are
	waiting []*waiter
	stats   Stats // the counts that only rise
}

// waiter is one that waits, in the order of coming.
type waiter struct {
	weight int64
	passed int // how often it was overtaken
	in     chan struct{}
}

// New makes a scale that holds nothing.
func New(o Options) *Scale {
	switch {
	case o.Overtake == 0:
		o.Overtake = 32
	case o.Overtake < 0:
		o.Overtake = 0
	}
	return &Scale{limit: max(o.Limit, 0), overtake: o.Overtake, refuse: o.Refuse}
}

// Acquire waits until weight can be held and holds it; the load must be
// released. A negative weight is 0. The error is ErrTooHeavy, at once, or that
// of ctx, wrapped; then nothing is held.
func (s *Scale) Acquire(ctx context.Context, weight int64) (*Load, error) {
	weight = max(weight, 0)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("weigh: %d bytes: %w", weight, context.Cause(ctx))
	}
	s.mu.Lock()
	if weight > s.limit && s.refuse {
		s.stats.Refused++
		s.mu.Unlock()
		return nil, fmt.Errorf("%w: %d of %d bytes", ErrTooHeavy, weight, s.limit)
	}
	w := &waiter{weight: weight, in: make(chan struct{})}
	s.waiting = append(s.waiting, w)
	s.admit()
	s.mu.Unlock()
	select {
	case <-w.in:
		return &Load{scale: s, weight: weight}, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, w); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		s.stats.GaveUp++
	} else { // let in meanwhile
		s.held -= weight
		s.loads--
	}
	s.admit()
	return nil, fmt.Errorf("weigh: %d bytes: %w", weight, context.Cause(ctx))
}

// TryAcquire is Acquire without waiting: nil when weight cannot be held now, or
// when that would overtake one that was overtaken often enough.
func (s *Scale) TryAcquire(weight int64) *Load {
	weight = max(weight, 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &waiter{weight: weight, in: make(chan struct{})}
	s.waiting = append(s.waiting, w)
	s.admit()
	if last := len(s.waiting) - 1; last >= 0 && s.waiting[last] == w {
		s.waiting = s.waiting[:last]
		return nil
	}
	return &Load{scale: s, weight: weight}
}

// admit lets in whoever fits, first come first served, as far as those who do
// not fit yet have not been overtaken often enough.
func (s *Scale) admit() {
	left := s.waiting[:0]
	shut := false
	for _, w := range s.waiting {
		if shut || !s.fits(w.weight) {
			left = append(left, w)
			shut = shut || w.passed >= s.overtake
			continue
		}
		for _, ahead := range left {
			ahead.passed++
			s.stats.Overtaken++
			shut = shut || ahead.passed >= s.overtake
		}
		s.held += w.weight
		s.loads++
		s.stats.Admitted++
		s.stats.Peak = max(s.stats.Peak, s.held)
		close(w.in)
	}
	clear(s.waiting[len(left):])
	s.waiting = left
}

// fits reports whether one more load can be held.
func (s *Scale) fits(weight int64) bool {
	if weight > s.limit {
		return !s.refuse && s.loads == 0
	}
	return weight <= s.limit-s.held
}

// Load is what one holder holds. It is safe for concurrent use.
type Load struct {
	scale    *Scale
	weight   int64 // under scale.mu, like released
	released bool
}

// Weight is what it holds; 0 once it is released.
func (l *Load) Weight() int64 {
	l.scale.mu.Lock()
	defer l.scale.mu.Unlock()
	return l.weight
}

// TryGrow holds weight more if there is room for it now, and else says false
// and holds what it held. It never waits, and goes before all who do: a load
// at work that gets on is sooner out of the way. A load that is alone grows
// beyond the limit, unless the scale refuses that. A released load does not
// grow; a weight of 0 or less changes nothing.
func (l *Load) TryGrow(weight int64) bool {
	s := l.scale
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case l.released:
		return false
	case weight <= 0:
		return true
	case weight <= s.limit-s.held, !s.refuse && s.loads == 1 && l.weight+weight > 0:
		l.weight += weight
		s.held += weight
		s.stats.Peak = max(s.stats.Peak, s.held)
		return true
	}
	s.stats.NotGrown++
	return false
}

// Shrink holds weight less, at least 0, and lets others in. It never waits.
func (l *Load) Shrink(weight int64) {
	s := l.scale
	s.mu.Lock()
	defer s.mu.Unlock()
	l.shrink(max(weight, 0))
}

func (l *Load) shrink(weight int64) {
	weight = min(weight, l.weight)
	l.weight -= weight
	l.scale.held -= weight
	l.scale.admit()
}

// Release gives back what the load still holds and lets others in. A second
// Release does nothing.
func (l *Load) Release() {
	s := l.scale
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.released {
		return
	}
	l.released = true
	s.loads--
	l.shrink(l.weight)
}

// Stats tell what a scale holds and what came of those who asked.
type Stats struct {
	Limit, Held   int64 // bytes
	Loads         int   // let in and not released
	Waiting       int
	WaitingWeight int64 // of those who wait, together
	Peak          int64 // the most that was ever held

	Admitted  int64 // let in, ever
	Overtaken int64 // how often somebody went before one who waited
	Refused   int64 // turned away: heavier than the limit
	GaveUp    int64 // their context ended while they waited
	NotGrown  int64 // TryGrow found no room
}

// Stats are the numbers of this moment.
func (s *Scale) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Limit, st.Held, st.Loads, st.Waiting = s.limit, s.held, s.loads, len(s.waiting)
	for _, w := range s.waiting {
		st.WaitingWeight += w.weight
	}
	return st
}
