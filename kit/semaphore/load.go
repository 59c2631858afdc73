// Load: what one holder holds; it grows and shrinks.

package semaphore

import (
	"context"
	"fmt"
)

// Load is what one holder holds. It is safe for concurrent use.
type Load struct {
	semaphore *Weighted
	weight    int64 // under semaphore.mu, like the rest
	waits     int   // how many of its holder's waits it is held in
	released  bool
}

// Weight is what it holds; 0 once it is released.
func (l *Load) Weight() int64 {
	l.semaphore.mu.Lock()
	defer l.semaphore.mu.Unlock()
	return l.weight
}

// TryGrow holds weight more if it fits now; else it returns false and holds what it
// held. It never waits, and goes before all waiters: a load that can go on ends sooner.
// A load that is alone grows beyond the limit, unless the semaphore refuses that. A
// released load does not grow. A weight of 0 or less changes nothing.
func (l *Load) TryGrow(weight int64) bool {
	s := l.semaphore
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

// Grow holds weight more, and waits until it fits. l and held are as the loads held of
// Acquire. A load waits once at a time. The error is ErrTooHeavy, at once, when the
// semaphore refuses the new weight, or that of ctx, wrapped. Then the load holds what
// it held. A released load does not grow: the error is ErrTooHeavy.
func (l *Load) Grow(ctx context.Context, weight int64, held ...*Load) error {
	if l.TryGrow(weight) {
		return nil
	}
	s := l.semaphore
	s.mu.Lock()
	if l.released || s.refuse && l.weight+weight > s.limit {
		s.stats.Refused++
		s.mu.Unlock()
		return fmt.Errorf("%w: %d more of %d bytes", ErrTooHeavy, weight, s.limit)
	}
	w := &waiter{weight: weight, load: l, grows: true, held: append(held, l), in: make(chan struct{})}
	s.enter(w)
	s.mu.Unlock()
	select {
	case <-w.in:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.leave(w) { // let in meanwhile
		l.weight -= weight
		s.held -= weight
	}
	s.admit()
	return fmt.Errorf("semaphore: %d bytes more: %w", weight, context.Cause(ctx))
}

// Shrink holds weight less, at least 0, and lets others in. It never waits.
func (l *Load) Shrink(weight int64) {
	s := l.semaphore
	s.mu.Lock()
	defer s.mu.Unlock()
	l.shrink(max(weight, 0))
}

func (l *Load) shrink(weight int64) {
	weight = min(weight, l.weight)
	l.weight -= weight
	l.semaphore.held -= weight
	l.semaphore.admit()
}

// Release gives back what the load still holds and lets others in. A second
// Release does nothing.
func (l *Load) Release() {
	s := l.semaphore
	s.mu.Lock()
	defer s.mu.Unlock()
	if !l.released {
		l.release()
	}
}

func (l *Load) release() {
	s := l.semaphore
	l.released = true
	s.loads--
	if l.waits > 0 { // its holder no longer waits
		s.stuck--
	}
	if s.beyond == l {
		s.beyond = nil
	}
	l.shrink(l.weight)
}
