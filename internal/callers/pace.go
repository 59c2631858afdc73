// Pace: how many requests a credential may send.

package callers

import (
	"time"

	"understudy"
	"understudy/kit/limiter"
)

// take returns nil when one more request may go through now.
func take(p *limiter.Pace, now time.Time) *understudy.RateError {
	if wait := p.Take(now); wait > 0 {
		return &understudy.RateError{Rate: rate(p, now), Wait: wait}
	}
	return nil
}

// rate returns what is left now.
func rate(p *limiter.Pace, now time.Time) (r understudy.Rate) {
	r.Limit, r.Remaining, r.Reset = p.Quota(now)
	return r
}

// Rate is what the credential of a caller may send; ok is false where nothing bounds it.
func (b *Book) Rate(c understudy.Caller) (r understudy.Rate, ok bool) {
	p := b.paces[c.Flow]
	if p == nil || c.Flow == 0 {
		return r, false
	}
	return rate(p, b.now()), true
}
