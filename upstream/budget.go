// Budget: how much of upstream there is, and who may have it first.

package upstream

import (
	"context"
	"sync"
	"time"

	"understudy"
	"understudy/request"
)

// budget shares out a source's requests: rate a second (a bucket that holds a
// second's worth, 1 at least) and slots at once. There are two lanes. Waiting
// takes whatever is left, and goes first. The others pause while less than a
// quarter of the tokens or the slots is left, Prefetch while less than half
// is; Check takes at most a hundredth of the rate besides.
//
// A waiting request whose place cannot come in time is turned away at once, so
// that the queue holds nobody who will have left before it is his turn.
type budget struct {
	now         func() time.Time
	prefetching time.Duration // how long a Prefetch may queue

	mu     sync.Mutex
	at     time.Time // to which bucket and slots are up to date
	bucket bucket
	slots  slots
	queues queues
	timer  *time.Timer // set while tokens are waited for
	closed bool
	counts Queue // Refused and Longest
}

// bucket has the tokens. A request takes one.
type bucket struct {
	rate   float64 // tokens a second
	burst  float64 // tokens at most
	tokens float64
	checks float64 // tokens of Check, 1 at most
}

// pass adds the tokens of a time.
func (b *bucket) pass(d time.Duration) {
	b.tokens = min(b.burst, b.tokens+d.Seconds()*b.rate)
	b.checks = min(1, b.checks+d.Seconds()*b.rate*checkShare)
}

// slots bound the requests at once.
type slots struct {
	total int
	free  int           // below zero after total was lowered, until enough have come back
	held  time.Duration // all slots together, since the last one came back
	hold  time.Duration // how long one is held: the average of held over the last answers
}

// pass adds a time to the slots in use.
func (s *slots) pass(d time.Duration) { s.held += d * time.Duration(max(0, s.total-s.free)) }

// release takes a slot back.
func (s *slots) release() {
	s.hold += (s.held - s.hold) / 8
	s.held = 0
	s.free++
}

// queues have the requests that wait, one queue for each reason.
type queues struct {
	limit int // requests in all
	count int
	of    [request.Reasons]classQueue
}

// claim is what a request wants of the budget.
type claim struct {
	reason  request.Reason
	turn    uint64
	queue   time.Duration   // the longest it may wait in the waiting lane; 0: as long as its context
	by      time.Time       // when whoever wants it will have left; zero: unknown
	promote <-chan struct{} // when closed, moves it to the waiting lane
}

// waiter is a request's place in the queue.
type waiter struct {
	claim
	since time.Time     // in the lane it is in
	ready chan struct{} // closed when err or the grant is in
	err   error
}

// checkShare is what Check may take of the rate.
const checkShare = 0.01

func newBudget(o *Options) *budget {
	burst := max(1, o.Rate)
	return &budget{
		now: o.Now, prefetching: o.Prefetch, at: o.Now(),
		bucket: bucket{rate: o.Rate, burst: burst, tokens: burst, checks: 1},
		slots:  slots{total: o.Concurrency, free: o.Concurrency},
		queues: queues{limit: o.Queue},
	}
}

// set replaces rate and slots while the budget is in use.
func (b *budget) set(rate float64, slots int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pass(b.now())
	b.bucket.rate, b.bucket.burst = rate, max(1, rate)
	b.bucket.tokens = min(b.bucket.tokens, b.bucket.burst)
	b.slots.free += slots - b.slots.total
	b.slots.total = slots
	b.grant()
}

// take waits until a request may go out, and returns the reason it went out
// for. After a nil error the slot must be given back by release, or by refund
// when nothing was sent. Errors: the context's, ErrClosed, and those that
// turnedAway knows.
func (b *budget) take(ctx context.Context, c claim) (request.Reason, error) {
	p := &waiter{claim: c, ready: make(chan struct{})}
	if err := b.enter(p); err != nil {
		return p.reason, err
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
			return p.reason, p.err
		case <-c.promote:
			c.promote = nil
			b.promote(p)
			if patience != nil {
				patience.Stop()
			}
			patience = b.patience(p)
		case <-over:
			if b.withdraw(p) {
				return p.reason, b.tired(p)
			}
			patience = nil
		case <-ctx.Done():
			if !b.withdraw(p) && p.err == nil {
				b.refund(p.reason)
			}
			return p.reason, ctx.Err()
		}
	}
}

