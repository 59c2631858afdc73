// Reserve: the tokens that other work leaves to readers, sized by how readers came of late.

package throttle

import (
	"math"
	"time"

	"understudy/kit/touch"
)

const (
	late    = 0.05            // the chance that a reader finds the bucket empty; with less, few bursts would ask for the most
	forget  = 5 * time.Minute // in it a draw's weight falls to 1/e: long beside the time between bursts, short beside a quiet hour
	learn   = time.Minute     // a shorter history is none: it may lack a burst
	untried = 0.25            // of the burst, until then
	alone   = 10              // readers counted as if each had come alone, so that a reserve that no reader needs sinks
	least   = 1               // tokens: a reader that comes alone does not wait
	most    = 0.5             // of the burst, so that other work has the other half
	resize  = time.Second     // how often the reserve is sized: Level takes some microseconds
)

// reserve is sized by the draw of readers: how many tokens readers alone would have taken out of a full bucket that had
// not yet been refilled, the newest reader's with them. A reader finds the bucket empty when the draw is more than what
// was left to readers.
//
// The draw is noted when a reader comes. For mean and variance of the readers that came in each second, most seconds
// would be empty ones, and a burst that is rarer than one second in twenty would count for nothing.
type reserve struct {
	tokens float64   // what is kept
	since  time.Time // the history begins
	next   time.Time // when it is sized again

	at                   time.Time // of the last reader
	draw                 float64   // then, its own token with it
	weight, sum, squares float64   // of the draws then, the old ones forgotten
}

// came notes a reader.
func (r *reserve) came(now time.Time, b bucket) {
	r.draw = min(b.burst, max(0, r.draw-now.Sub(r.at).Seconds()*b.rate)+1)
	kept := r.kept(now)
	r.weight, r.sum, r.squares = r.weight*kept+1, r.sum*kept+r.draw, r.squares*kept+r.draw*r.draw
	r.at = now
}

// kept is the part of weight, sum and squares that is not forgotten.
func (r *reserve) kept(now time.Time) float64 {
	return math.Exp(-now.Sub(r.at).Seconds() / forget.Seconds())
}

// size sizes the reserve, when it is time to. During a burst, the draw is taken for a Brownian motion that at the end has
// the mean and the variance of the draws that were noted.
func (r *reserve) size(now time.Time, b bucket) {
	if now.Before(r.next) {
		return
	}
	r.next = now.Add(resize)
	if now.Sub(r.since) < learn {
		r.tokens = untried * b.burst
		return
	}
	kept := r.kept(now)
	weight := r.weight*kept + alone
	mean := (r.sum*kept + alone) / weight
	variance := max(0, (r.squares*kept+alone)/weight-mean*mean)
	level := touch.Walk{Drift: mean, Sigma: math.Sqrt(variance)}.Level(0, late, 1, false)
	r.tokens = min(max(level, least), most*b.burst)
}
