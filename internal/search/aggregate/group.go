// This file adds rows to the sums of a group, and subtracts them again.

package aggregate

import (
	"math"
	"math/big"
	"math/bits"
	"slices"

	"understudy/internal/search/columns"
)

// key identifies a group. The value of a dimension that was not requested is 0.
type key struct {
	by   [MaxDimensions]int64
	unit uint32
}

// MaxDimensions is the maximum number of dimensions by which rows are grouped.
const MaxDimensions = 2

// group sums up the rows that have the same key.
type group struct {
	rows      int64
	values    int64     // the number of rows that have a value
	sum       int64     // the sum of values that fit in a cell, in millionths
	large     *big.Rat  // the sum of values that do not fit in a cell; nil means that there are none
	durations durations // the counts of elapsed seconds
}

// value is what one row adds to its group.
type value struct {
	millionths int64
	large      *big.Rat
	present    bool // whether the row has a value
}

// add adds a row if by is 1, or subtracts it if by is -1. It returns the new number of rows.
func (g *group) add(v value, by int64, timed bool) (rows int64) {
	g.rows += by
	if !v.present {
		return g.rows
	}
	g.values += by
	switch {
	case v.large != nil:
		if g.large == nil {
			g.large = new(big.Rat)
		}
		if by > 0 {
			g.large.Add(g.large, v.large)
		} else {
			g.large.Sub(g.large, v.large)
		}
	default:
		g.sum += by * v.millionths
	}
	if timed {
		g.durations.add(v.millionths/columns.Scale, by)
	}
	return g.rows
}

func (g *group) merge(o *group) {
	g.rows, g.values, g.sum = g.rows+o.rows, g.values+o.values, g.sum+o.sum
	if o.large != nil {
		if g.large == nil {
			g.large = new(big.Rat)
		}
		g.large.Add(g.large, o.large)
	}
	for at, n := range o.durations {
		g.durations.addBucket(at, n)
	}
}

func (g *group) valueSum() *big.Rat {
	r := big.NewRat(g.sum, columns.Scale)
	if g.large != nil {
		r.Add(r, g.large)
	}
	return r
}

// magnitude returns an approximate absolute value of the sum, in millionths.
func (g *group) magnitude() float64 {
	if g.large == nil {
		return math.Abs(float64(g.sum))
	}
	odd, _ := g.large.Float64()
	return math.Abs(float64(g.sum) + odd*columns.Scale)
}

// Decimal formats a number with all its decimal places.
func Decimal(r *big.Rat) string {
	places, _ := r.FloatPrec()
	return r.FloatString(places)
}

// durations counts lengths of time by bucket. Each second up to exactSeconds has its own bucket. A bucket for
// longer times holds lengths that differ by less than a 64th.
type durations map[int32]int64

const (
	exactSeconds    = 1 << 10
	bitsPerDoubling = 6 // each doubling of the length is divided into 1 << bitsPerDoubling buckets
)

func (t *durations) add(seconds, by int64) {
	at := seconds
	if seconds >= exactSeconds {
		double := bits.Len64(uint64(seconds)) - 1
		at = int64(double)<<bitsPerDoubling + seconds>>(double-bitsPerDoubling) - 1<<bitsPerDoubling + exactSeconds
	}
	t.addBucket(int32(at), by)
}

func (t *durations) addBucket(at int32, by int64) {
	if *t == nil {
		*t = durations{}
	}
	if (*t)[at] += by; (*t)[at] == 0 {
		delete(*t, at)
	}
}

// bucketSeconds returns the middle of a bucket in seconds.
func bucketSeconds(at int32) float64 {
	if at < exactSeconds {
		return float64(at)
	}
	at -= exactSeconds
	double := at >> bitsPerDoubling
	low := (int64(at&(1<<bitsPerDoubling-1)) + 1<<bitsPerDoubling) << (double - bitsPerDoubling)
	return float64(low) + float64(int64(1)<<(double-bitsPerDoubling)-1)/2
}

// quantiles returns a length of time for each share: the smallest length that is at least as long as this share of
// all lengths. shares must be in ascending order.
func (t durations) quantiles(shares ...float64) []float64 {
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
			out[i] = bucketSeconds(at)
			i++
		}
	}
	return out
}
