// Budget: how much of upstream there is, and who may have it first.

package upstream

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"understudy"
)

// budget shares out a source's requests: rate a second (a bucket that holds a
// second's worth, 1 at least) and slots at once. There are two lanes. Waiting
// takes whatever is left, and goes first. The others pause while less than a
// quarter of the tokens or the slots is left, Prefetch while less than half
// is; Check takes at most a hundredth of the rate besides.
type budget struct {
	now   func() time.Time
	rate  float64 // tokens a second
	burst float64
	slots int
	limit int           // queued errands in all
	hope  time.Duration // how long a Prefetch may queue

	mu     sync.Mutex
	tokens float64
	checks float64 // tokens of Check, 1 at most
	at     time.Time
	free   int // slots
	queue  [understudy.Reasons][]*place
	queued int
	timer  *time.Timer // set while tokens are waited for
	closed bool
}

// place is an errand's place in the queue.
type place struct {
	reason understudy.Reason
	ready  chan struct{} // closed when err or the grant is in
	err    error
}

// checkShare is what Check may take of the rate.
const checkShare = 0.01

var (
	errQueueFull = errors.New("too many errands wait for this source's budget")
	errNoHope    = errors.New("a prefetch is dropped: the budget is needed elsewhere")
)

func newBudget(o *Options) *budget {
	burst := max(1, o.Rate)
	return &budget{
		now: o.Now, rate: o.Rate, burst: burst, slots: o.Concurrency, limit: o.Queue, hope: o.Hope,
		tokens: burst, checks: 1, at: o.Now(), free: o.Concurrency,
	}
}

// take waits until an errand may go out. promote, when closed, moves it to the
// waiting lane. It returns the reason it went out for. After a nil error the
// slot must be given back by release, or by refund when nothing was sent.
func (b *budget) take(ctx context.Context, reason understudy.Reason, promote <-chan struct{}) (understudy.Reason, error) {
	p := &place{reason: reason, ready: make(chan struct{})}
	if err := b.enter(p); err != nil {
		return reason, err
	}
	var over <-chan time.Time
	if reason == understudy.Prefetch {
		timer := time.NewTimer(b.hope)
		defer timer.Stop()
		over = timer.C
	}
	for {
		select {
		case <-p.ready:
			return p.reason, p.err
		case <-promote:
			promote, over = nil, nil
			b.promote(p)
		case <-over:
			if b.leave(p) {
				return p.reason, errNoHope
			}
			over = nil
		case <-ctx.Done():
			if !b.leave(p) && p.err == nil {
				b.refund(p.reason)
			}
			return p.reason, ctx.Err()
		}
	}
}

// enter queues p and grants what can be granted at once.
func (b *budget) enter(p *place) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return understudy.ErrClosed
	}
	b.push(p)
	b.grant()
	if b.queued > b.limit && b.remove(p) {
		return errQueueFull
	}
	// The newest hopes are the likeliest: no more of them queue than could
	// be sent at once.
	if hopes := b.queue[understudy.Prefetch]; len(hopes) > b.slots {
		oldest := hopes[0]
		b.remove(oldest)
		oldest.err = errNoHope
		close(oldest.ready)
	}
	return nil
}

func (b *budget) push(p *place) {
	b.queue[p.reason] = append(b.queue[p.reason], p)
	b.queued++
}

// remove takes p out of the queue; false when it is no longer there.
func (b *budget) remove(p *place) bool {
	q := b.queue[p.reason]
	i := slices.Index(q, p)
	if i < 0 {
		return false
	}
	b.queue[p.reason] = slices.Delete(q, i, i+1)
	b.queued--
	return true
}

// leave is remove for the errand itself.
func (b *budget) leave(p *place) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.remove(p)
}

func (b *budget) promote(p *place) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.reason != understudy.Waiting && b.remove(p) {
		p.reason = understudy.Waiting
		b.push(p)
		b.grant()
	}
}

// release gives a slot back.
func (b *budget) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free++
	b.grant()
}

// refund gives slot and tokens back: nothing was sent.
func (b *budget) refund(reason understudy.Reason) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free++
	b.tokens = min(b.burst, b.tokens+1)
	if reason == understudy.Check {
		b.checks = 1
	}
	b.grant()
}

// grant lets out whoever may go, and sets the timer for whoever may go next.
// The lock is held.
func (b *budget) grant() {
	now := b.now()
	if d := now.Sub(b.at).Seconds(); d > 0 {
		b.tokens = min(b.burst, b.tokens+d*b.rate)
		b.checks = min(1, b.checks+d*b.rate*checkShare)
	}
	b.at = now
	next := time.Duration(-1)
	for reason := range b.queue {
		r := understudy.Reason(reason)
		for len(b.queue[r]) > 0 && b.lacks(r) == 0 {
			p := b.queue[r][0]
			b.remove(p)
			b.free--
			b.tokens--
			if r == understudy.Check {
				b.checks--
			}
			close(p.ready)
		}
		if len(b.queue[r]) == 0 {
			continue
		}
		if wait := b.lacks(r); wait > 0 && (next < 0 || wait < next) {
			next = wait
		}
		if r == understudy.Waiting {
			break // nobody goes before a waiting reader
		}
	}
	b.wake(next)
}

// lacks is how long until there are enough tokens for an errand of that
// reason: 0 when it may go now, -1 when it is slots that lack.
func (b *budget) lacks(r understudy.Reason) time.Duration {
	share := 0.25
	switch r {
	case understudy.Waiting:
		share = 0
	case understudy.Prefetch:
		share = 0.5
	}
	if need := max(1, share*float64(b.slots)); float64(b.free) < need {
		return -1
	}
	// A hair less than a whole token is one: sums of fractions fall short.
	const hair = 1e-6
	wait := (max(1, share*b.burst) - hair - b.tokens) / b.rate
	if r == understudy.Check {
		wait = max(wait, (1-hair-b.checks)/(b.rate*checkShare))
	}
	if wait <= 0 {
		return 0
	}
	return time.Duration(wait*float64(time.Second)) + time.Microsecond
}

// wake sets the timer, or stops it when after is negative.
func (b *budget) wake(after time.Duration) {
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

// close turns everybody away.
func (b *budget) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.wake(-1)
	for r := range b.queue {
		for _, p := range b.queue[r] {
			p.err = understudy.ErrClosed
			close(p.ready)
		}
		b.queue[r] = nil
	}
	b.queued = 0
}
