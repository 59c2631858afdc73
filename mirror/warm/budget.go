// Budget: how much of a source's rate all polls together may use.

package warm

import (
	"sync"
	"time"
)

const (
	pollShare   = 0.1  // share of the source's rate for all polls
	defaultRate = 10.0 // requests a second, as in package upstream
)

// Budget is a token bucket for polls. It holds one token for each polled kind, at least two, so that all
// kinds may start at once.
type Budget struct {
	mu           sync.Mutex
	rate         float64 // how many polls a second the budget allows
	pendingPolls float64 // polls sent whose tokens have not been refilled yet
	at           time.Time
}

// Set sets the rate of the source in requests a second; 0 means 10.
func (s *Budget) Set(rate float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rate <= 0 {
		rate = defaultRate
	}
	s.rate = rate * pollShare
}

// PollRate returns how many polls a second the budget allows in the long run.
func (s *Budget) PollRate() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rate
}

// Wait returns how long until another poll may be sent, or 0 if it may be sent now. polls is the number of
// polled kinds.
func (s *Budget) Wait(now time.Time, polls int) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timeToNext(now, polls)
}

// Take counts a poll and returns true, unless the budget does not allow it now.
func (s *Budget) Take(now time.Time, polls int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timeToNext(now, polls) > 0 {
		return false
	}
	s.pendingPolls++
	return true
}

// timeToNext is Wait for a caller that has the lock.
func (s *Budget) timeToNext(now time.Time, polls int) time.Duration {
	if d := now.Sub(s.at); d > 0 && !s.at.IsZero() {
		s.pendingPolls = max(0, s.pendingPolls-d.Seconds()*s.rate)
	}
	s.at = now
	const hair = 1e-6 // tolerance for rounding errors of the sum
	if over := s.pendingPolls + 1 - float64(max(polls, 2)); over > hair {
		return time.Duration(over/s.rate*float64(time.Second)) + time.Microsecond
	}
	return 0
}
