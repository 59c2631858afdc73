// Bus: delivers each event to the subscribers and collects their errors.

// Package dispatch delivers typed events to subscribers in the same process.
package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ErrStop ends the round if a synchronous subscriber returns it, wrapped or not: later subscribers do not get
// the event. Dispatch does not return it as an error.
var ErrStop = errors.New("dispatch: stop")

// PanicError is the panic of a subscriber.
type PanicError struct {
	Value any    // the value passed to panic
	Stack []byte // the stack at the panic, as returned by runtime/debug.Stack
}

// Error returns "dispatch: panic: " and the value, without the stack.
func (p *PanicError) Error() string { return fmt.Sprintf("dispatch: panic: %v", p.Value) }

// Unwrap returns the value if it is an error, else nil.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Options are the options of a bus. The zero value is usable.
type Options struct {
	// Logger logs the errors of asynchronous subscribers that have no Failed; nil means slog.Default.
	Logger *slog.Logger
	// Grace is how long Close keeps waiting for running calls after their context was cancelled; 0 means 1 s.
	Grace time.Duration
}

// Bus delivers events to its subscribers. Every method may be called at any time, also by a subscriber. No lock
// is held while a subscriber runs. Events are not stored: a subscriber that must not miss an event reads the
// rows of a store.
type Bus[E any] struct {
	options Options
	list    atomic.Pointer[[]entry[E]] // the subscribers; the list is copied when it changes
	ctx     context.Context            // the context that asynchronous subscribers receive
	cancel  context.CancelFunc

	mu       sync.Mutex // protects writes of list, and the fields below
	closed   bool
	lastList []entry[E] // the subscribers at the time of Close, for which Close waits
	workers  int        // the number of workers that have not ended
	idle     chan struct{}
}

// entry is one subscriber. A synchronous subscriber has call, an asynchronous one has async.
type entry[E any] struct {
	sub   *Subscription
	call  func(context.Context, E) error
	async *async[E]
}

// New returns a bus without subscribers.
func New[E any](o Options) *Bus[E] {
	o.Logger = cmp.Or(o.Logger, slog.Default())
	o.Grace = cmp.Or(max(o.Grace, 0), time.Second)
	b := &Bus[E]{options: o, idle: make(chan struct{})}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.list.Store(new([]entry[E]))
	return b
}

// Subscribe makes Dispatch call f, after the functions that were subscribed before. The subscription does not
// get an event whose Dispatch has already begun. On a closed bus the returned subscription is closed.
func (b *Bus[E]) Subscribe(f func(context.Context, E) error) *Subscription {
	s := newSubscription()
	s.remove = func() {
		b.removeSubscription(s)
		close(s.done)
	}
	b.add(entry[E]{sub: s, call: f}, 0)
	return s
}

// add appends an entry to the list and counts its workers. On a closed bus it closes the subscription and
// returns false.
func (b *Bus[E]) add(en entry[E], workers int) bool {
	b.mu.Lock()
	if !b.closed {
		defer b.mu.Unlock()
		list := append(slices.Clip(*b.list.Load()), en)
		b.list.Store(&list)
		b.workers += workers
		return true
	}
	b.mu.Unlock()
	en.sub.Close()
	return false
}

// removeSubscription removes a subscription from the list.
func (b *Bus[E]) removeSubscription(s *Subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	is := func(en entry[E]) bool { return en.sub == s }
	if old := *b.list.Load(); slices.ContainsFunc(old, is) {
		list := slices.DeleteFunc(slices.Clone(old), is)
		b.list.Store(&list)
	}
}

// Dispatch delivers e to the subscribers in the order of their subscription. It calls synchronous subscribers
// one after the other with ctx, and puts e into the queues of asynchronous ones. An error or a panic of one
// subscriber does not stop the delivery to the others. Dispatch returns all errors joined; panics become
// *PanicError, and a queue that stayed full until ctx ended is an error too. A closed bus has no subscribers.
// Without an error Dispatch allocates nothing.
func (b *Bus[E]) Dispatch(ctx context.Context, e E) error {
	r := round[E]{list: *b.list.Load()}
	for r.next < len(r.list) {
		r.run(ctx, e)
	}
	return errors.Join(r.errs...)
}

// round is the delivery of one event along the list of subscribers.
type round[E any] struct {
	list []entry[E]
	next int
	errs []error
}

// run delivers e until the end of the list or until a subscriber panics. One deferred function for each run,
// instead of one for each call, halves the cost.
func (r *round[E]) run(ctx context.Context, e E) {
	defer func() {
		if v := recover(); v != nil {
			r.errs = append(r.errs, &PanicError{Value: v, Stack: debug.Stack()})
		}
	}()
	for r.next < len(r.list) {
		en := &r.list[r.next]
		r.next++
		if en.sub.closed.Load() {
			continue
		}
		var err error
		if en.async != nil {
			err = en.async.offer(ctx, e)
		} else if err = en.call(ctx, e); err != nil && errors.Is(err, ErrStop) {
			r.next = len(r.list)
			return
		}
		if err != nil {
			r.errs = append(r.errs, err)
		}
	}
}

// Close closes every subscription and waits until the queues of asynchronous subscribers are empty. If ctx ends
// before that, the waiting events are dropped and counted as lost, and the context of running calls is
// cancelled. Close then waits for these calls, at most Options.Grace longer; its error says how many are still
// running. It does not wait for calls that Dispatch is making. A subscriber must not call Close.
func (b *Bus[E]) Close(ctx context.Context) error {
	b.mu.Lock()
	if !b.closed {
		b.closed, b.lastList = true, *b.list.Load()
		b.list.Store(new([]entry[E]))
		if b.workers == 0 {
			close(b.idle)
		}
	}
	list := b.lastList
	b.mu.Unlock()
	for _, en := range list {
		if en.async != nil {
			en.async.finish() // the worker still handles the events that are waiting
		} else {
			en.sub.Close()
		}
	}
	select {
	case <-b.idle:
		return nil
	case <-ctx.Done():
	}
	for _, en := range list {
		en.sub.Close()
	}
	b.cancel()
	select {
	case <-b.idle:
		return nil
	case <-time.After(b.options.Grace):
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Errorf("dispatch: close: %d calls go on: %w", b.workers, context.Cause(ctx))
}

// removeWorker is called when a worker has ended. The last worker of a closed bus unblocks Close.
func (b *Bus[E]) removeWorker() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.workers--; b.workers == 0 && b.closed {
		close(b.idle)
	}
}
