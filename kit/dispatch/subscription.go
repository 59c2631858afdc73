// This file is about one subscriber: its subscription, and its counts.

package dispatch

import "sync/atomic"

// Subscription is one subscriber of a bus. Subscribing the same function twice makes two subscriptions. It is
// safe for concurrent use.
type Subscription struct {
	closed atomic.Bool
	remove func()        // removes the subscription from the bus; set once, before other goroutines see the subscription
	done   chan struct{} // closed when the subscription is closed and its workers have ended

	offered, called, failed, lost atomic.Int64
}

func newSubscription() *Subscription { return &Subscription{done: make(chan struct{})} }

// Close ends the subscription. No later event is delivered to it, and no event of this goroutine's current
// Dispatch that has not reached it. A running call is not interrupted, and a Dispatch of another goroutine may
// be making a last call. Events in the queue are dropped and counted as lost. Close does not wait, so a
// subscriber may call it on itself. To wait for the last asynchronous call use EndChannel. A second Close does
// nothing.
func (s *Subscription) Close() {
	if s.closed.CompareAndSwap(false, true) {
		s.remove()
	}
}

// EndChannel returns a channel that is closed when the subscription is closed and, if it is asynchronous, its
// workers have ended.
func (s *Subscription) EndChannel() <-chan struct{} { return s.done }

// LostCount returns the number of events that an asynchronous subscriber did not get although it was
// subscribed. The queue was full, or the subscription was closed before the event was handled.
func (s *Subscription) LostCount() int64 { return s.lost.Load() }

// Stats are the counts of an asynchronous subscription; for a synchronous subscription they are zero. When the
// subscription has ended and every Dispatch has returned, Offered equals Called + Lost.
type Stats struct {
	Offered int64 // the number of events dispatched while the subscription was open
	Called  int64 // the number of calls that have returned
	Failed  int64 // the number of calls that have returned an error or panicked
	Lost    int64
}

// Stats returns the current counts.
func (s *Subscription) Stats() Stats {
	return Stats{Offered: s.offered.Load(), Called: s.called.Load(), Failed: s.failed.Load(), Lost: s.lost.Load()}
}
