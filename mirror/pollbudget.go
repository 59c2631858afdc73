// Poll budget: how much of a source's rate polls may take together.

package mirror

import (
	"fmt"
	"sync"
	"time"
)

const (
	pollShare   = 0.1  // of the source's rate, all polls together
	defaultRate = 10.0 // requests a second, as in upstream
)

// pollBudget is a bucket of polls that may be sent. It holds one for each polled
// kind, two at least, so that all may begin at once.
type pollBudget struct {
	mu    sync.Mutex
	rate  float64 // polls a second
	spent float64 // polls sent and not made up for
	at    time.Time
}

func (s *pollBudget) set(rate float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rate <= 0 {
		rate = defaultRate
	}
	s.rate = rate * pollShare
}

// wait is how long until one more of so many kinds' polls may be sent; 0: now.
func (s *pollBudget) wait(now time.Time, polls int) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lacking(now, polls)
}

// take sends one, unless it would be too many.
func (s *pollBudget) take(now time.Time, polls int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lacking(now, polls) > 0 {
		return false
	}
	s.spent++
	return true
}

// lacking is wait; the lock is held.
func (s *pollBudget) lacking(now time.Time, polls int) time.Duration {
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

// SetRate says how many requests a second the source takes; 0 = 10. Polls keep to
// a tenth of them together. Error: a source the mirror does not have.
func (po *poller) SetRate(source string, rate float64) error {
	s := po.sources[source]
	if s == nil {
		return fmt.Errorf("mirror: rate: no source %q", source)
	}
	s.pollBudget.set(rate)
	return nil
}
