// This file decides how many requests may be sent, and in which order.

package throttle

import (
	"context"
	"time"

	"understudy"
	"understudy/kit/lockwatch"
	"understudy/request"
)

// Budget distributes the requests to a source. It limits the requests a second with a token bucket that holds
// the tokens of one second, at least one token. It limits the requests at the same time with slots. Fewer slots
// are used while upstream refuses more, or while more only make it slower (see slots). While little is left of
// a limit that upstream reports, requests without a reader get less (see share).
//
// Requests of reason Waiting go first and may take every token. Other reasons leave a reserve of tokens to
// them, Prefetch twice the reserve. The reserve follows from the recent readers: at most one reader in twenty
// should find the bucket empty. It is at least one token and at most half of the bucket, and a quarter of the
// bucket in the first minute. Other reasons wait while less than a quarter of the slots is free, Prefetch while
// less than half is free. Check uses at most a hundredth of the rate.
//
// A waiting request whose turn can't come in time is refused at once. So the queue holds no request whose
// caller leaves before its turn.
type Budget struct {
	now          func() time.Time
	prefetchWait time.Duration // the maximum time that a request of ReasonPrefetch may wait

	mu      lockwatch.Mutex
	rate    float64 // the rate and the number of slots of the settings
	total   int
	parts   int // the parts of this process, if several processes (nodes) use the budget
	nodes   int // 0 if this process uses the whole budget
	isValid func() bool
	demand  demand
	at      time.Time // when bucket, reserve and slots were last updated
	bucket  bucket
	reserve reserve
	slots   slots
	shares  shares
	queues  queues
	timer   *time.Timer // wakes the budget when tokens arrive; set while requests wait for tokens
	closed  bool
	counts  Queue // only the fields Refused and Longest
}

// queues are the waiting requests, in one queue for each reason.
type queues struct {
	limit    int // the maximum number of requests in all queues
	count    int // the number of requests in all queues
	byReason [request.ReasonCount]classQueue
}

// Claim describes a request that needs the budget.
type Claim struct {
	Reason    request.Reason
	Flow      uint64
	LimitName string          // the name of the upstream's limit for which the request counts, if the upstream has several
	MaxWait   time.Duration   // the maximum wait of a request of ReasonWaiting; 0 if only the context limits it
	LeavesAt  time.Time       // when the caller leaves; zero if unknown
	Promote   <-chan struct{} // a channel that is closed when the reason becomes ReasonWaiting
}

// waiter is a request in a queue.
type waiter struct {
	claim Claim
	since time.Time     // when the request entered its queue
	ready chan struct{} // closed when the request was granted or err is set
	err   error
}

// NewBudget returns a budget with a full bucket.
func NewBudget(o Options) *Budget {
	burst, now := max(1, o.Rate), o.Now()
	return &Budget{
		now: o.Now, prefetchWait: o.Prefetch, at: now, rate: o.Rate, total: o.Concurrency,
		bucket:  bucket{rate: o.Rate, burst: burst, tokens: burst, checks: 1},
		reserve: reserve{since: now},
		slots:   slots{total: o.Concurrency, free: o.Concurrency, knee: newKnee()},
		queues:  queues{limit: o.Queue},
	}
}

// SetRate replaces the rate and the number of slots. It may be called while the budget is in use.
func (b *Budget) SetRate(rate float64, slots int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rate, b.total = rate, slots
	b.grant()
}

// Take waits until the request may be sent, and returns the reason for which it is sent. After a nil error the
// caller must give the slot back: with Release, or with Refund if it sent nothing. Take returns the context's
// error, ErrClosed, or an error that Refusal converts.
func (b *Budget) Take(ctx context.Context, c Claim) (request.Reason, error) {
	p := &waiter{claim: c, ready: make(chan struct{})}
	if err := b.enter(p); err != nil {
		return p.claim.Reason, err
	}
	patience := b.waitTimer(p)
	defer func() {
		if patience != nil {
			patience.Stop()
		}
	}()
	for {
		var over <-chan time.Time
		if patience != nil {
			over = patience.C
		}
		select {
		case <-p.ready:
			return p.claim.Reason, p.err
		case <-c.Promote:
			c.Promote = nil
			b.promote(p)
			if patience != nil {
				patience.Stop()
			}
			patience = b.waitTimer(p)
		case <-over:
			if b.leave(p) {
				return p.claim.Reason, b.giveUp(p)
			}
			patience = nil
		case <-ctx.Done():
			if !b.leave(p) && p.err == nil {
				b.Refund(p.claim)
			}
			return p.claim.Reason, ctx.Err()
		}
	}
}

// waitTimer returns a timer for the time that p may wait in its queue. It returns nil if only the context
// limits the wait.
func (b *Budget) waitTimer(p *waiter) *time.Timer {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case p.claim.Reason == request.ReasonPrefetch:
		return time.NewTimer(b.prefetchWait)
	case p.claim.Reason == request.ReasonWaiting && p.claim.MaxWait > 0:
		return time.NewTimer(p.claim.MaxWait - p.claim.MaxWait/50) // 2 % shorter, because timers fire late on a busy machine
	}
	return nil
}

// giveUp returns the error of a request that waited too long, and counts a reader's request as refused.
func (b *Budget) giveUp(p *waiter) error {
	if p.claim.Reason == request.ReasonPrefetch {
		return ErrPrefetchDropped
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts.Refused++
	return &QueueError{After: MinRetry}
}

// enter puts p into its queue and grants the requests that can be sent now.
func (b *Budget) enter(p *waiter) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return understudy.ErrClosed
	}
	b.push(p)
	b.grant()
	if b.queues.count > b.queues.limit && b.remove(p) {
		b.counts.Refused++
		return ErrQueueFull
	}
	if err := b.checkTurn(p); err != nil && b.remove(p) {
		b.counts.Refused++
		return err
	}
	// The newest prefetches are the most likely to be read, so at most as many prefetches wait as there are slots.
	if prefetches := &b.queues.byReason[request.ReasonPrefetch]; prefetches.count > b.slots.bestLimit() {
		oldest := prefetches.first()
		b.remove(oldest)
		oldest.err = ErrPrefetchDropped
		close(oldest.ready)
	}
	return nil
}

