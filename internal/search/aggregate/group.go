// Group: what is added up of rows that are alike, so that a row can be taken out again.

package aggregate

import (
	"math"
	"math/big"
	"math/bits"
	"slices"

	"understudy/internal/search/columns"
)

// key is what the rows of a group have in common. A dimension that is not asked for is 0.
type key struct {
	by   [MostBy]int64
	unit uint32
}

// MostBy is by how many dimensions at most rows are put in groups.
const MostBy = 2

// group is the rows of one key.
type group struct {
	rows   int64
	values int64    // rows that have a value
	sum    int64    // of the values that fit in a cell, in millionths
	odd    *big.Rat // of the others; nil: 0
	times  times    // of elapsed seconds
}

// value is what a row adds to its group.
type value struct {
	millionths int64
	odd        *big.Rat
	ok         bool // there is one
}

// add puts a row in, or takes it out with by -1. It returns how many rows there are now.
func (g *group) add(v value, by int64, timed bool) (rows int64) {
	g.rows += by
	if !v.ok {
		return g.rows
	}
	g.values += by
	switch {
	case v.odd != nil:
		if g.odd == nil {
			g.odd = new(big.Rat)
		}
		if by > 0 {
			g.odd.Add(g.odd, v.odd)
		} else {
			g.odd.Sub(g.odd, v.odd)
		}
	default:
		g.sum += by * v.millionths
	}
	if timed {
		g.times.add(v.millionths/columns.Scale, by)
	}
	return g.rows
}

// merge adds the rows of another group.
func (g *group) merge(o *group) {
	g.rows, g.values, g.sum = g.rows+o.rows, g.values+o.values, g.sum+o.sum
	if o.odd != nil {
		if g.odd == nil {
			g.odd = new(big.Rat)
		}
		g.odd.Add(g.odd, o.odd)
	}
	for at, n := range o.times {
		g.times.addAt(at, n)
	}
}

// total is the sum of the values.
func (g *group) total() *big.Rat {
	r := big.NewRat(g.sum, columns.Scale)
	if g.odd != nil {
		r.Add(r, g.odd)
	}
	return r
}

// size is about how far from 0 the sum is.
func (g *group) size() float64 {
	if g.odd == nil {
		return math.Abs(float64(g.sum))
	}
	odd, _ := g.odd.Float64()
	return math.Abs(float64(g.sum) + odd*columns.Scale)
}

// Decimal writes a number with all its places.
func Decimal(r *big.Rat) string {
	places, _ := r.FloatPrec()
	return r.FloatString(places)
}

// times counts lengths of time. Up to exactTimes seconds each has a count of its own; above,
// all that differ by less than a 64th share one.
type times map[int32]int64

const (
	exactTimes = 1 << 10
	perDouble  = 6 // bits: so many parts has the time from one power of two to the next
)

func (t *times) add(seconds, by int64) {
	at := seconds
	if seconds >= exactTimes {
		double := bits.Len64(uint64(seconds)) - 1
		at = int64(double)<<perDouble + seconds>>(double-perDouble) - 1<<perDouble + exactTimes
	}
	t.addAt(int32(at), by)
}

func (t *times) addAt(at int32, by int64) {
	if *t == nil {
		*t = times{}
	}
	if (*t)[at] += by; (*t)[at] == 0 {
		delete(*t, at)
	}
}

// secondsAt is the middle of the lengths of time that share a count.
func secondsAt(at int32) float64 {
	if at < exactTimes {
		return float64(at)
	}
	at -= exactTimes
	double := at >> perDouble
	low := (int64(at&(1<<perDouble-1)) + 1<<perDouble) << (double - perDouble)
	return float64(low) + float64(int64(1)<<(double-perDouble)-1)/2
}

// quantiles are those of the lengths of time: the least one that so many parts of all do not exceed. shares rise.
func (t times) quantiles(shares ...float64) []float64 {
	places := make([]int32, 0, len(t))
	all := int64(0)
	for at, n := range t {
		places = append(places, at)
		all += n
	}
	slices.Sort(places)
	out := make([]float64, len(shares))
	i, passed := 0, int64(0)
	for _, at := range places {
		passed += t[at]
		for i < len(shares) && float64(passed) >= shares[i]*float64(all) {
			out[i] = secondsAt(at)
			i++
		}
	}
	return out
}
