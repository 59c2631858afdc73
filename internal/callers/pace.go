// Pace: how many requests a credential may send.

package callers

import (
	"sync/atomic"
	"time"

	"understudy"
)

// pace lets so many requests through in a span of time, and as many at once (GCRA, ITU-T
// I.371). Safe for concurrent use.
type pace struct {
	each time.Duration // one in this time
	late time.Duration // what a span has beyond one
	next atomic.Int64  // when the next would be due, in Unix nanoseconds
}

// newPace is nil without a bound. per is the span, 0 a second.
func newPace(rate float64, per time.Duration) *pace {
	if rate <= 0 {
		return nil
	}
	if per <= 0 {
		per = time.Second
	}
	each := time.Duration(float64(per) / rate)
	return &pace{each: each, late: max(per-each, 0)}
}

// take is nil when one more may go through now.
func (p *pace) take(now time.Time) *understudy.RateError {
	if p == nil {
		return nil
	}
	for at := now.UnixNano(); ; {
		due := p.next.Load()
		if due > at+int64(p.late) {
			return &understudy.RateError{Rate: p.rate(now), Wait: time.Duration(due - at - int64(p.late))}
		}
		if p.next.CompareAndSwap(due, max(due, at)+int64(p.each)) {
			return nil
		}
	}
}

// rate is what is left now.
func (p *pace) rate(now time.Time) understudy.Rate {
	used := max(0, time.Duration(p.next.Load()-now.UnixNano()))
	limit := int64((p.late + p.each + p.each/2) / p.each)
	// A hair of a request is no request: spans that do not divide evenly fall short.
	return understudy.Rate{Limit: limit, Remaining: max(0, limit-int64((used+p.each-p.each/1000-1)/p.each)), Reset: used}
}

// Rate is what the credential of a caller may send; ok is false where nothing bounds it.
func (b *Book) Rate(c understudy.Caller) (r understudy.Rate, ok bool) {
	p := b.paces[c.Flow]
	if p == nil || c.Flow == 0 {
		return r, false
	}
	return p.rate(b.now()), true
}
