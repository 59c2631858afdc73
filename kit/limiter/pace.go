// Pace: how many may come in a span of time.

package limiter

import (
	"sync/atomic"
	"time"
)

// Pace lets so many through in a span of time, and as many at once (GCRA, ITU-T I.371). nil lets
// everything through. It is safe for concurrent use.
type Pace struct {
	each time.Duration // one in this time
	late time.Duration // what a span has beyond one
	next atomic.Int64  // when the next would be due, in Unix nanoseconds
}

// NewPace makes a Pace of n in a span of time, 0 meaning a second. Without an n it returns nil.
func NewPace(n float64, span time.Duration) *Pace {
	if n <= 0 {
		return nil
	}
	if span <= 0 {
		span = time.Second
	}
	each := time.Duration(float64(span) / n)
	return &Pace{each: each, late: max(span-each, 0)}
}

// Take lets one through and returns 0, or returns how long the next has to wait.
func (p *Pace) Take(now time.Time) (wait time.Duration) {
	if p == nil {
		return 0
	}
	for at := now.UnixNano(); ; {
		due := p.next.Load()
		if due > at+int64(p.late) {
			return time.Duration(due - at - int64(p.late))
		}
		if p.next.CompareAndSwap(due, max(due, at)+int64(p.each)) {
			return 0
		}
	}
}

// Left returns how many a span has, how many are left of them now, and when all are again.
func (p *Pace) Left(now time.Time) (limit, remaining int64, reset time.Duration) {
	used := max(0, time.Duration(p.next.Load()-now.UnixNano()))
	limit = int64((p.late + p.each + p.each/2) / p.each)
	// A hair of a request is no request: spans that do not divide evenly fall short.
	return limit, max(0, limit-int64((used+p.each-p.each/1000-1)/p.each)), used
}
