// Async: delivery on goroutines of its own, through bounded queues.

package dispatch

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Policy says what becomes of an event that finds the queue full.
type Policy uint8

// The policies.
const (
	Drop  Policy = iota // it is lost, and counted; Dispatch never waits
	Block               // Dispatch waits for space until its context ends; then the event is lost, and an error
)

// Async describes an asynchronous subscriber.
type Async[E any] struct {
	// Call is called once an event. Its context is cancelled when the bus is
	// closed and the time for that is up; it is not that of Dispatch.
	Call func(context.Context, E) error
	// Queue is how many events wait at most, for each worker; 0 = 64.
	Queue  int
	Policy Policy
	// Workers is how many calls run at once; 0 = 1.
	Workers int
	// Key keeps events in order when there are several workers. Events with one key are
	// called one after the other, as they were dispatched. Several keys share a worker:
	// while its queue is full their events wait or are lost. nil: with several workers
	// there is no order.
	Key func(E) string
	// Failed gets the error of Call, or its panic as a *PanicError. The worker calls it;
	// nil = the bus's logger, once a failure.
	Failed func(E, error)
}

// async is an asynchronous subscriber at work.
type async[E any] struct {
	o    Async[E]
	sub  *Subscription
	seed maphash.Seed

	lanes []lane[E] // one for each worker; one for all of them when there is no order

	mu     sync.Mutex // over sending to and closing the queues
	closed bool
	quit   chan struct{} // closed with closed: no sender waits for space any longer
	drop   atomic.Bool   // what is still in the queues is dropped

	running atomic.Int64 // workers
}

// lane is a queue. A sender first reserves space, so that sending never blocks and can
// be done under the lock that closing takes. No event is sent after the end, and each
// is either called or counted as lost.
type lane[E any] struct {
	room  chan struct{}
	queue chan E
}

// SubscribeAsync has a.Call called on goroutines of its own. On a closed bus
// the subscription is closed.
func (b *Bus[E]) SubscribeAsync(a Async[E]) *Subscription {
	if a.Queue <= 0 {
		a.Queue = 64
	}
	a.Workers = max(a.Workers, 1)
	if a.Failed == nil {
		a.Failed = func(_ E, err error) {
			b.options.Logger.Error("dispatch: a subscriber failed", slog.Any("error", err))
		}
	}
	s := newSubscription()
	as := &async[E]{o: a, sub: s, seed: maphash.MakeSeed(), quit: make(chan struct{})}
	lanes, each := 1, a.Queue*a.Workers
	if a.Key != nil {
		lanes, each = a.Workers, a.Queue
	}
	for range lanes {
		as.lanes = append(as.lanes, lane[E]{room: make(chan struct{}, each), queue: make(chan E, each)})
	}
	as.running.Store(int64(a.Workers))
	s.remove = func() {
		b.drop(s)
		as.drop.Store(true)
		as.finish()
	}
	if !b.add(entry[E]{sub: s, async: as}, a.Workers) {
		close(s.done)
		return s
	}
	for i := range a.Workers {
		go as.work(b, &as.lanes[i%lanes])
	}
	return s
}

// offer puts e into its queue or counts it as lost. The error is that of a context that
// ended before there was space.
func (a *async[E]) offer(ctx context.Context, e E) error {
	l := &a.lanes[0]
	if len(a.lanes) > 1 {
		l = &a.lanes[maphash.String(a.seed, a.o.Key(e))%uint64(len(a.lanes))]
	}
	a.sub.offered.Add(1)
	select {
	case l.room <- struct{}{}:
		return a.send(l, e)
	default:
	}
	if a.o.Policy == Drop {
		a.sub.lost.Add(1)
		return nil
	}
	select {
	case l.room <- struct{}{}:
		return a.send(l, e)
	case <-a.quit:
		a.sub.lost.Add(1)
		return nil
	case <-ctx.Done():
		a.sub.lost.Add(1)
		return fmt.Errorf("dispatch: a subscriber's queue is full: %w", context.Cause(ctx))
	}
}

// send puts e into a queue with space. If the queue is closed by now, the event is
// lost.
func (a *async[E]) send(l *lane[E], e E) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		a.sub.lost.Add(1)
		return nil
	}
	l.queue <- e
	return nil
}

// finish lets the workers end once their queues are empty.
func (a *async[E]) finish() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	a.closed = true
	close(a.quit)
	for i := range a.lanes {
		close(a.lanes[i].queue)
	}
}

// work calls until the queue is closed and empty. A Call that ends its
// goroutine (runtime.Goexit) ends the subscription.
func (a *async[E]) work(b *Bus[E], l *lane[E]) {
	whole := false
	defer b.ended()
	defer func() {
		if !whole {
			a.sub.Close()
		}
		a.leave()
	}()
	for e := range l.queue {
		<-l.room
		if a.drop.Load() {
			a.sub.lost.Add(1)
			continue
		}
		a.one(b.ctx, e)
	}
	whole = true
}

// one makes one call. The count is deferred for a Call that ends its
// goroutine.
func (a *async[E]) one(ctx context.Context, e E) {
	defer a.sub.called.Add(1)
	err := call(ctx, a.o.Call, e)
	if err == nil || errors.Is(err, ErrStop) {
		return
	}
	a.sub.failed.Add(1)
	_ = call(ctx, func(context.Context, E) error { a.o.Failed(e, err); return nil }, e) // a panic of its own must not end the process
}

// leave ends a worker. The last one ends the subscription.
func (a *async[E]) leave() {
	if a.running.Add(-1) > 0 {
		return
	}
	for _, l := range a.lanes {
		for range l.queue { // of a worker that did not reach the end
			a.sub.lost.Add(1)
		}
	}
	a.sub.closed.Store(true)
	close(a.sub.done)
}

// call calls f; a panic becomes its error.
func call[E any](ctx context.Context, f func(context.Context, E) error, e E) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f(ctx, e)
}
