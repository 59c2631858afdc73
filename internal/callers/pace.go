// Pace: how many requests a credential may send.

package callers

import (
	"sync/atomic"
	"time"
)

// pace lets so many requests through in a second, and as many at once (GCRA, ITU-T
// I.371). Safe for concurrent use.
type pace struct {
	each time.Duration // one in this time
	late time.Duration // a second's worth
	next atomic.Int64  // when the next would be due, in Unix nanoseconds
}

// newPace is nil without a bound.
func newPace(rate float64) *pace {
	if rate <= 0 {
		return nil
	}
	each := time.Duration(float64(time.Second) / rate)
	return &pace{each: each, late: max(time.Second-each, 0)}
}

// take reports whether one more may go through now.
func (p *pace) take(now time.Time) bool {
	if p == nil {
		return true
	}
	for at := now.UnixNano(); ; {
		due := p.next.Load()
		if due > at+int64(p.late) {
			return false
		}
		if p.next.CompareAndSwap(due, max(due, at)+int64(p.each)) {
			return true
		}
	}
}
