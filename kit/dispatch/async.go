// Async: delivers events on separate goroutines, through bounded queues.

package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Policy says what happens to an event when the queue is full.
type Policy uint8

// What happens to an event when the queue is full.
const (
	Drop  Policy = iota // the event is lost and counted; Dispatch never waits
	Block               // Dispatch waits for space until its context ends; then the event is lost and Dispatch returns an error
)

// Async describes an asynchronous subscriber.
type Async[E any] struct {
	// Call is called once for each event. Its context is not that of Dispatch. It is cancelled when the context
	// of Bus.Close ends before the queues are empty.
	Call func(context.Context, E) error
	// Queue is the maximum number of waiting events for each worker; 0 means 64.
	Queue  int
	Policy Policy
	// Workers is the number of calls that run at once; 0 means 1.
	Workers int
	// Key keeps events in order when there are several workers. Calls for events with the same key run one
	// after the other, in the order of Dispatch. Several keys share a worker: while its queue is full, their
	// events wait or are lost. If Key is nil and there are several workers, events have no order.
	Key func(E) string
	// Failed is called by the worker with each error of Call; a panic is passed as a *PanicError. If Failed is
	// nil, the logger of the bus logs each error.
	Failed func(E, error)
}

// async is the state of an active asynchronous subscriber.
type async[E any] struct {
	options Async[E]
	sub     *Subscription
	seed    maphash.Seed

	lanes []lane[E] // the queues: one for each worker, or a single queue for all workers if events have no order

	queuesMu   sync.Mutex // locked while an event is sent to a queue, and while the queues are closed
	closed     bool
	quit       chan struct{} // closed together with the queues, so that senders stop waiting for space
	dropQueued atomic.Bool   // whether workers drop the events that are still in the queues

	runningWorkers atomic.Int64 // the number of workers that have not ended
}

// lane is a queue of events. A sender first reserves space in room, so that sending to queue never blocks and
// can be done while the mutex is held. No event is sent after the queue was closed, and each event is either
// passed to Call or counted as lost.
type lane[E any] struct {
	room  chan struct{}
	queue chan E
}

// SubscribeAsync makes the bus call a.Call for each event, on separate goroutines. On a closed bus it returns a
// closed subscription.
func (b *Bus[E]) SubscribeAsync(a Async[E]) *Subscription {
	a.Queue = cmp.Or(max(a.Queue, 0), 64)
	a.Workers = max(a.Workers, 1)
	if a.Failed == nil {
		a.Failed = func(_ E, err error) {
			b.options.Logger.Error("dispatch: a subscriber failed", slog.Any("error", err))
		}
	}
	s := newSubscription()
	as := &async[E]{options: a, sub: s, seed: maphash.MakeSeed(), quit: make(chan struct{})}
	lanes, each := 1, a.Queue*a.Workers
	if a.Key != nil {
		lanes, each = a.Workers, a.Queue
	}
	for range lanes {
		as.lanes = append(as.lanes, lane[E]{room: make(chan struct{}, each), queue: make(chan E, each)})
	}
	as.runningWorkers.Store(int64(a.Workers))
	s.remove = func() {
		b.removeSubscription(s)
		as.dropQueued.Store(true)
		as.finish()
	}
	if !b.add(entry[E]{sub: s, async: as}, a.Workers) {
		close(s.done)
		return s
	}
	for i := range a.Workers {
		go as.run(b, &as.lanes[i%lanes])
	}
	return s
}

// offer puts e into its queue or counts it as lost. It returns an error if ctx ended before there was space.
func (a *async[E]) offer(ctx context.Context, e E) error {
	l := &a.lanes[0]
	if len(a.lanes) > 1 {
		l = &a.lanes[maphash.String(a.seed, a.options.Key(e))%uint64(len(a.lanes))]
	}
	a.sub.offered.Add(1)
	select {
	case l.room <- struct{}{}:
		return a.send(l, e)
	default:
	}
	if a.options.Policy == Drop {
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

// send puts e into a queue that has space. If the queue is already closed, the event is counted as lost.
func (a *async[E]) send(l *lane[E], e E) error {
	a.queuesMu.Lock()
	defer a.queuesMu.Unlock()
	if a.closed {
		a.sub.lost.Add(1)
		return nil
	}
	l.queue <- e
	return nil
}

// finish closes the queues. Each worker ends when its queue is empty.
func (a *async[E]) finish() {
	a.queuesMu.Lock()
	defer a.queuesMu.Unlock()
	if a.closed {
		return
	}
	a.closed = true
	close(a.quit)
	for i := range a.lanes {
		close(a.lanes[i].queue)
	}
}

// run handles the events of a lane until its queue is closed and empty. A Call that ends its goroutine
// (runtime.Goexit) ends the subscription.
func (a *async[E]) run(b *Bus[E], l *lane[E]) {
	whole := false
	defer b.removeWorker()
	defer func() {
		if !whole {
			a.sub.Close()
		}
		a.leave()
	}()
	for e := range l.queue {
		<-l.room
		if a.dropQueued.Load() {
			a.sub.lost.Add(1)
			continue
		}
		a.handle(b.ctx, e)
	}
	whole = true
}

// handle makes one call and reports its error to Failed. The call is counted in a deferred statement, because
// Call may end its goroutine.
func (a *async[E]) handle(ctx context.Context, e E) {
	defer a.sub.called.Add(1)
	err := call(ctx, a.options.Call, e)
	if err == nil || errors.Is(err, ErrStop) {
		return
	}
	a.sub.failed.Add(1)
	_ = call(ctx, func(context.Context, E) error { a.options.Failed(e, err); return nil }, e) // a panic in Failed must not end the process
}

// leave ends a worker. The last worker also ends the subscription.
func (a *async[E]) leave() {
	if a.runningWorkers.Add(-1) > 0 {
		return
	}
	for _, l := range a.lanes {
		for range l.queue { // counts the events that a worker left in the queue when it ended early
			a.sub.lost.Add(1)
		}
	}
	a.sub.closed.Store(true)
	close(a.sub.done)
}

// call calls f and turns a panic into an error.
func call[E any](ctx context.Context, f func(context.Context, E) error, e E) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f(ctx, e)
}
