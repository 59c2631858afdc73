// Pace: limits the number of events in a period of time.

package limiter

import (
	"cmp"
	"sync/atomic"
	"time"
)

// Pace allows a number of events in a period of time, and the same number as a burst (GCRA, ITU-T I.371). A nil
// Pace allows every event. It is safe for concurrent use.
type Pace struct {
	interval time.Duration // the average time between two events
	burst    time.Duration // the length of the period less one interval, which allows a burst
	next     atomic.Int64  // when the next event would be due, in Unix nanoseconds
}

// NewPace returns a Pace that allows n events in a period span. A span of 0 means a second. If n is not
// positive, NewPace returns nil.
func NewPace(n float64, span time.Duration) *Pace {
	if n <= 0 {
		return nil
	}
	span = cmp.Or(max(span, 0), time.Second)
	each := time.Duration(float64(span) / n)
	return &Pace{interval: each, burst: max(span-each, 0)}
}

// Take allows one event and returns 0, or returns how long the caller has to wait before it tries again.
func (p *Pace) Take(now time.Time) (wait time.Duration) {
	if p == nil {
		return 0
	}
	for at := now.UnixNano(); ; {
		due := p.next.Load()
		if due > at+int64(p.burst) {
			return time.Duration(due - at - int64(p.burst))
		}
		if p.next.CompareAndSwap(due, max(due, at)+int64(p.interval)) {
			return 0
		}
	}
}

// Quota returns how many events a period allows, how many of them remain now, and after which time all are
// available again.
func (p *Pace) Quota(now time.Time) (limit, remaining int64, reset time.Duration) {
	used := max(0, time.Duration(p.next.Load()-now.UnixNano()))
	limit = int64((p.burst + p.interval + p.interval/2) / p.interval)
	// A thousandth of an interval is ignored: a span that n does not divide evenly would otherwise fall short by one event.
	return limit, max(0, limit-int64((used+p.interval-p.interval/1000-1)/p.interval)), used
}
