// This file computes how many tokens requests without a reader leave to readers, from the recent readers.

package throttle

import (
	"math"
	"time"

	"understudy/kit/touch"
)

const (
	// The accepted chance that a reader finds the bucket empty; a smaller chance would need the maximum reserve after few
	// bursts
	emptyChance = 0.05
	// the time in which a draw's weight falls to 1/e: long compared with the time between bursts, short
	// compared with a quiet hour
	decayTime      = 5 * time.Minute
	learnTime      = time.Minute // a history shorter than this is not used, because it may contain no burst
	initialPart    = 0.25        // the reserve until there is enough history, as a part of the maximum tokens
	virtualReaders = 10          // the number of imagined readers that came alone; they let the reserve become smaller if no reader needs it
	minReserve     = 1           // the minimum reserve in tokens, so that a reader that comes alone does not wait
	maxReservePart = 0.5         // the maximum reserve, as a part of the maximum tokens; other requests get the rest
	resizeInterval = time.Second // the time between two computations of the reserve, each of which takes some microseconds
)

// reserve is computed from the draw of the readers. The draw is the number of tokens that readers alone would
// have taken out of a full bucket and that were not refilled yet, with the newest reader's token. A reader
// finds the bucket empty if the draw is larger than the tokens left to readers.
//
// The draw is recorded when a reader comes. Counting the readers of each second would not work: most seconds
// are empty, so a burst that is rarer than one second in twenty would not count.
type reserve struct {
	tokens float64   // the current reserve in tokens
	since  time.Time // when the history of readers begins
	next   time.Time // when the reserve is computed again

	at                   time.Time // when the last reader came
	draw                 float64   // the draw at that time, including the last reader's token
	weight, sum, squares float64   // sums over the draws until then, in which older draws weigh less
}

// addReader records a reader.
func (r *reserve) addReader(now time.Time, b bucket) {
	r.draw = min(b.burst, max(0, r.draw-now.Sub(r.at).Seconds()*b.rate)+1)
	kept := r.decay(now)
	r.weight, r.sum, r.squares = r.weight*kept+1, r.sum*kept+r.draw, r.squares*kept+r.draw*r.draw
	r.at = now
}

// decay returns the factor by which weight, sum and squares have shrunk since the last reader.
func (r *reserve) decay(now time.Time) float64 {
	return math.Exp(-now.Sub(r.at).Seconds() / decayTime.Seconds())
}

// update computes the reserve if it is time. The draw during a burst is treated as a Brownian motion that ends
// with the mean and the variance of the recorded draws.
func (r *reserve) update(now time.Time, b bucket) {
	if now.Before(r.next) {
		return
	}
	r.next = now.Add(resizeInterval)
	if now.Sub(r.since) < learnTime {
		r.tokens = initialPart * b.burst
		return
	}
	kept := r.decay(now)
	weight := r.weight*kept + virtualReaders
	mean := (r.sum*kept + virtualReaders) / weight
	variance := max(0, (r.squares*kept+virtualReaders)/weight-mean*mean)
	level := touch.Walk{Drift: mean, Sigma: math.Sqrt(variance)}.Level(0, emptyChance, 1, false)
	r.tokens = min(max(level, minReserve), maxReservePart*b.burst)
}