// checkTurn returns an error if p's turn would come too late for its caller.
func (b *Budget) checkTurn(p *waiter) error {
	if p.claim.Reason != request.ReasonWaiting || p.claim.MaxWait == 0 {
		return nil
	}
	patience := p.claim.MaxWait
	if !p.claim.LeavesAt.IsZero() {
		patience = min(patience, p.claim.LeavesAt.Sub(p.since))
	}
	ahead := b.queues.byReason[p.claim.Reason].countAhead(p)
	if ahead < 0 {
		return nil // the request of p was already granted
	}
	// If the turn came in the last 4 % of the time, the caller would leave just then.
	if wait := b.wait(ahead); wait > patience-patience/25 {
		return &QueueError{After: max(MinRetry, wait-patience)}
	}
	return nil
}

// wait estimates how long a request with that many requests before it waits for a token and for a slot.
func (b *Budget) wait(ahead int) time.Duration {
	var wait time.Duration
	nodes := max(1, b.nodes) // other processes soon leave an equal part to this one
	if lacking := float64(ahead+1) - b.bucket.tokens; lacking > 0 {
		wait = time.Duration(lacking / max(b.bucket.rate, b.rate/float64(nodes)) * float64(time.Second))
	}
	if lacking := ahead + 1 - b.slots.availableCount(); lacking > 0 {
		// A stalled upstream releases no slot, and then busyTime grows. A trial of fewer slots is short, so it does not count.
		found := time.Duration(b.slots.knee.bestLimit(max(1, b.slots.total, b.total/nodes)))
		hold := max(b.slots.averageHold, b.slots.busyTime/found)
		wait = max(wait, hold*time.Duration(lacking)/found)
	}
	return wait
}

// leave removes p from its queue and reports whether p was still in it. The caller must not hold the lock.
func (b *Budget) leave(p *waiter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.remove(p)
}

// promote moves p to the queue of reason Waiting.
func (b *Budget) promote(p *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.claim.Reason != request.ReasonWaiting && b.remove(p) {
		p.claim.Reason = request.ReasonWaiting
		b.push(p)
		b.grant()
	}
}

// Release gives the slot of an answered request back.
func (b *Budget) Release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pass(b.now())
	b.slots.release()
	b.grant()
}

// Refund gives back the slot and the token of a request that was not sent. The claim's Reason must be the reason that
// Take returned.
func (b *Budget) Refund(c Claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slots.free++
	b.shares.get(c.LimitName).left++
	b.shares.publish()
	b.bucket.tokens = min(b.bucket.burst, b.bucket.tokens+1)
	if c.Reason == request.ReasonCheck {
		b.bucket.checks = 1
	}
	b.grant()
}

// RecordAllowance records what an answer says about the requests that upstream still accepts. It reports
// whether no request is left in a window whose end is known.
func (b *Budget) RecordAllowance(a Allowance) (nothing bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pass(b.now())
	s := b.shares.get(a.LimitName)
	s.recordAllowance(a, b.at, b.slots.total-b.slots.free <= 1)
	b.shares.publish()
	b.grant()
	return s.left == 0 && a.Remaining == 0 && a.Reset > 0
}

// Observe records what a request shows about how many requests upstream serves at the same time, and adapts the slots.
func (b *Budget) Observe(o Observation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pass(b.now())
	if o.Refused {
		b.slots.addRefusal(o, b.at)
	} else {
		b.slots.addAnswer(o, b.at)
	}
	b.grant()
}

// HasWindows reports whether upstream reported any limit. If not, Window returns nil.
func (b *Budget) HasWindows() bool {
	all := b.shares.published.Load()
	return all != nil && len(*all) > 0
}

// Window returns the state of a limit that upstream reported, less the requests sent since then. It returns the
// largest limit if that name is unknown, and nil if upstream reported no limit. It takes no lock. The caller
// must not change the window.
func (b *Budget) Window(of string) *Window {
	all := b.shares.published.Load()
	if all == nil || len(*all) == 0 {
		return nil
	}
	for i := range *all {
		if (*all)[i].LimitName == of {
			return &(*all)[i]
		}
	}
	return &(*all)[0]
}

// SetQueue replaces the maximum number of waiting requests.
func (b *Budget) SetQueue(limit int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queues.limit = limit
}

// Stats returns the current state of the queue.
func (b *Budget) Stats() Queue {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pass(b.now())
	q := b.counts
	q.Limit, q.Now, q.Reserve = b.queues.limit, b.queues.count, b.reserve.tokens
	q.AtOnce, q.Why, q.Windows = b.slots.bestLimit(), b.slots.limitReason(), b.shares.windows(b.at)
	for i := range b.queues.byReason {
		if since := b.queues.byReason[i].oldest(); !since.IsZero() {
			q.Oldest = max(q.Oldest, b.now().Sub(since))
		}
	}
	return q
}

// Close ends all waits with ErrClosed. Later calls of Take fail with ErrClosed.
func (b *Budget) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.wake(-1)
	for r := range b.queues.byReason {
		for b.queues.byReason[r].count > 0 {
			p := b.queues.byReason[r].first()
			b.remove(p)
			p.err = understudy.ErrClosed
			close(p.ready)
		}
	}
}
