// This file limits how many requests a credential may send.

package callers

import (
	"time"

	"understudy"
	"understudy/kit/limiter"
)

// takeRequest returns nil if one more request is allowed now. Otherwise its error says how long to wait.
func takeRequest(p *limiter.Pace, now time.Time) *understudy.RateError {
	if wait := p.Take(now); wait > 0 {
		return &understudy.RateError{Rate: currentRate(p, now), Wait: wait}
	}
	return nil
}

// currentRate returns the limit and how many requests are left now.
func currentRate(p *limiter.Pace, now time.Time) (r understudy.Rate) {
	r.Limit, r.Remaining, r.Reset = p.Quota(now)
	return r
}

// Rate returns the request rate of a caller's credential. ok is false if there is no limit.
func (b *Book) Rate(c understudy.Caller) (r understudy.Rate, ok bool) {
	p := b.paces[c.Flow]
	if p == nil || c.Flow == 0 {
		return r, false
	}
	return currentRate(p, b.now()), true
}
