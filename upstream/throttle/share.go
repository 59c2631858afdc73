// Share: how much of upstream's own allowance other work than readers' may use.

package throttle

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"
	"time"
)

const (
	plenty    = 0.5             // of a window: while more is left, other work is not slowed
	kept      = 0.1             // of a window: left to readers, however few came of late
	blindSpan = time.Minute     // a window of which upstream does not say when it ends
	sameEnd   = 2 * time.Second // ends that lie nearer are of one window: they are told in whole seconds
)

// share follows what upstream says that it still takes, and what was sent since.
//
// While more than half of a window is left, other work than readers' goes on as if nothing
// were told. Below that it is spread evenly over the rest of the window, so polls come the
// more seldom the less remains. Before that is taken off what readers may ask for until
// then, as they came of late, and a tenth of the window.
type share struct {
	of     string    // which of upstream's limits, where it has several
	weight float64   // of the readers that came, the old ones forgotten
	at     time.Time // of the last of them
	limit  float64   // of the window; where it is not told, the most that was left
	left   float64   // of it, less what was sent since
	end    time.Time // of the window; zero: nothing is told
	tokens float64   // of other work, 1 at most
	named  bool      // upstream tells it in the fields that the spec names
}

// told takes over what an answer says. idle means that no other request is under way, so
// that nothing sent since is missing in it.
func (s *share) told(a Allowance, now time.Time, idle bool) {
	span := a.Reset
	if span == 0 {
		span = blindSpan
	}
	end, remaining := now.Add(span), float64(a.Remaining)
	same := s.current(now) && (a.Reset == 0 || end.Sub(s.end).Abs() < sameEnd)
	if same && !idle {
		remaining = min(remaining, s.left) // answers overtake each other
	}
	if s.limit = float64(a.Limit); a.Limit == 0 {
		s.limit = max(remaining, float64(a.Remaining))
		if same {
			s.limit = max(s.limit, s.left)
		}
	}
	s.left, s.end, s.named = remaining, end, a.Named
}

// came notes a reader.
func (s *share) came(now time.Time) {
	s.weight, s.at = s.weight*math.Exp(-now.Sub(s.at).Seconds()/forget.Seconds())+1, now
}

// perSecond is how many readers came in a second of late.
func (s *share) perSecond(now time.Time) float64 {
	return s.weight * math.Exp(-now.Sub(s.at).Seconds()/forget.Seconds()) / forget.Seconds()
}

func (s *share) current(now time.Time) bool { return now.Before(s.end) }

// rate is how many requests a second other work may send. ok is false when nothing bounds
// it.
func (s *share) rate(now time.Time) (rate float64, ok bool) {
	if !s.current(now) || s.left > plenty*s.limit {
		return 0, false
	}
	rest := s.end.Sub(now).Seconds()
	return max(0, s.left-max(kept*s.limit, s.perSecond(now)*rest)) / rest, true
}

// pass adds the tokens of a time.
func (s *share) pass(d time.Duration, now time.Time) {
	if rate, ok := s.rate(now); ok {
		s.tokens = min(1, s.tokens+d.Seconds()*rate)
	} else {
		s.tokens = 1
	}
}

// lacks is how long other work waits for its next request.
func (s *share) lacks(now time.Time) time.Duration {
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

// sent notes a request.
func (s *share) sent(other bool) {
	s.left = max(0, s.left-1)
	if other {
		s.tokens = max(0, s.tokens-1)
	}
}

// shares are those of each of upstream's limits.
type shares struct {
	all  []*share
	told atomic.Pointer[[]Window] // of all, also those that have ended
}

// publish sets what is read without the budget's lock. The caller holds it.
func (s *shares) publish() {
	told := s.windows(time.Time{})
	s.told.Store(&told)
}

// MostLimits bounds how many of upstream's limits are told apart.
const MostLimits = 16

// of is that of one limit. Beyond MostLimits there is one for all.
func (s *shares) of(name string) *share {
	for _, one := range s.all {
		if one.of == name {
			return one
		}
	}
	if len(s.all) > MostLimits {
		return s.all[0]
	}
	one := &share{of: name}
	s.all = append(s.all, one)
	return one
}

// Window is one of upstream's own limits, as its answers tell of it.
type Window struct {
	Of    string    // which; "": it tells of one alone
	Limit int64     // requests in the whole window
	Left  int64     // of them
	Ends  time.Time // of the window
	Named bool      // upstream tells it in the fields that the spec names
}

// windows returns those that are told and have not ended, the largest first.
func (s *shares) windows(now time.Time) (out []Window) {
	for _, s := range s.all {
		if s.current(now) {
			out = append(out, Window{s.of, int64(s.limit), int64(s.left), s.end, s.named})
		}
	}
	slices.SortStableFunc(out, func(a, b Window) int { return cmp.Compare(b.Limit, a.Limit) })
	return out
}
