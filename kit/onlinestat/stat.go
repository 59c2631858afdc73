// Stat: count, mean, variance, extremes and quantiles of a stream of numbers.

// Package onlinestat summarises streams of numbers without keeping them: mean
// and variance by Welford's recurrence, quantiles from a histogram of bounded
// size, and summaries that can be merged.
package onlinestat

import "math"

// Stat summarises the numbers it was given. Its zero value is ready. It is not
// safe for concurrent use; Sharded is.
//
// Mean and variance are computed by B. P. Welford's recurrence (Note on a
// method for calculating corrected sums of squares and products, Technometrics
// 4(3), 1962), and merged by Chan, Golub and LeVeque's (Updating formulae and a
// pairwise algorithm for computing sample variances, 1979). A sum of squares
// would lose all digits of numbers that are large beside their deviation.
//
// NaN, infinities and numbers beyond 1e140, whose squares are no float64, are
// counted by Skipped and change nothing else.
type Stat struct {
	count, skipped int64
	mean, squares  float64 // squares: of the distances from the mean, summed
	min, max       float64
	sketch         sketch
}

// largest is the magnitude of the largest number that is taken.
const largest = 1e140

// Add takes one number. It allocates only when the histogram grows.
func (s *Stat) Add(x float64) {
	if !(math.Abs(x) <= largest) { // NaN too
		s.skipped++
		return
	}
	if s.count++; s.count == 1 {
		s.min, s.max = x, x
	}
	s.min, s.max = min(s.min, x), max(s.max, x)
	d := x - s.mean
	s.mean += d / float64(s.count)
	s.squares += d * (x - s.mean)
	s.sketch.add(x)
}

// AddAll takes many numbers, at less cost each than Add.
func (s *Stat) AddAll(xs []float64) {
	if len(xs) == 0 {
		return
	}
	sum, low, high := sums(xs)
	if !(low >= -largest && high <= largest) || sum-sum != 0 { // NaN shows in the sum alone
		s.each(xs)
		return
	}
	mean := sum / float64(len(xs))
	s.join(int64(len(xs)), mean, squares(xs, mean), low, high)
	s.sketch.addAll(xs)
}

// sums are the sum and the extremes. Four sums at once: one waits for each
// addition before the next.
func sums(xs []float64) (sum, low, high float64) {
	var a, b, c, d float64
	low, high = xs[0], xs[0]
	rest := xs
	for ; len(rest) >= 4; rest = rest[4:] {
		a, b, c, d = a+rest[0], b+rest[1], c+rest[2], d+rest[3]
	}
	for _, x := range rest {
		a += x
	}
	for _, x := range xs {
		if x < low {
			low = x
		}
		if x > high {
			high = x
		}
	}
	return a + b + (c + d), low, high
}

// squares is the sum of the squares of the distances from the mean.
func squares(xs []float64, mean float64) float64 {
	var a, b, c, d float64
	for ; len(xs) >= 4; xs = xs[4:] {
		p, q, r, t := xs[0]-mean, xs[1]-mean, xs[2]-mean, xs[3]-mean
		a, b, c, d = a+p*p, b+q*q, c+r*r, d+t*t
	}
	for _, x := range xs {
		a += (x - mean) * (x - mean)
	}
	return a + b + (c + d)
}

func (s *Stat) each(xs []float64) {
	for _, x := range xs {
		s.Add(x)
	}
}

// Merge takes all numbers o was given. o stays as it is.
func (s *Stat) Merge(o *Stat) {
	s.skipped += o.skipped
	if o.count > 0 {
		s.join(o.count, o.mean, o.squares, o.min, o.max)
		s.sketch.merge(&o.sketch)
	}
}

// join merges all but the histogram.
func (s *Stat) join(count int64, mean, squares, low, high float64) {
	if s.count == 0 {
		s.count, s.mean, s.squares, s.min, s.max = count, mean, squares, low, high
		return
	}
	a, b := float64(s.count), float64(count)
	d := mean - s.mean
	s.mean += d * (b / (a + b))
	s.squares += squares + d*d*(a*b/(a+b))
	s.min, s.max = min(s.min, low), max(s.max, high)
	s.count += count
}

// Reset forgets all numbers and keeps the memory.
func (s *Stat) Reset() {
	kept := s.sketch
	*s = Stat{sketch: kept}
	s.sketch.reset()
}

// Count is how many numbers were taken.
func (s *Stat) Count() int64 { return s.count }

// Skipped is how many numbers were not taken: NaN, infinite, or beyond 1e140.
func (s *Stat) Skipped() int64 { return s.skipped }

// Mean is the arithmetic mean; 0 without numbers.
func (s *Stat) Mean() float64 { return s.mean }

// Variance is that of a sample (divided by one less than the count); 0 of fewer
// than two numbers.
func (s *Stat) Variance() float64 {
	if s.count < 2 {
		return 0
	}
	return s.squares / float64(s.count-1)
}

// Deviation is the standard deviation of a sample.
func (s *Stat) Deviation() float64 { return math.Sqrt(s.Variance()) }

// Min is the smallest number; 0 without numbers.
func (s *Stat) Min() float64 { return s.min }

// Max is the largest number; 0 without numbers.
func (s *Stat) Max() float64 { return s.max }

// Range is from the smallest number to the largest.
func (s *Stat) Range() float64 { return s.max - s.min }

// Quantile is Quantile of s alone.
func (s *Stat) Quantile(p float64) float64 { return Quantile(p, s) }

// Summary is what a Stat tells at one moment, in the unit of its numbers.
type Summary struct {
	Count                     int64
	Mean, Deviation, Min, Max float64
	P50, P99                  float64
}

// Summary is all of it at once.
func (s *Stat) Summary() Summary {
	return Summary{s.count, s.mean, s.Deviation(), s.min, s.max, s.Quantile(0.5), s.Quantile(0.99)}
}
