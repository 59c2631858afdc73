// Bucket and slots: the requests a second, and those at once.

package throttle

import (
	"fmt"
	"time"
)

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

// checkShare is the part of the rate that Check may take.
const checkShare = 0.01

// slots bound the requests at once: total by the settings; fewer where upstream refuses more, or answers no more of them
// in a second (knee).
type slots struct {
	total int
	free  int           // below zero after total was lowered, until enough have come back
	held  time.Duration // all slots together, since the last one came back
	hold  time.Duration // how long one is held: the average of held over the last answers
	knee  knee
}

// pass adds a time to the slots in use.
func (s *slots) pass(d time.Duration) { s.held += d * time.Duration(max(0, s.used())) }

// release takes a slot back.
func (s *slots) release() {
	s.hold += (s.held - s.hold) / 8
	s.held = 0
	s.free++
}

func (s *slots) used() int { return s.total - s.free }

// found is how many may be in use at once, as far as is known.
func (s *slots) found() int { return s.knee.found(s.total) }

// usable is the same, while another number is tried that one.
func (s *slots) usable() int {
	if s.knee.trying() {
		return min(s.total, s.knee.trial.limit)
	}
	return s.found()
}

// open is how many may be taken now.
func (s *slots) open() int { return s.free - s.total + s.usable() }

// resize replaces the settings' number.
func (s *slots) resize(total int, now time.Time) {
	s.knee.back(s.usable(), now)
	s.free += total - s.total
	s.total = total
}

// rest ends a trial when nothing is under way: what bounds the requests is something else.
func (s *slots) rest(now time.Time) {
	if s.used() <= 0 && s.knee.trying() {
		s.knee.unchanged(s.total, true, now)
	}
}

// Sort is of requests whose answers take about as long. Its zero value is one, too.
type Sort struct {
	Method string
	Place  string // a template of a path
	Size   int    // of the answer, roughly
}

// Observation is what one request shows of how many upstream takes at once.
type Observation struct {
	Sort    Sort
	Began   time.Time
	Took    time.Duration // until upstream answered; 0: its answer says nothing of how fast upstream is
	Lost    bool          // it did not answer: the request ended after Took
	Refused bool          // because there were too many
	Counted int64         // how many upstream has counted at once then, this one with them; 0: not told
}

// fewer is what is left of the slots after upstream refused for too many requests.
const fewer = 0.75

// refused notes that upstream took a request for one too many. Of those that were under
// way together, one counts: multiplicative decrease (D. Chiu, R. Jain, 1989). A trial of more than
// went well is only over. Where upstream tells how many it has counted, and those are
// ours alone, the number is known: one less.
func (s *slots) refused(o Observation, now time.Time) {
	k := &s.knee
	if more := s.usable() > s.found(); o.Began.Before(k.since) || !more && o.Began.Equal(k.since) {
		return
	}
	ours := min(float64(s.usable()), float64(s.used()))
	most := fewer * ours
	if c := float64(o.Counted); c > 0 && c <= ours {
		most = c - 1
	} else if s.usable() > s.found() {
		most = float64(s.found())
	}
	k.over, k.refused = s.usable(), true
	if most = max(1, most); most == float64(s.found()) {
		k.unchanged(s.total, true, now)
		return
	}
	k.most = most
	k.home, k.trial.up, k.trial.far = home{pause: few}, true, 1
	k.back(s.usable(), now)
}

// answered notes how long upstream took.
func (s *slots) answered(o Observation, now time.Time) {
	k := &s.knee
	if s.total < 2 {
		return
	}
	if k.skip > 0 && o.Took > 0 {
		if !o.Began.Before(k.since) {
			k.skip--
		}
		return
	}
	ratio, known := k.paces.ratio(o, !k.trying())
	seen := sight{ratio: ratio, used: float64(s.used())}
	switch {
	case !known || 4*s.used() < 3*s.usable(): // background work leaves a quarter to readers
		k.nothing(s.total, now)
	case k.trying():
		k.tried(seen, s.total, now)
	default:
		k.settled(seen, s.total, now)
	}
}

// why says what bounds the requests at once; "" is the settings.
func (s *slots) why() string {
	k := &s.knee
	switch {
	case s.found() >= s.total:
		return ""
	case k.over <= s.found():
		return "they were fewer; more go well so far"
	case k.refused:
		return "upstream refuses more"
	}
	return fmt.Sprintf("with %d at once, answers take %.1f times as long", k.over, k.slower)
}
