// Stat: count, mean, variance, extremes and quantiles of a stream of numbers.

// Package onlinestat summarises streams of numbers without storing them. Mean and variance are computed by
// Welford's recurrence, quantiles by a histogram of bounded size. Summaries can be merged.
package onlinestat

import "math"

// Stat summarises the numbers that were added. The zero value is ready to use. Stat is not safe for concurrent
// use; Sharded is.
//
// Mean and variance are computed by B. P. Welford's recurrence (Note on a method for calculating corrected sums
// of squares and products, Technometrics 4(3), 1962). They are merged by the method of Chan, Golub and LeVeque
// (Updating formulae and a pairwise algorithm for computing sample variances, 1979). A plain sum of squares
// would lose all digits if the numbers are large compared with their deviation.
//
// NaN, infinities and numbers beyond 1e140, whose squares do not fit a float64, are counted by SkippedCount and
// change nothing else.
type Stat struct {
	count, skipped int64
	mean, squares  float64 // squares is the sum of the squared distances from the mean
	min, max       float64
	sketch         sketch
}

// maxMagnitude is the largest magnitude of a number that is not skipped.
const maxMagnitude = 1e140

// Add adds one number. It allocates only when the histogram grows.
func (s *Stat) Add(x float64) {
	if !(math.Abs(x) <= maxMagnitude) { // this condition is also true for NaN
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

// AddAll adds many numbers, at a lower cost for each than Add.
func (s *Stat) AddAll(xs []float64) {
	if len(xs) == 0 {
		return
	}
	sum, low, high := sums(xs)
	if !(low >= -maxMagnitude && high <= maxMagnitude) || sum-sum != 0 { // if any number is NaN, only the sum shows it
		s.addEach(xs)
		return
	}
	mean := sum / float64(len(xs))
	s.join(int64(len(xs)), mean, squares(xs, mean), low, high)
	s.sketch.addAll(xs)
}

// sums returns the sum, the smallest and the largest number. It adds up four sums in parallel, because each
// addition to a single sum would wait for the one before.
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

// squares returns the sum of the squared distances from the mean.
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

func (s *Stat) addEach(xs []float64) {
	for _, x := range xs {
		s.Add(x)
	}
}

// Merge adds all numbers that were added to o. It does not change o.
func (s *Stat) Merge(o *Stat) {
	s.skipped += o.skipped
	if o.count > 0 {
		s.join(o.count, o.mean, o.squares, o.min, o.max)
		s.sketch.merge(&o.sketch)
	}
}

// join merges everything except the histogram.
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

// Reset removes all numbers and keeps the allocated memory.
func (s *Stat) Reset() {
	kept := s.sketch
	*s = Stat{sketch: kept}
	s.sketch.reset()
}

// Count returns how many numbers were added, without those that were skipped.
func (s *Stat) Count() int64 { return s.count }

// SkippedCount returns how many numbers were skipped because they are NaN, infinite or beyond 1e140.
func (s *Stat) SkippedCount() int64 { return s.skipped }

// Average returns the arithmetic mean, or 0 without numbers.
func (s *Stat) Average() float64 { return s.mean }

// Variance returns the variance of a sample: the squares are divided by the count minus one. It returns 0 for
// fewer than two numbers.
func (s *Stat) Variance() float64 {
	if s.count < 2 {
		return 0
	}
	return s.squares / float64(s.count-1)
}

// Deviation returns the standard deviation of a sample.
func (s *Stat) Deviation() float64 { return math.Sqrt(s.Variance()) }

// Min returns the smallest number, or 0 without numbers.
func (s *Stat) Min() float64 { return s.min }

// Max returns the largest number, or 0 without numbers.
func (s *Stat) Max() float64 { return s.max }

// Range returns the distance from the smallest to the largest number.
func (s *Stat) Range() float64 { return s.max - s.min }

// Quantile returns the smallest number that a share p (0 to 1) of the numbers of s does not exceed; see the function
// Quantile.
func (s *Stat) Quantile(p float64) float64 { return Quantile(p, s) }

// Summary has the figures of a Stat at one moment, in the unit of its numbers.
type Summary struct {
	Count                     int64
	Mean, Deviation, Min, Max float64
	P50, P99                  float64
}

// Summary returns all figures at once.
func (s *Stat) Summary() Summary {
	return Summary{s.count, s.mean, s.Deviation(), s.min, s.max, s.Quantile(0.5), s.Quantile(0.99)}
}
