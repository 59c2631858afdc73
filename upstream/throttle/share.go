// This file computes how much of the upstream's own limit requests without a reader may use.

package throttle

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"
	"time"
)

const (
	plentyPart   = 0.5             // the part of a window above which requests without a reader are not delayed
	readerPart   = 0.1             // the part of a window that is left to readers, even if few readers came recently
	unknownSpan  = time.Minute     // the assumed length of a window if the upstream does not report its end
	endTolerance = 2 * time.Second // ends that differ by less belong to the same window, because the upstream reports them in whole seconds
)

// share records what upstream reports about one of its limits, and what was sent since then.
//
// While more than half of a window is left, requests without a reader are not delayed. Below half, the rest is spread
// evenly over the remaining time of the window, so polls become rarer. Before that, share subtracts the requests expected
// from readers until the end, computed from the recent readers, and at least a tenth of the window.
type share struct {
	limitName string    // the name of the upstream's limit, if it has several
	weight    float64   // the number of recent readers, in which older readers weigh less
	at        time.Time // when the last reader came
	limit     float64   // the number of requests in the window; if the upstream does not report it, the largest number that was left
	left      float64   // the number of requests left in the window, less those sent since
	end       time.Time // the end of the window; zero if the upstream reported none
	tokens    float64   // the tokens of requests without a reader, at most 1
	named     bool      // whether the header fields named in the spec report the limit
}

// recordAllowance records what an answer says about the limit. idle means that no other request is running, so
// the answer counts every request sent before.
func (s *share) recordAllowance(a Allowance, now time.Time, idle bool) {
	span := a.Reset
	if span == 0 {
		span = unknownSpan
	}
	end, remaining := now.Add(span), float64(a.Remaining)
	same := s.isCurrent(now) && (a.Reset == 0 || end.Sub(s.end).Abs() < endTolerance)
	if same && !idle { // answers may arrive in another order than their requests were sent
		remaining = min(remaining, s.left) // so the number of requests left cannot grow within a window
	}
	if s.limit = float64(a.Limit); a.Limit == 0 {
		s.limit = max(remaining, float64(a.Remaining))
		if same {
			s.limit = max(s.limit, s.left)
		}
	}
	s.left, s.end, s.named = remaining, end, a.Named
}

// addReader records a reader.
func (s *share) addReader(now time.Time) {
	s.weight, s.at = s.weight*math.Exp(-now.Sub(s.at).Seconds()/decayTime.Seconds())+1, now
}

// readerRate returns how many readers came in a second recently.
func (s *share) readerRate(now time.Time) float64 {
	return s.weight * math.Exp(-now.Sub(s.at).Seconds()/decayTime.Seconds()) / decayTime.Seconds()
}

// isCurrent reports whether the window has not ended.
func (s *share) isCurrent(now time.Time) bool { return now.Before(s.end) }

// rate returns how many requests without a reader may be sent in a second. ok is false if they are not limited.
func (s *share) rate(now time.Time) (rate float64, ok bool) {
	if !s.isCurrent(now) || s.left > plentyPart*s.limit {
		return 0, false
	}
	rest := s.end.Sub(now).Seconds()
	return max(0, s.left-max(readerPart*s.limit, s.readerRate(now)*rest)) / rest, true
}

// pass adds the tokens for a time that has passed.
func (s *share) pass(d time.Duration, now time.Time) {
	if rate, ok := s.rate(now); ok {
		s.tokens = min(1, s.tokens+d.Seconds()*rate)
	} else {
		s.tokens = 1
	}
}

// waitTime returns how long the next request without a reader waits.
func (s *share) waitTime(now time.Time) time.Duration {
	const hair = 1e-6
	rate, ok := s.rate(now)
	rest := s.end.Sub(now)
	switch {
	case !ok || s.tokens >= 1-hair:
		return 0
	case rate <= 0 || (1-s.tokens)/rate > rest.Seconds():
		return rest
	}
	return time.Duration((1-s.tokens)/rate*float64(time.Second)) + time.Microsecond
}

// addRequest counts a request. other means that no reader waits for the request.
func (s *share) addRequest(other bool) {
	s.left = max(0, s.left-1)
	if other {
		s.tokens = max(0, s.tokens-1)
	}
}

// shares are the shares of all limits of upstream.
type shares struct {
	all       []*share
	published atomic.Pointer[[]Window] // the windows of all limits, also of those that have ended
}

// publish sets the windows that are read without the budget's lock. The caller holds the lock.
func (s *shares) publish() {
	told := s.windows(time.Time{})
	s.published.Store(&told)
}

// MaxLimits is the number of upstream's limits that are counted separately.
const MaxLimits = 16

// get returns the share of a limit and creates it if needed. Beyond MaxLimits, all further limits have the first share.
func (s *shares) get(name string) *share {
	for _, one := range s.all {
		if one.limitName == name {
			return one
		}
	}
	if len(s.all) > MaxLimits {
		return s.all[0]
	}
	one := &share{limitName: name}
	s.all = append(s.all, one)
	return one
}

// Window is the state of one of upstream's own limits, as its answers report it.
type Window struct {
	LimitName string    // the name of the limit, or "" if the upstream reports only one limit
	Limit     int64     // the number of requests in the whole window
	Left      int64     // the number of requests left in the window
	Ends      time.Time // the end of the window
	Named     bool      // whether the header fields named in the spec report the limit
}

// windows returns the windows that have not ended, the largest first.
func (s *shares) windows(now time.Time) (out []Window) {
	for _, s := range s.all {
		if s.isCurrent(now) {
			out = append(out, Window{s.limitName, int64(s.limit), int64(s.left), s.end, s.named})
		}
	}
	slices.SortStableFunc(out, func(a, b Window) int { return cmp.Compare(b.Limit, a.Limit) })
	return out
}
