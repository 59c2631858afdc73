// Pace: lists that change often are polled more often.

package warm

// MinTimes is the smallest factor on the usual time between two polls.
const MinTimes = 1.0 / 3

const (
	speedUp    = 0.7 // factor on the time after a poll that finds something new
	slowDown   = 1.5 // factor on the time after several polls that find nothing new
	maxTimes   = 4.0 // largest factor, for lists without readers
	quietPolls = 3   // after so many polls in a row that find nothing new, the interval grows by slowDown
)

// Pace is how often a list is polled. Only one goroutine may use it.
type Pace struct {
	Factor float64 // factor on the usual time between two polls
	quiet  int     // polls in a row that found nothing new
	sum    [16]byte
}

// NewPace returns the usual pace.
func NewPace() Pace { return Pace{Factor: 1} }

// Observe takes the checksum of a polled page. A changed page makes the next poll come sooner than usual.
// After several unchanged pages polls become rarer again, and without readers rarer than usual. The first
// page decides nothing.
func (r *Pace) Observe(sum [16]byte) {
	before := r.sum
	switch r.sum = sum; {
	case before == [16]byte{}:
	case before != sum:
		r.Factor, r.quiet = max(min(r.Factor, 1)*speedUp, MinTimes), 0
	default:
		if r.quiet++; r.quiet >= quietPolls {
			r.Factor, r.quiet = min(r.Factor*slowDown, maxTimes), 0
		}
	}
}
