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
	most  float64       // at once, as upstream takes them; 0: total
	since time.Time     // most was lowered
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

// usable is how many may be in use at once.
func (s *slots) usable() int {
	if s.most == 0 {
		return s.total
	}
	return min(s.total, int(s.most))
}

// open is how many may be taken now.
func (s *slots) open() int { return s.free - s.total + s.usable() }

const (
	fewer = 0.75 // of the slots are left after upstream refused for too many requests
	more  = 0.5  // slots more after as many good answers as there are slots
)

// refused notes that upstream took a request for one too many. Of those that were under
// way together, one counts: additive increase, multiplicative decrease (D. Chiu, R. Jain,
// 1989). Where upstream tells how many it has counted, and those are ours alone, the number is
// known: one less.
func (s *slots) refused(began, now time.Time, counted int64) {
	if began.Before(s.since) {
		return
	}
	ours := min(float64(s.usable()), float64(s.total-s.free))
	most := fewer * ours
	if c := float64(counted); c > 0 && c <= ours {
		most = c - 1
	}
	s.most, s.since = max(1, most), now
}

// answered notes an answer that came while most of the slots were in use: there may be room
// for more.
func (s *slots) answered() {
	if s.most > 0 && 2*(s.total-s.free) >= s.usable() {
		if s.most += more / s.most; s.most >= float64(s.total) {
			s.most = 0
		}
	}
}

// checkShare is the part of the rate that Check may take.
const checkShare = 0.01
