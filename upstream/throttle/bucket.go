// Bucket and slots: the requests a second, and those at once.

package throttle

import "time"

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

// checkShare is the part of the rate that Check may take.
const checkShare = 0.01
