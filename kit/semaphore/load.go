// This file is about Load, the weight that a caller has acquired. It can grow and shrink.

package semaphore

import (
	"context"
	"fmt"
)

// Load is the weight that a holder has acquired. It is safe for concurrent use.
type Load struct {
	semaphore *Weighted
	weight    int64 // protected by semaphore.mu, like the fields below
	waits     int   // the number of waiting calls that list this load among their held loads
	released  bool
}

// Weight returns the weight that the load holds, or 0 after Release.
func (l *Load) Weight() int64 {
	l.semaphore.mu.Lock()
	defer l.semaphore.mu.Unlock()
	return l.weight
}

// TryGrow adds weight to the load if it fits now; otherwise it returns false and changes nothing. It never
// waits, and takes precedence over all waiters, because a load that can go on ends sooner. If this is the only
// load, it may grow beyond the limit, unless the semaphore refuses heavy loads. A released load does not grow.
// A weight of 0 or less changes nothing.
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

// Grow adds weight to the load and waits until it fits. The held loads have the same meaning as for Acquire. A
// load must wait only once at a time. If the semaphore refuses the new weight, Grow returns ErrTooHeavy at
// once. If ctx ends, it returns the wrapped cause. After an error the weight of the load is unchanged. For a
// released load the error is ErrTooHeavy.
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
	w := &waiter{weight: weight, load: l, grows: true, held: append(held, l), admitted: make(chan struct{})}
	s.addWaiter(w)
	s.mu.Unlock()
	select {
	case <-w.admitted:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.removeWaiter(w) { // the weight was granted meanwhile
		l.weight -= weight
		s.held -= weight
	}
	s.admit()
	return fmt.Errorf("semaphore: %d bytes more: %w", weight, context.Cause(ctx))
}

// Shrink reduces the load by weight, to 0 at least, and admits waiters. It never waits.
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

// Release gives back the remaining weight of the load and admits waiters. A second Release does nothing.
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
	if l.waits > 0 { // the holder was counted as blocked because it waited for more weight
		s.blocked--
	}
	if s.overLimit == l {
		s.overLimit = nil
	}
	l.shrink(l.weight)
}
