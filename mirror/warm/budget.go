// Budget: how much of a source's rate polls may take together.

package warm

import (
	"sync"
	"time"
)

const (
	pollShare   = 0.1  // of the source's rate, all polls together
	defaultRate = 10.0 // requests a second, as in upstream
)

// Budget is a bucket of polls that may be sent. It holds one for each polled
// kind, two at least, so that all may begin at once.
type Budget struct {
	mu    sync.Mutex
	rate  float64 // polls a second
	spent float64 // polls sent and not made up for
	at    time.Time
}

// Set sets the rate of the source, in requests a second; 0: 10.
func (s *Budget) Set(rate float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rate <= 0 {
		rate = defaultRate
	}
	s.rate = rate * pollShare
}

// PerSecond returns how many polls the budget lets through a second in the long run.
func (s *Budget) PerSecond() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rate
}

// Wait is how long until one more of so many kinds' polls may be sent; 0: now.
func (s *Budget) Wait(now time.Time, polls int) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lacking(now, polls)
}

// Take sends one, unless it would be too many.
func (s *Budget) Take(now time.Time, polls int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lacking(now, polls) > 0 {
		return false
	}
	s.spent++
	return true
}

// lacking is wait; the lock is held.
func (s *Budget) lacking(now time.Time, polls int) time.Duration {
	if d := now.Sub(s.at); d > 0 && !s.at.IsZero() {
		s.spent = max(0, s.spent-d.Seconds()*s.rate)
	}
	s.at = now
	const hair = 1e-6 // sums of fractions fall short
	if over := s.spent + 1 - float64(max(polls, 2)); over > hair {
		return time.Duration(over/s.rate*float64(time.Second)) + time.Microsecond
	}
	return 0
}
