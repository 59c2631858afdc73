// Subscription: the handle of one subscriber.

package dispatch

import "sync/atomic"

// Subscription is one subscriber of a bus. Two subscriptions of the same function are
// two. It is safe for concurrent use.
type Subscription struct {
	closed atomic.Bool
	remove func()        // set once, before other goroutines see the subscription
	done   chan struct{} // closed when no worker of it runs

	offered, called, failed, lost atomic.Int64
}

func newSubscription() *Subscription { return &Subscription{done: make(chan struct{})} }

// Close ends the subscription: no later round reaches it, nor does a round of this
// goroutine that has not come to it yet. A running call goes on, and a round of another
// goroutine may be just making one. Events in its queue are dropped and counted as
// lost. Close does not wait, so a subscriber may call it on itself; Done is closed when
// the last asynchronous call has returned. A second Close does nothing.
func (s *Subscription) Close() {
	if s.closed.CompareAndSwap(false, true) {
		s.remove()
	}
}

// Done is closed when the subscription is closed and, if it is asynchronous,
// its workers have ended.
func (s *Subscription) Done() <-chan struct{} { return s.done }

// Lost is how many events an asynchronous subscriber did not get although it was
// subscribed: its queue was full, or it was closed before their turn.
func (s *Subscription) Lost() int64 { return s.lost.Load() }

// Stats are the counts of an asynchronous subscription; those of a synchronous
// one are zero. Once it is done and every round has returned, Offered is
// Called + Lost.
type Stats struct {
	Offered int64 // events that came while it was subscribed
	Called  int64 // calls that have returned
	Failed  int64 // of these, with an error or a panic
	Lost    int64
}

// Stats are the counts so far.
func (s *Subscription) Stats() Stats {
	return Stats{Offered: s.offered.Load(), Called: s.called.Load(), Failed: s.failed.Load(), Lost: s.lost.Load()}
}
