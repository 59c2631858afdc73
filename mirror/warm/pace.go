// Pace: lists that change often are polled more often.

package warm

// MinFactor is the smallest factor by which the usual time between two polls is multiplied.
const MinFactor = 1.0 / 3

const (
	busyFactor  = 0.7 // after a poll that finds something new, the time until the next is multiplied by this
	quietFactor = 1.5 // after quietPolls polls that find nothing new, the time until the next is multiplied by this
	maxFactor   = 4.0 // the largest factor by which the usual time between two polls is multiplied; it is for lists that nobody reads
	quietPolls  = 3   // the number of polls in a row that must find nothing new before polls become rarer
)

// Pace says how often a list is polled. It is for one goroutine.
type Pace struct {
	Factor float64 // the factor by which the usual time between two polls is multiplied
	quiet  int     // the number of polls in a row that have found nothing new
	sum    [16]byte
}

// NewPace returns a pace with the usual time between two polls.
func NewPace() Pace { return Pace{Factor: 1} }

// Observe takes a hash of each polled page. If the page has changed, the next poll comes sooner than usual. After several polls
// without a change, polls become rarer again, and if nobody reads the list, rarer than usual. The first page has no effect.
func (r *Pace) Observe(sum [16]byte) {
	before := r.sum
	switch r.sum = sum; {
	case before == [16]byte{}:
	case before != sum:
		r.Factor, r.quiet = max(min(r.Factor, 1)*busyFactor, MinFactor), 0
	default:
		if r.quiet++; r.quiet >= quietPolls {
			r.Factor, r.quiet = min(r.Factor*quietFactor, maxFactor), 0
		}
	}
}
