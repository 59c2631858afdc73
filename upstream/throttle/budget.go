// Budget: how many requests may go out, and in which order.

package throttle

import (
	"context"
	"sync"
	"time"

	"understudy"
	"understudy/request"
)

// Budget shares out the requests to a source: rate a second (a bucket that holds those of one second, at least one) and
// slots at once. Fewer slots are used while upstream refuses that many, or only gets slower by them (slots), and
// other work than readers' gets less while little remains of what upstream says it takes
// (share).
//
// Requests of reason Waiting take what is left, and go first. Other reasons leave them a reserve of tokens, Prefetch twice
// as many. Its size follows from how readers came of late: at most one reader in twenty finds the bucket empty, as far as
// half of the burst is enough for that. It is a token at least, and a quarter of the burst in the first minute. Of the
// slots, other reasons pause while less than a quarter is left, Prefetch while less than half is left. Check takes at most
// a hundredth of the rate.
//
// A waiting request whose turn cannot come in time is refused at once. So the queue has no request whose caller leaves
// before its turn.
type Budget struct {
	now         func() time.Time
	prefetching time.Duration // how long a Prefetch may queue

	mu      sync.Mutex
	at      time.Time // to which bucket, reserve and slots are up to date
	bucket  bucket
	reserve reserve
	slots   slots
	shares  shares
	queues  queues
	timer   *time.Timer // set while tokens are waited for
	closed  bool
	counts  Queue // Refused and Longest
}

// queues have the requests that wait, one queue for each reason.
type queues struct {
	limit int // requests in all
	count int
	of    [request.ReasonCount]classQueue
}

// Claim is what a request wants of the budget.
type Claim struct {
	Reason  request.Reason
	Flow    uint64
	Of      string          // which of upstream's limits it counts for, where that has several
	Queue   time.Duration   // the longest wait as Waiting; 0: as long as its context
	By      time.Time       // when its caller leaves; zero: unknown
	Promote <-chan struct{} // when closed, the reason becomes Waiting
}

// waiter is a request in a queue.
type waiter struct {
	claim Claim
	since time.Time     // in its queue
	ready chan struct{} // closed when err or the grant is in
	err   error
}

// NewBudget makes a budget whose bucket is full.
func NewBudget(o Options) *Budget {
	burst, now := max(1, o.Rate), o.Now()
	return &Budget{
		now: o.Now, prefetching: o.Prefetch, at: now,
		bucket:  bucket{rate: o.Rate, burst: burst, tokens: burst, checks: 1},
		reserve: reserve{since: now},
		slots:   slots{total: o.Concurrency, free: o.Concurrency, knee: newKnee()},
		queues:  queues{limit: o.Queue},
	}
}

// SetRate replaces rate and slots while the budget is in use.
func (b *Budget) SetRate(rate float64, slots int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pass(b.now())
	b.bucket.rate, b.bucket.burst = rate, max(1, rate)
	b.bucket.tokens = min(b.bucket.tokens, b.bucket.burst)
	b.reserve.next = time.Time{}
	b.slots.resize(slots, b.at)
	b.grant()
}

// Take waits until a request may go out, and returns the reason for which it goes out. After a nil error the slot must
// be given back: by Release, or by Refund when nothing was sent. Errors are the context's, ErrClosed, and those that
// Refusal knows.
func (b *Budget) Take(ctx context.Context, c Claim) (request.Reason, error) {
	p := &waiter{claim: c, ready: make(chan struct{})}
	if err := b.enter(p); err != nil {
		return p.claim.Reason, err
	}
	patience := b.patience(p)
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
			patience = b.patience(p)
		case <-over:
			if b.withdraw(p) {
				return p.claim.Reason, b.timedOut(p)
			}
			patience = nil
		case <-ctx.Done():
			if !b.withdraw(p) && p.err == nil {
				b.Refund(p.claim)
			}
			return p.claim.Reason, ctx.Err()
		}
	}
}

// patience is the timer of how long p may wait in its queue. It is nil when only the context bounds it.
func (b *Budget) patience(p *waiter) *time.Timer {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case p.claim.Reason == request.ReasonPrefetch:
		return time.NewTimer(b.prefetching)
	case p.claim.Reason == request.ReasonWaiting && p.claim.Queue > 0:
		return time.NewTimer(p.claim.Queue - p.claim.Queue/50) // a timer is late on a busy machine
	}
	return nil
}

// timedOut is the error of a request whose patience is over.
func (b *Budget) timedOut(p *waiter) error {
	if p.claim.Reason == request.ReasonPrefetch {
		return ErrPrefetchDropped
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts.Refused++
	return &QueueError{After: MinRetry}
}

// enter puts p into its queue and grants what can be granted at once.
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
	if err := b.tooLate(p); err != nil && b.remove(p) {
		b.counts.Refused++
		return err
	}
	// The newest prefetches are the likeliest to be read: no more of them wait than slots.
	if prefetches := &b.queues.of[request.ReasonPrefetch]; prefetches.count > b.slots.found() {
		oldest := prefetches.first()
		b.remove(oldest)
		oldest.err = ErrPrefetchDropped
		close(oldest.ready)
	}
	return nil
}

