// Sketch: a histogram of bounded size with a bounded relative error.

package onlinestat

import (
	"math"
)

// sketch counts numbers in buckets whose width grows with the number: 64 to
// each power of two, so that the bucket is in the number's own bits. This is
// DDSketch with linear interpolation between powers of two (C. Masson, J. E.
// Rim, H. K. Lee: DDSketch, PVLDB 12(12), 2019, section 2.2), and the layout of
// HdrHistogram. A bucket is told as the middle of it: at most 1/128 from any
// number in it.
//
// Magnitudes below 2^-32 count as 0 and those from 2^64 up as 2^64. Buckets are
// held from the lowest to the highest in use: 6,144 of 8 bytes on each side of
// 0 at most; times from 10 ms to 30 s take 6 KB.
type sketch struct {
	zero     int64
	pos, neg side
}

const (
	perOctave = 64
	shift     = 52 - 6 // of a float64's bits: what is left tells the bucket
	lowest    = 1023 - 32
	buckets   = 96 * perOctave
)

// bucket is where a magnitude is counted; -1: it counts as 0.
func bucket(bits uint64) int {
	return min(int(bits>>shift)-lowest*perOctave, buckets-1)
}

// middle is the magnitude a bucket stands for.
func middle(i int) float64 {
	bits := uint64(i+lowest*perOctave) << shift
	return (math.Float64frombits(bits) + math.Float64frombits(bits+1<<shift)) / 2
}

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

// addAll is add for many: a positive number whose bucket is there is counted
// without a call.
func (k *sketch) addAll(xs []float64) {
	first, counts := k.pos.low+lowest*perOctave, k.pos.counts
	for _, x := range xs {
		if i := int(math.Float64bits(x)>>shift) - first; uint(i) < uint(len(counts)) {
			counts[i]++
			continue
		}
		k.add(x)
		first, counts = k.pos.low+lowest*perOctave, k.pos.counts
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

// side is what is on one side of 0: counts[i] is of bucket low+i.
type side struct {
	low    int
	counts []int64
}

// step is by how many buckets a side grows at once: two octaves.
const step = 2 * perOctave

// grow makes room for the buckets from first to last.
func (s *side) grow(first, last int) {
	first, last = first/step*step, last/step*step+step
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

// at is how many are counted in bucket i.
func (s *side) at(i int) int64 {
	if i -= s.low; uint(i) < uint(len(s.counts)) {
		return s.counts[i]
	}
	return 0
}

// Quantile is the number that a share p (0 to 1) of all numbers of the given
// Stats does not exceed: the one of rank p times their count, rounded up
// (nearest rank, without interpolation). It is at most 1/128 (0.8 %) off, of
// magnitudes from 2^-32 to 2^64; the first and the last are exact, and so is
// every p99 of fewer than 100 numbers. It is 0 without numbers.
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
	return max(low, min(high, ranked(rank, of)))
}

// ranked is the middle of the bucket in which the number of a rank is.
func ranked(rank int64, of []*Stat) float64 {
	first, last := span(of, func(k *sketch) *side { return &k.neg })
	for i := last; i >= first; i-- {
		for _, s := range of {
			rank -= s.sketch.neg.at(i)
		}
		if rank <= 0 {
			return -middle(i)
		}
	}
	for _, s := range of {
		rank -= s.sketch.zero
	}
	if rank <= 0 {
		return 0
	}
	first, last = span(of, func(k *sketch) *side { return &k.pos })
	for i := first; i <= last; i++ {
		for _, s := range of {
			rank -= s.sketch.pos.at(i)
		}
		if rank <= 0 {
			return middle(i)
		}
	}
	return math.Inf(1)
}

// span is from the lowest bucket any of them holds to the highest.
func span(of []*Stat, which func(*sketch) *side) (first, last int) {
	first, last = buckets, -1
	for _, s := range of {
		if at := which(&s.sketch); len(at.counts) > 0 {
			first, last = min(first, at.low), max(last, at.low+len(at.counts)-1)
		}
	}
	return first, last
}