// patience is the timer of how long p may queue where it is; nil: for as long
// as its context.
func (b *budget) patience(p *waiter) *time.Timer {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case p.reason == request.Prefetch:
		return time.NewTimer(b.prefetching)
	case p.reason == request.Waiting && p.queue > 0:
		return time.NewTimer(p.queue - p.queue/50) // a timer is late on a busy machine
	}
	return nil
}

// tired is the error of a place whose patience is over.
func (b *budget) tired(p *waiter) error {
	if p.reason == request.Prefetch {
		return errNoHope
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts.Refused++
	return &queueError{after: minRetry}
}

// enter queues p and grants what can be granted at once.
func (b *budget) enter(p *waiter) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return understudy.ErrClosed
	}
	b.push(p)
	b.grant()
	if b.queues.count > b.queues.limit && b.remove(p) {
		b.counts.Refused++
		return errQueueFull
	}
	if err := b.late(p); err != nil && b.remove(p) {
		b.counts.Refused++
		return err
	}
	// The newest hopes are the likeliest: no more of them queue than could
	// be sent at once.
	if hopes := &b.queues.of[request.Prefetch]; hopes.count > b.slots.total {
		oldest := hopes.first()
		b.remove(oldest)
		oldest.err = errNoHope
		close(oldest.ready)
	}
	return nil
}

// late is an error when p's turn will come too late for whoever waits.
func (b *budget) late(p *waiter) error {
	if p.reason != request.Waiting || p.queue == 0 {
		return nil
	}
	patience := p.queue
	if !p.by.IsZero() {
		patience = min(patience, p.by.Sub(p.since))
	}
	ahead := b.queues.of[p.reason].ahead(p)
	if ahead < 0 {
		return nil // it has been let out
	}
	// At the very end of his patience he would leave just as his turn comes.
	if wait := b.wait(ahead); wait > patience-patience/25 {
		return &queueError{after: max(minRetry, wait-patience)}
	}
	return nil
}

// wait is how long the place behind so many others is likely to wait: for
// tokens, and for slots as long as these have lately been held.
func (b *budget) wait(ahead int) time.Duration {
	var wait time.Duration
	if lacking := float64(ahead+1) - b.bucket.tokens; lacking > 0 {
		wait = time.Duration(lacking / b.bucket.rate * float64(time.Second))
	}
	if lacking := ahead + 1 - b.slots.free; lacking > 0 {
		// An upstream that has stalled shows by nothing coming back.
		hold := max(b.slots.hold, b.slots.held/time.Duration(b.slots.total))
		wait = max(wait, hold*time.Duration(lacking)/time.Duration(b.slots.total))
	}
	return wait
}

// leave is remove for the request itself.
func (b *budget) withdraw(p *waiter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.remove(p)
}

func (b *budget) promote(p *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.reason != request.Waiting && b.remove(p) {
		p.reason = request.Waiting
		b.push(p)
		b.grant()
	}
}

// release gives a slot back.
func (b *budget) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pass(b.now())
	b.slots.release()
	b.grant()
}

// refund gives slot and tokens back: nothing was sent.
func (b *budget) refund(reason request.Reason) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slots.free++
	b.bucket.tokens = min(b.bucket.burst, b.bucket.tokens+1)
	if reason == request.Check {
		b.bucket.checks = 1
	}
	b.grant()
}

func (b *budget) stats() Queue {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.counts
	q.Limit, q.Now = b.queues.limit, b.queues.count
	for i := range b.queues.of {
		if since := b.queues.of[i].oldest(); !since.IsZero() {
			q.Oldest = max(q.Oldest, b.now().Sub(since))
		}
	}
	return q
}

// close turns everybody away.
func (b *budget) close() {
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