// tooLate is an error when the turn of p comes too late for its caller.
func (b *Budget) tooLate(p *waiter) error {
	if p.claim.Reason != request.ReasonWaiting || p.claim.Queue == 0 {
		return nil
	}
	patience := p.claim.Queue
	if !p.claim.By.IsZero() {
		patience = min(patience, p.claim.By.Sub(p.since))
	}
	ahead := b.queues.of[p.claim.Reason].ahead(p)
	if ahead < 0 {
		return nil // it has been granted
	}
	// A turn at the very end of the patience comes just as the caller leaves.
	if wait := b.wait(ahead); wait > patience-patience/25 {
		return &QueueError{After: max(MinRetry, wait-patience)}
	}
	return nil
}

// wait estimates the wait behind so many others: for tokens, and for slots as long as slots were held of late.
func (b *Budget) wait(ahead int) time.Duration {
	var wait time.Duration
	if lacking := float64(ahead+1) - b.bucket.tokens; lacking > 0 {
		wait = time.Duration(lacking / b.bucket.rate * float64(time.Second))
	}
	if lacking := ahead + 1 - b.slots.open(); lacking > 0 {
		// A stalled upstream gives no slot back: held shows it. A trial is soon over.
		found := time.Duration(b.slots.found())
		hold := max(b.slots.hold, b.slots.held/found)
		wait = max(wait, hold*time.Duration(lacking)/found)
	}
	return wait
}

// withdraw is remove, with the lock.
func (b *Budget) withdraw(p *waiter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.remove(p)
}

// promote moves p to the queue of Waiting.
func (b *Budget) promote(p *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.claim.Reason != request.ReasonWaiting && b.remove(p) {
		p.claim.Reason = request.ReasonWaiting
		b.push(p)
		b.grant()
	}
}

// Release gives a slot back.
func (b *Budget) Release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pass(b.now())
	b.slots.release()
	b.grant()
}

// Refund gives slot and token back: nothing was sent. The claim's Reason is that of Take.
func (b *Budget) Refund(c Claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slots.free++
	b.shares.of(c.Of).left++
	b.shares.publish()
	b.bucket.tokens = min(b.bucket.burst, b.bucket.tokens+1)
	if c.Reason == request.ReasonCheck {
		b.bucket.checks = 1
	}
	b.grant()
}

// Told notes what an answer says of the requests that upstream still takes. It reports
// whether nothing remains in a window whose end is known.
func (b *Budget) Told(a Allowance) (nothing bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pass(b.now())
	s := b.shares.of(a.Of)
	s.told(a, b.at, b.slots.total-b.slots.free <= 1)
	b.shares.publish()
	b.grant()
	return s.left == 0 && a.Remaining == 0 && a.Reset > 0
}

// Observe notes what a request shows of how many upstream takes at once. How many go out at once follows.
func (b *Budget) Observe(o Observation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pass(b.now())
	if o.Refused {
		b.slots.refused(o, b.at)
	} else {
		b.slots.answered(o, b.at)
	}
	b.grant()
}

// HasWindows reports whether upstream has told of a limit: else Window returns nil.
func (b *Budget) HasWindows() bool {
	all := b.shares.told.Load()
	return all != nil && len(*all) > 0
}

// Window returns what upstream has told of one of its limits, less what was sent since; of its largest one where nothing
// is known of that. It returns nil where upstream has told nothing. It takes no lock, and the window must not be changed.
func (b *Budget) Window(of string) *Window {
	all := b.shares.told.Load()
	if all == nil || len(*all) == 0 {
		return nil
	}
	for i := range *all {
		if (*all)[i].Of == of {
			return &(*all)[i]
		}
	}
	return &(*all)[0]
}

// SetQueue replaces how many requests may wait.
func (b *Budget) SetQueue(limit int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queues.limit = limit
}

// Stats is how full the queue is now.
func (b *Budget) Stats() Queue {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pass(b.now())
	q := b.counts
	q.Limit, q.Now, q.Reserve = b.queues.limit, b.queues.count, b.reserve.tokens
	q.AtOnce, q.Why, q.Windows = b.slots.found(), b.slots.why(), b.shares.windows(b.at)
	for i := range b.queues.of {
		if since := b.queues.of[i].oldest(); !since.IsZero() {
			q.Oldest = max(q.Oldest, b.now().Sub(since))
		}
	}
	return q
}

// Close ends all waits with ErrClosed, and refuses what comes later.
func (b *Budget) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.wake(-1)
	for r := range b.queues.of {
		for b.queues.of[r].count > 0 {
			p := b.queues.of[r].first()
			b.remove(p)
			p.err = understudy.ErrClosed
			close(p.ready)
		}
	}
}
