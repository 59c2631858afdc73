// This file chooses the request that is sent next when the budget allows one more.

package throttle

import (
	"time"

	"understudy/request"
)

// push appends p to its flow.
func (b *Budget) push(p *waiter) {
	p.since = b.now()
	b.queues.byReason[p.claim.Reason].push(p)
	b.queues.count++
	if p.claim.Reason == request.ReasonWaiting {
		b.reserve.addReader(p.since, b.bucket)
		b.shares.get(p.claim.LimitName).addReader(p.since)
	}
}

// remove removes p from its queue and reports whether p was still in it.
func (b *Budget) remove(p *waiter) bool {
	if !b.queues.byReason[p.claim.Reason].remove(p) {
		return false
	}
	b.queues.count--
	if p.claim.Reason == request.ReasonWaiting {
		b.counts.Longest = max(b.counts.Longest, b.now().Sub(p.since))
	}
	return true
}

// grant grants the requests that may be sent now, and sets the timer for the next request. The caller holds the lock.
func (b *Budget) grant() {
	b.pass(b.now())
	next := time.Duration(-1)
	for reason := range b.queues.byReason {
		r := request.Reason(reason)
		for b.queues.byReason[r].count > 0 {
			wait := b.waitTime(r)
			if wait == 0 {
				wait = b.chooseFlow(r)
			}
			if wait != 0 {
				if wait > 0 && (next < 0 || wait < next) {
					next = wait
				}
				break
			}
			p := b.queues.byReason[r].first()
			b.remove(p)
			b.send(p.claim)
			if r == request.ReasonCheck {
				b.bucket.checks--
			}
			close(p.ready)
		}
		if b.queues.byReason[r].count == 0 {
			continue
		}
		if r == request.ReasonWaiting {
			break // no request of another reason may overtake a waiting reader
		}
	}
	b.slots.endIdleTrial(b.at)
	b.wake(next)
}

// chooseFlow finds a flow whose next request the upstream's own limit allows now. It moves that flow to the front and
// returns 0. If there is none, it returns the time until a request is allowed.
func (b *Budget) chooseFlow(r request.Reason) time.Duration {
	least := time.Duration(-1)
	for i, t := range b.queues.byReason[r].flows {
		wait := b.shareWait(t.waiters[0].claim)
		if wait == 0 {
			b.queues.byReason[r].moveToFront(i)
			return 0
		}
		if least < 0 || wait < least {
			least = wait
		}
	}
	return least
}

// shareWait returns how long upstream's own limit delays a request.
func (b *Budget) shareWait(c Claim) time.Duration {
	if c.Reason == request.ReasonWaiting {
		return 0
	}
	return b.shares.get(c.LimitName).waitTime(b.at)
}

// TryTake takes a slot and a token if both are free and no reader waits for them. Release gives the slot back.
func (b *Budget) TryTake(c Claim) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pass(b.now())
	if b.closed || b.queues.byReason[request.ReasonWaiting].count > 0 || b.waitTime(c.Reason) != 0 || b.shareWait(c) != 0 {
		return false
	}
	b.send(c)
	return true
}

// send takes a slot and a token for a request, and counts the request for the upstream's own limit.
func (b *Budget) send(c Claim) {
	b.slots.free--
	b.bucket.tokens--
	b.demand.used = max(b.demand.used, b.slots.usedCount())
	b.shares.get(c.LimitName).addRequest(c.Reason != request.ReasonWaiting)
	b.shares.publish()
}

// pass updates bucket, reserve and slots to the given time.
func (b *Budget) pass(now time.Time) {
	if d := now.Sub(b.at); d > 0 {
		b.bucket.pass(d)
		b.slots.pass(d)
		for _, s := range b.shares.all {
			s.pass(d, now)
		}
	}
	b.at = now
	b.applyParts()
	b.reserve.update(now, b.bucket)
}

// waitTime returns the time until there are enough tokens for a request of the given reason. It returns 0 if there are
// enough, and -1 if slots are missing.
func (b *Budget) waitTime(r request.Reason) time.Duration {
	share, reserve := 0.25, b.reserve.tokens
	switch r {
	case request.ReasonWaiting:
		share, reserve = 0, 0
	case request.ReasonPrefetch:
		share, reserve = 0.5, 2*reserve
	}
	if need := max(1, share*float64(b.slots.currentLimit())); float64(b.slots.availableCount()) < need {
		b.demand.short = b.demand.short || b.slots.currentLimit() == b.slots.total
		return -1
	}
	// Slightly less than a token counts as a token, because sums of fractions are not exact.
	const hair = 1e-6
	wait := (min(b.bucket.burst, 1+reserve) - hair - b.bucket.tokens) / b.bucket.rate
	b.demand.short = b.demand.short || wait > 0
	if r == request.ReasonCheck {
		wait = max(wait, (1-hair-b.bucket.checks)/(b.bucket.rate*checkShare))
	}
	if wait > 0 {
		return time.Duration(wait*float64(time.Second)) + time.Microsecond
	}
	return 0
}

// wake sets the timer, or stops it if after is negative.
func (b *Budget) wake(after time.Duration) {
	if b.timer != nil {
		b.timer.Stop()
	}
	if after < 0 || b.closed {
		return
	}
	b.timer = time.AfterFunc(after, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.grant()
	})
}
