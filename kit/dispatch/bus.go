// Bus: delivers an event to its subscribers and collects their errors.

// Package dispatch tells subscribers in this process of typed events.
package dispatch

import (
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

// ErrStop, returned by a synchronous subscriber (wrapped or not), ends the round: later
// subscribers do not get the event. It is no error of Dispatch.
var ErrStop = errors.New("dispatch: stop")

// PanicError is a panic of a subscriber.
type PanicError struct {
	Value any    // what it panicked with
	Stack []byte // the stack where it did, as runtime/debug.Stack gives it
}

// Error is "dispatch: panic: " and the value; the stack is left out.
func (p *PanicError) Error() string { return fmt.Sprintf("dispatch: panic: %v", p.Value) }

// Unwrap is the value when it is an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Options of a bus; the zero value works.
type Options struct {
	// Logger gets the errors of an asynchronous subscriber without Failed; nil =
	// slog.Default.
	Logger *slog.Logger
	// Grace is how long Close goes on waiting for running calls after their
	// context was cancelled; 0 = 1 s.
	Grace time.Duration
}

// Bus delivers events to its subscribers. Every method may be called from everywhere at
// any time, also from within a subscriber. No lock is held while a subscriber runs.
// Events are not kept: a subscriber that must miss none reads the rows of a store.
type Bus[E any] struct {
	options Options
	list    atomic.Pointer[[]entry[E]] // copied on write
	ctx     context.Context            // of asynchronous calls
	cancel  context.CancelFunc

	mu     sync.Mutex // over writing list, and the below
	closed bool
	last   []entry[E] // the subscribers when it was closed
	alive  int        // workers that have not ended
	idle   chan struct{}
}

// entry is one subscriber: call when it is synchronous, else async.
type entry[E any] struct {
	sub   *Subscription
	call  func(context.Context, E) error
	async *async[E]
}

// New makes a bus without subscribers.
func New[E any](o Options) *Bus[E] {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Grace <= 0 {
		o.Grace = time.Second
	}
	b := &Bus[E]{options: o, idle: make(chan struct{})}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.list.Store(new([]entry[E]))
	return b
}

// Subscribe has f called within Dispatch, after those that subscribed before.
// An event whose round has begun does not reach it. On a closed bus the
// subscription is closed.
func (b *Bus[E]) Subscribe(f func(context.Context, E) error) *Subscription {
	s := newSubscription()
	s.remove = func() {
		b.drop(s)
		close(s.done)
	}
	b.add(entry[E]{sub: s, call: f}, 0)
	return s
}

// add puts an entry at the end of the list and counts its workers; on a closed
// bus it closes the subscription and says false.
func (b *Bus[E]) add(en entry[E], workers int) bool {
	b.mu.Lock()
	if !b.closed {
		defer b.mu.Unlock()
		list := append(slices.Clip(*b.list.Load()), en)
		b.list.Store(&list)
		b.alive += workers
		return true
	}
	b.mu.Unlock()
	en.sub.Close()
	return false
}

// drop takes a subscription out of the list.
func (b *Bus[E]) drop(s *Subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	is := func(en entry[E]) bool { return en.sub == s }
	if old := *b.list.Load(); slices.ContainsFunc(old, is) {
		list := slices.DeleteFunc(slices.Clone(old), is)
		b.list.Store(&list)
	}
}

// Dispatch delivers e to the subscribers, in the order in which they subscribed. It
// calls the synchronous ones one after the other with ctx, and puts e into the queues
// of the others. An error or a panic (then a *PanicError) of one does not keep e from
// the others. All errors come back joined, with that of a queue that was full until ctx
// ended. A closed bus has no subscribers. Without an error Dispatch allocates nothing.
func (b *Bus[E]) Dispatch(ctx context.Context, e E) error {
	r := round[E]{list: *b.list.Load()}
	for r.next < len(r.list) {
		r.run(ctx, e)
	}
	return errors.Join(r.errs...)
}

// round is one event on its way along the list.
type round[E any] struct {
	list []entry[E]
	next int
	errs []error
}

// run goes along the list to its end or behind a subscriber that panicked. One
// deferred function for a run, instead of one for a call, is half of its cost.
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

// Close closes every subscription and waits until the asynchronous ones have emptied
// their queues. When ctx ends before that, the waiting events are dropped and counted
// as lost, and the context of running calls is cancelled. Close then waits for their
// return, at most Options.Grace longer; its error says how many go on. It does not wait
// for calls that Dispatch is making. It must not be called from a subscriber.
func (b *Bus[E]) Close(ctx context.Context) error {
	b.mu.Lock()
	if !b.closed {
		b.closed, b.last = true, *b.list.Load()
		b.list.Store(new([]entry[E]))
		if b.alive == 0 {
			close(b.idle)
		}
	}
	list := b.last
	b.mu.Unlock()
	for _, en := range list {
		if en.async != nil {
			en.async.finish() // what waits is still called
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
	grace := time.NewTimer(b.options.Grace)
	defer grace.Stop()
	select {
	case <-b.idle:
		return nil
	case <-grace.C:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Errorf("dispatch: close: %d calls go on: %w", b.alive, context.Cause(ctx))
}

// ended says that a worker is gone.
func (b *Bus[E]) ended() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.alive--; b.alive == 0 && b.closed {
		close(b.idle)
	}
}
