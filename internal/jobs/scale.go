// Scale: how much the runs at work weigh together.

package jobs

import (
	"context"
	"sync"
)

// scale is a semaphore in bytes; who waits longest is served first.
type scale struct {
	mu      sync.Mutex
	free    int64
	waiting []*waiter
}

type waiter struct {
	bytes int64
	ready chan struct{}
}

func newScale(bytes int64) *scale { return &scale{free: bytes} }

// Acquire waits for room.
func (s *scale) Acquire(ctx context.Context, bytes int64) error {
	s.mu.Lock()
	if len(s.waiting) == 0 && bytes <= s.free {
		s.free -= bytes
		s.mu.Unlock()
		return nil
	}
	w := &waiter{bytes, make(chan struct{})}
	s.waiting = append(s.waiting, w)
	s.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.waiting {
		if other == w {
			s.waiting = append(s.waiting[:i:i], s.waiting[i+1:]...)
			s.serve()
			return context.Cause(ctx)
		}
	}
	s.free += bytes
	s.serve()
	return context.Cause(ctx)
}

// TryGrow takes more, if it is there and nobody waits for it.
func (s *scale) TryGrow(bytes int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) > 0 || bytes > s.free {
		return false
	}
	s.free -= bytes
	return true
}

// Shrink gives some back.
func (s *scale) Shrink(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += bytes
	s.serve()
}

func (s *scale) serve() {
	for len(s.waiting) > 0 && s.waiting[0].bytes <= s.free {
		s.free -= s.waiting[0].bytes
		close(s.waiting[0].ready)
		s.waiting = s.waiting[1:]
	}
}

// Free is what nobody holds.
func (s *scale) Free() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free
}
