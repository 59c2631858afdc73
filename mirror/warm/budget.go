// Budget: the part of a source's rate that all polls together may use.

package warm

import (
	"cmp"
	"time"

	"understudy/kit/lockwatch"
)

const (
	pollShare   = 0.1  // the part of the source's rate that all polls together may use
	defaultRate = 10.0 // the rate in requests a second if none is set; package upstream has the same default
)

// Budget is a token bucket for polls. It has room for as many tokens as there are polled kinds, and at least two, so
// that all kinds may be polled at the same time after the start.
type Budget struct {
	mu           lockwatch.Mutex
	rate         float64 // the number of polls a second that the budget permits
	pendingPolls float64 // the number of tokens that have been taken and not been replaced yet
	at           time.Time
}

// Set sets the rate of the source in requests a second. 0 means the default of 10.
func (s *Budget) Set(rate float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rate = cmp.Or(max(rate, 0), defaultRate) * pollShare
}

// PollRate returns how many polls a second the budget permits in the long run.
func (s *Budget) PollRate() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rate
}

// Wait returns how long it takes until another poll may be sent. It returns 0 if a poll may be sent now. polls is the
// number of polled kinds.
func (s *Budget) Wait(now time.Time, polls int) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timeToNext(now, polls)
}

// Take counts a poll and returns true. If the budget permits no poll now, it returns false.
func (s *Budget) Take(now time.Time, polls int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timeToNext(now, polls) > 0 {
		return false
	}
	s.pendingPolls++
	return true
}

// timeToNext returns what Wait returns. The caller holds the lock.
func (s *Budget) timeToNext(now time.Time, polls int) time.Duration {
	if d := now.Sub(s.at); d > 0 && !s.at.IsZero() {
		s.pendingPolls = max(0, s.pendingPolls-d.Seconds()*s.rate)
	}
	s.at = now
	const hair = 1e-6 // sums of floating-point numbers may be wrong by this much
	if over := s.pendingPolls + 1 - float64(max(polls, 2)); over > hair {
		return time.Duration(over/s.rate*float64(time.Second)) + time.Microsecond
	}
	return 0
}
