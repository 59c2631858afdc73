// Sketch: a histogram of bounded size with a bounded relative error.

package onlinestat

import (
	"math"
)

// sketch is a histogram whose buckets grow with the numbers: 64 buckets for each power of two, so that the bits of a
// number give its bucket. This is DDSketch with linear interpolation between powers of two (C. Masson, J. E. Rim, H. K.
// Lee: DDSketch, PVLDB 12(12), 2019, section 2.2), and the layout of HdrHistogram. The middle of a bucket stands for
// all numbers in it, with an error of at most 1/128.
//
// Magnitudes below 2^-32 count as 0, and those of 2^64 and more as 2^64. Buckets are allocated from the lowest to the
// highest in use: at most 6,144 buckets of 8 bytes on each side of 0. Times from 10 ms to 30 s take 6 KB.
type sketch struct {
	zero     int64
	pos, neg side
}

const (
	bucketsPerOctave = 64
	bucketShift      = 52 - 6 // the number of low bits of a float64 that do not choose the bucket
	lowestExponent   = 1023 - 32
	maxBuckets       = 96 * bucketsPerOctave
)

// bucket returns the bucket of a magnitude, or a negative number if the magnitude counts as 0.
func bucket(bits uint64) int {
	return min(int(bits>>bucketShift)-lowestExponent*bucketsPerOctave, maxBuckets-1)
}

// bucketMiddle returns the magnitude in the middle of a bucket.
func bucketMiddle(i int) float64 {
	bits := uint64(i+lowestExponent*bucketsPerOctave) << bucketShift
	return (math.Float64frombits(bits) + math.Float64frombits(bits+1<<bucketShift)) / 2
}

// add counts a number in its bucket.
func (k *sketch) add(x float64) {
	bits := math.Float64bits(x)
	magnitude := bits &^ (1 << 63)
	i := bucket(magnitude)
	if i < 0 {
		k.zero++
		return
	}
	at := &k.pos
	if bits != magnitude {
		at = &k.neg
	}
	if j := i - at.low; uint(j) >= uint(len(at.counts)) {
		at.grow(i, i)
	}
	at.counts[i-at.low]++
}

// addAll counts many numbers. A positive number whose bucket is already allocated is counted without a function call.
func (k *sketch) addAll(xs []float64) {
	first, counts := k.pos.low+lowestExponent*bucketsPerOctave, k.pos.counts
	for _, x := range xs {
		if i := int(math.Float64bits(x)>>bucketShift) - first; uint(i) < uint(len(counts)) {
			counts[i]++
			continue
		}
		k.add(x)
		first, counts = k.pos.low+lowestExponent*bucketsPerOctave, k.pos.counts
	}
}

func (k *sketch) merge(o *sketch) {
	k.zero += o.zero
	k.pos.merge(&o.pos)
	k.neg.merge(&o.neg)
}

func (k *sketch) reset() {
	k.zero = 0
	clear(k.pos.counts)
	clear(k.neg.counts)
}

// side has the counts of all numbers on one side of 0. counts[i] belongs to bucket low+i.
type side struct {
	low    int
	counts []int64
}

// growStep is the number of buckets by which a side grows at least: two powers of two.
const growStep = 2 * bucketsPerOctave

// grow allocates the buckets from first to last.
func (s *side) grow(first, last int) {
	first, last = first/growStep*growStep, last/growStep*growStep+growStep
	if len(s.counts) > 0 {
		first, last = min(first, s.low), max(last, s.low+len(s.counts))
	}
	old, low := s.counts, s.low
	s.low, s.counts = first, make([]int64, last-first)
	copy(s.counts[max(0, low-first):], old)
}

func (s *side) merge(o *side) {
	if len(o.counts) == 0 {
		return
	}
	if end := o.low + len(o.counts); len(s.counts) == 0 || o.low < s.low || end > s.low+len(s.counts) {
		s.grow(o.low, end-1)
	}
	into := s.counts[o.low-s.low:]
	for i, n := range o.counts {
		into[i] += n
	}
}

// count returns how many numbers were counted in bucket i.
func (s *side) count(i int) int64 {
	if i -= s.low; uint(i) < uint(len(s.counts)) {
		return s.counts[i]
	}
	return 0
}

// Quantile returns the smallest number that a share p (0 to 1) of all numbers of the given Stats does not
// exceed. Its rank is p times the count, rounded up (nearest rank, without interpolation). For magnitudes from
// 2^-32 to 2^64 the result is off by at most 1/128 (0.8 %). The smallest and the largest number are exact, and
// so is the p99 of fewer than 100 numbers. Without numbers Quantile returns 0.
func Quantile(p float64, of ...*Stat) float64 {
	low, high, count := math.Inf(1), math.Inf(-1), int64(0)
	for _, s := range of {
		if s.count > 0 {
			low, high, count = min(low, s.min), max(high, s.max), count+s.count
		}
	}
	rank := int64(math.Ceil(p * float64(count)))
	switch {
	case count == 0:
		return 0
	case rank >= count:
		return high
	case rank <= 1 || p != p:
		return low
	}
	return max(low, min(high, valueAtRank(rank, of)))
}

// valueAtRank returns the middle of the bucket that contains the number of the given rank.
func valueAtRank(rank int64, of []*Stat) float64 {
	first, last := bucketRange(of, func(k *sketch) *side { return &k.neg })
	for i := last; i >= first; i-- {
		for _, s := range of {
			rank -= s.sketch.neg.count(i)
		}
		if rank <= 0 {
			return -bucketMiddle(i)
		}
	}
	for _, s := range of {
		rank -= s.sketch.zero
	}
	if rank <= 0 {
		return 0
	}
	first, last = bucketRange(of, func(k *sketch) *side { return &k.pos })
	for i := first; i <= last; i++ {
		for _, s := range of {
			rank -= s.sketch.pos.count(i)
		}
		if rank <= 0 {
			return bucketMiddle(i)
		}
	}
	return math.Inf(1)
}

// bucketRange returns the lowest and the highest bucket that any of the Stats has allocated.
func bucketRange(of []*Stat, which func(*sketch) *side) (first, last int) {
	first, last = maxBuckets, -1
	for _, s := range of {
		if at := which(&s.sketch); len(at.counts) > 0 {
			first, last = min(first, at.low), max(last, at.low+len(at.counts)-1)
		}
	}
	return first, last
}
