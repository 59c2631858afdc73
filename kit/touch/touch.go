// Touch: the probability that a random walk reaches a level in time, and its inverses.

// Package touch computes how likely a randomly moving number reaches a level within a time.
//
// The number is a Brownian motion with drift (Walk) or, for prices, its exponential (Geometric). The path
// counts at every moment, not only at the observed points. The closed form is the sum of two terms by the
// reflection principle (Karatzas and Shreve, Brownian Motion and Stochastic Calculus, 3.5.C; Hasbrouck,
// Empirical Market Microstructure, 15.2).
package touch

import "math"

// Walk is a Brownian motion. The caller chooses the unit of time, which is the same for Drift, Sigma and every
// argument. The methods have no side effects.
type Walk struct {
	Drift float64 // the mean change in one unit of time
	Sigma float64 // the standard deviation of the change in one unit of time; 0 means that the number moves evenly
	// Span is the time over which Drift was estimated. The drift is then uncertain: every result is the mean
	// over a normal distribution of the drift with variance Sigma^2 / Span. 0 means that Drift is exact.
	Span float64
}

// Probability returns the probability that a number at from reaches level within a time. It returns 1 if the
// number is already there, and 0 if the time is not positive. It returns NaN for a negative Sigma or an
// argument that is NaN.
func (w Walk) Probability(from, level, within float64) float64 {
	distance := math.Abs(level - from)
	toward := w.driftToward(level < from)
	switch {
	case math.IsNaN(distance+toward+within) || !(w.Sigma >= 0):
		return math.NaN()
	case distance == 0:
		return 1
	case within <= 0:
		return 0
	case math.IsInf(within, 1):
		return w.eventualProbability(distance, toward)
	}
	return w.reachProbability(distance, toward, within)
}

// driftToward returns the drift toward a level. below means that the level is below the number.
func (w Walk) driftToward(below bool) float64 {
	if below {
		return -w.Drift
	}
	return w.Drift
}

// reachProbability returns the probability to cover a distance within a time, both positive:
//
//	N((m t - d) / s)  +  exp(E) N((-M t - d) / s)
//
// For a known drift s = sigma sqrt(t), M = m and E = 2 m d / sigma^2. The mean over a drift that was estimated
// over a time T has the same form with s = sigma sqrt(t + t^2 / T), M = m + 2 d / T and E = 2 m d / sigma^2 + 2
// d^2 / (sigma^2 T). The second term is computed with erfcx where exp would overflow.
func (w Walk) reachProbability(distance, m, within float64) float64 {
	if w.Sigma == 0 {
		if m*within >= distance {
			return 1
		}
		return 0
	}
	s, far := w.Sigma*math.Sqrt(within)*math.Sqrt2, distance+m*within
	if w.Span > 0 {
		s, far = s*math.Sqrt(1+within/w.Span), far+2*distance*within/w.Span
	}
	return w.sumTerms((distance-m*within)/s, far/s, distance, m)
}

// sumTerms returns the sum of the two terms.
func (w Walk) sumTerms(near, far, distance, m float64) float64 {
	if far >= 0 { // by definition far^2 - near^2 = E
		return clamp(math.Erfc(near)/2 + math.Exp(-near*near)*erfcx(far)/2)
	}
	e := 2 * m * distance
	if w.Span > 0 {
		e += 2 * distance * distance / w.Span
	}
	return clamp(math.Erfc(near)/2 + math.Exp(e/(w.Sigma*w.Sigma))*math.Erfc(far)/2)
}

// eventualProbability returns the probability to cover a distance without a time limit.
func (w Walk) eventualProbability(distance, m float64) float64 {
	switch {
	case w.Sigma == 0 && m <= 0:
		return 0
	case w.Sigma > 0 && w.Span > 0:
		by := math.Sqrt(w.Span/2) / w.Sigma
		return w.sumTerms(-m*by, (m+2*distance/w.Span)*by, distance, m)
	case m >= 0:
		return 1
	}
	return math.Exp(2 * m * distance / (w.Sigma * w.Sigma))
}

func clamp(p float64) float64 { return min(max(p, 0), 1) }

// erfcx returns exp(x^2) erfc(x) for x >= 0.
func erfcx(x float64) float64 {
	if x < 20 {
		return math.Exp(x*x) * math.Erfc(x)
	}
	y := 1 / (2 * x * x) // the asymptotic series; its next term is below 1e-13
	return (1 - y*(1-3*y*(1-5*y*(1-7*y)))) / (x * math.SqrtPi)
}

// Level returns the level, below or above from, that a number at from reaches within a time with probability p.
// It returns NaN if p is not strictly between 0 and 1, or if another argument is invalid.
func (w Walk) Level(from, p, within float64, below bool) float64 {
	m := w.driftToward(below)
	if !(p > 0 && p < 1) || !(within > 0) || math.IsInf(within, 1) || math.IsNaN(from+m) || !(w.Sigma >= 0) {
		return math.NaN()
	}
	distance := w.distance(p, m, within)
	if below {
		return from - distance
	}
	return from + distance
}

// distance returns the distance that the number covers with probability p.
func (w Walk) distance(p, m, within float64) float64 {
	s := w.Sigma * math.Sqrt(within)
	switch {
	case w.Sigma == 0:
		return max(m*within, 0)
	case m == 0 && w.Span == 0:
		return s * math.Sqrt2 * math.Erfcinv(p)
	}
	return bisect(s, func(d float64) bool { return w.reachProbability(d, m, within) <= p })
}

// Time returns the time within which a number at from reaches level with probability p. It returns +Inf if the
// level is never that likely, and NaN as Level does.
func (w Walk) Time(from, level, p float64) float64 {
	distance, m := math.Abs(level-from), w.driftToward(level < from)
	switch {
	case !(p > 0 && p < 1) || math.IsNaN(distance+m) || !(w.Sigma >= 0):
		return math.NaN()
	case distance == 0:
		return 0
	case p >= w.eventualProbability(distance, m):
		return math.Inf(1)
	case w.Sigma == 0:
		return distance / m
	}
	return bisect(distance*distance/(w.Sigma*w.Sigma), func(t float64) bool { return w.reachProbability(distance, m, t) >= p })
}

// bisect returns the smallest positive x for which over is true. over must be true for all larger x. near has the order
// of magnitude of x.
func bisect(near float64, over func(x float64) bool) float64 {
	low, high := near, near
	for range 2000 { // as many steps as there are powers of two in a float64
		if over(high) || math.IsInf(high, 1) {
			break
		}
		low, high = high, high*2
	}
	for range 2000 {
		if low == 0 || !over(low) {
			break
		}
		low, high = low/2, low
	}
	for range 100 {
		middle := low + (high-low)/2
		if over(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// Geometric is a price whose logarithm is a Walk: Drift and Sigma describe the logarithm. Prices and levels
// must be positive, else the results are NaN.
type Geometric struct{ Walk Walk }

// Probability returns the probability that a price at from reaches level within a time; see Walk.Probability.
func (g Geometric) Probability(from, level, within float64) float64 {
	return g.Walk.Probability(math.Log(from), math.Log(level), within)
}

// Level returns the price that is reached within a time with probability p; see Walk.Level.
func (g Geometric) Level(from, p, within float64, below bool) float64 {
	return math.Exp(g.Walk.Level(math.Log(from), p, within, below))
}

// Time returns the time within which a price at from reaches level with probability p; see Walk.Time.
func (g Geometric) Time(from, level, p float64) float64 {
	return g.Walk.Time(math.Log(from), math.Log(level), p)
}
