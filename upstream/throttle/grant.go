// Granting: which request is next when there is budget again.

package throttle

import (
	"time"

	"understudy/request"
)

// push puts p at the end of its flow.
func (b *Budget) push(p *waiter) {
	p.since = b.now()
	b.queues.of[p.claim.Reason].push(p)
	b.queues.count++
	if p.claim.Reason == request.ReasonWaiting {
		b.reserve.came(p.since, b.bucket)
		b.shares.of(p.claim.Of).came(p.since)
	}
}

// remove takes p out of its queue. It is false when p is no longer there.
func (b *Budget) remove(p *waiter) bool {
	if !b.queues.of[p.claim.Reason].remove(p) {
		return false
	}
	b.queues.count--
	if p.claim.Reason == request.ReasonWaiting {
		b.counts.Longest = max(b.counts.Longest, b.now().Sub(p.since))
	}
	return true
}

// grant lets out the requests that may go, and sets the timer for the next one. The lock is held.
func (b *Budget) grant() {
	b.pass(b.now())
	next := time.Duration(-1)
	for reason := range b.queues.of {
		r := request.Reason(reason)
		for b.queues.of[r].count > 0 {
			wait := b.lacks(r)
			if wait == 0 {
				wait = b.foremost(r)
			}
			if wait != 0 {
				if wait > 0 && (next < 0 || wait < next) {
					next = wait
				}
				break
			}
			p := b.queues.of[r].first()
			b.remove(p)
			b.send(p.claim)
			if r == request.ReasonCheck {
				b.bucket.checks--
			}
			close(p.ready)
		}
		if b.queues.of[r].count == 0 {
			continue
		}
		if r == request.ReasonWaiting {
			break // no other reason goes before a waiting reader
		}
	}
	b.slots.rest(b.at)
	b.wake(next)
}

// foremost puts a flow first whose request upstream's own limit lets go now. Otherwise it is how long until there is one.
func (b *Budget) foremost(r request.Reason) time.Duration {
	least := time.Duration(-1)
	for i, t := range b.queues.of[r].flows {
		wait := b.shareLacks(t.waiters[0].claim)
		if wait == 0 {
			b.queues.of[r].toFront(i)
			return 0
		}
		if least < 0 || wait < least {
			least = wait
		}
	}
	return least
}

// shareLacks is how long upstream's own limit delays a request.
func (b *Budget) shareLacks(c Claim) time.Duration {
	if c.Reason == request.ReasonWaiting {
		return 0
	}
	return b.shares.of(c.Of).lacks(b.at)
}

// TryTake takes slot and token when both are there now and no reader waits for them. Release gives the slot back.
func (b *Budget) TryTake(c Claim) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pass(b.now())
	if b.closed || b.queues.of[request.ReasonWaiting].count > 0 || b.lacks(c.Reason) != 0 || b.shareLacks(c) != 0 {
		return false
	}
	b.send(c)
	return true
}

// send takes what a request needs.
func (b *Budget) send(c Claim) {
	b.slots.free--
	b.bucket.tokens--
	b.shares.of(c.Of).sent(c.Reason != request.ReasonWaiting)
	b.shares.publish()
}

// pass brings bucket, reserve and slots up to date.
func (b *Budget) pass(now time.Time) {
	if d := now.Sub(b.at); d > 0 {
		b.bucket.pass(d)
		b.slots.pass(d)
		for _, s := range b.shares.all {
			s.pass(d, now)
		}
	}
	b.at = now
	b.reserve.size(now, b.bucket)
}

// lacks is how long until there are enough tokens for a request of the reason. It is 0 when there are, -1 when slots lack.
func (b *Budget) lacks(r request.Reason) time.Duration {
	share, reserve := 0.25, b.reserve.tokens
	switch r {
	case request.ReasonWaiting:
		share, reserve = 0, 0
	case request.ReasonPrefetch:
		share, reserve = 0.5, 2*reserve
	}
	if need := max(1, share*float64(b.slots.usable())); float64(b.slots.open()) < need {
		return -1
	}
	// A hair less than a token counts as one: sums of fractions fall short.
	const hair = 1e-6
	wait := (min(b.bucket.burst, 1+reserve) - hair - b.bucket.tokens) / b.bucket.rate
	if r == request.ReasonCheck {
		wait = max(wait, (1-hair-b.bucket.checks)/(b.bucket.rate*checkShare))
	}
	if wait > 0 {
		return time.Duration(wait*float64(time.Second)) + time.Microsecond
	}
	return 0
}

// wake sets the timer, or stops it when after is negative.
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
