// Pace: lists in which much happens come due sooner.

package warm

// Soonest is the part of the usual time that lies between two polls while much happens.
const Soonest = 1.0 / 3

const (
	quicken  = 0.7 // what a poll that brings something new makes of that time
	slacken  = 1.5 // what polls that bring nothing do
	latest   = 4.0 // times the usual one, of lists without readers
	quietFor = 3   // so many of them, one after the other
)

// Pace is how often a list is polled. One goroutine uses it.
type Pace struct {
	Times float64 // the usual time between two polls
	quiet int     // polls in a row that brought nothing
	sum   [16]byte
}

// NewPace is the usual pace.
func NewPace() Pace { return Pace{Times: 1} }

// Observe notes a page. One that differs from the last makes the next come
// sooner than usual; when several in a row do not, it comes later again, and of a
// list without readers later than usual. The first tells nothing.
func (r *Pace) Observe(sum [16]byte) {
	before := r.sum
	switch r.sum = sum; {
	case before == [16]byte{}:
	case before != sum:
		r.Times, r.quiet = max(min(r.Times, 1)*quicken, Soonest), 0
	default:
		if r.quiet++; r.quiet >= quietFor {
			r.Times, r.quiet = min(r.Times*slacken, latest), 0
		}
	}
}
