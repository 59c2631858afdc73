// Touch: the chance that a wandering number reaches a level in time, and what follows from it.

// Package touch says how likely a number that wanders reaches a level within a time.
//
// The number is a Brownian motion with drift (Walk) or, for prices, the exponential of
// one (Geometric). The path counts at every moment, not only where it is looked at. The
// closed form is the sum of two terms by the reflection principle (Karatzas and Shreve,
// Brownian Motion and Stochastic Calculus, 3.5.C; Hasbrouck, Empirical Market
// Microstructure, 15.2).
package touch

import "math"

// Walk is a Brownian motion. The unit of time is the caller's, the same for Drift, Sigma
// and every argument. Its methods are pure.
type Walk struct {
	Drift float64 // the mean change in one unit of time
	Sigma float64 // the standard deviation of that change; 0: none, the number moves evenly
	// Span is the time over which Drift was estimated: then it is not sure, and every
	// answer is the mean over a normal distribution around it of variance Sigma^2 / Span.
	// 0: Drift is known.
	Span float64
}

// Probability is the chance that a number which is at from reaches level within a time:
// 1 when it is there, 0 when the time is not positive. NaN for an argument that is NaN or
// a negative Sigma.
func (w Walk) Probability(from, level, within float64) float64 {
	distance := math.Abs(level - from)
	toward := w.toward(level < from)
	switch {
	case math.IsNaN(distance+toward+within) || !(w.Sigma >= 0):
		return math.NaN()
	case distance == 0:
		return 1
	case within <= 0:
		return 0
	case math.IsInf(within, 1):
		return w.ever(distance, toward)
	}
	return w.reach(distance, toward, within)
}

// toward is the drift toward a level on one side.
func (w Walk) toward(below bool) float64 {
	if below {
		return -w.Drift
	}
	return w.Drift
}

// reach is the chance to get a distance ahead within a time, both positive:
//
//	N((m t - d) / s)  +  exp(E) N((-M t - d) / s)
//
// For a known drift s = sigma sqrt(t), M = m and E = 2 m d / sigma^2. The mean over a drift
// that was estimated over a time T has the same form with s = sigma sqrt(t + t^2 / T),
// M = m + 2 d / T and E = 2 m d / sigma^2 + 2 d^2 / (sigma^2 T). The second term is written
// with erfcx where exp would overflow.
func (w Walk) reach(distance, m, within float64) float64 {
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
	return w.both((distance-m*within)/s, far/s, distance, m)
}

// both is the sum of the two terms.
func (w Walk) both(near, far, distance, m float64) float64 {
	if far >= 0 { // far^2 - near^2 = E
		return clamp(math.Erfc(near)/2 + math.Exp(-near*near)*erfcx(far)/2)
	}
	e := 2 * m * distance
	if w.Span > 0 {
		e += 2 * distance * distance / w.Span
	}
	return clamp(math.Erfc(near)/2 + math.Exp(e/(w.Sigma*w.Sigma))*math.Erfc(far)/2)
}

// ever is the chance to get a distance ahead at all.
func (w Walk) ever(distance, m float64) float64 {
	switch {
	case w.Sigma == 0 && m <= 0:
		return 0
	case w.Sigma > 0 && w.Span > 0:
		by := math.Sqrt(w.Span/2) / w.Sigma
		return w.both(-m*by, (m+2*distance/w.Span)*by, distance, m)
	case m >= 0:
		return 1
	}
	return math.Exp(2 * m * distance / (w.Sigma * w.Sigma))
}

func clamp(p float64) float64 { return min(max(p, 0), 1) }

// erfcx is exp(x^2) erfc(x) for x >= 0.
func erfcx(x float64) float64 {
	if x < 20 {
		return math.Exp(x*x) * math.Erfc(x)
	}
	y := 1 / (2 * x * x) // the asymptotic series; its next term is below 1e-13
	return (1 - y*(1-3*y*(1-5*y*(1-7*y)))) / (x * math.SqrtPi)
}

// Level is the level that a number at from reaches within a time with probability p: one
// below it, or above it. NaN where p is not between 0 and 1, both excluded, or an
// argument makes no sense.
func (w Walk) Level(from, p, within float64, below bool) float64 {
	m := w.toward(below)
	if !(p > 0 && p < 1) || !(within > 0) || math.IsInf(within, 1) || math.IsNaN(from+m) || !(w.Sigma >= 0) {
		return math.NaN()
	}
	distance := w.distance(p, m, within)
	if below {
		return from - distance
	}
	return from + distance
}

// distance is how far the number gets with probability p.
func (w Walk) distance(p, m, within float64) float64 {
	s := w.Sigma * math.Sqrt(within)
	switch {
	case w.Sigma == 0:
		return max(m*within, 0)
	case m == 0 && w.Span == 0:
		return s * math.Sqrt2 * math.Erfcinv(p)
	}
	return bisect(s, func(d float64) bool { return w.reach(d, m, within) <= p })
}

// Time is the time within which a number at from reaches level with probability p.
// +Inf: it never is that likely. NaN as for Level.
func (w Walk) Time(from, level, p float64) float64 {
	distance, m := math.Abs(level-from), w.toward(level < from)
	switch {
	case !(p > 0 && p < 1) || math.IsNaN(distance+m) || !(w.Sigma >= 0):
		return math.NaN()
	case distance == 0:
		return 0
	case p >= w.ever(distance, m):
		return math.Inf(1)
	case w.Sigma == 0:
		return distance / m
	}
	return bisect(distance*distance/(w.Sigma*w.Sigma), func(t float64) bool { return w.reach(distance, m, t) >= p })
}

// bisect is the least positive x for which over is true, which stays true above it.
// near has the order of magnitude of x.
func bisect(near float64, over func(x float64) bool) float64 {
	low, high := near, near
	for range 2000 { // as many as there are powers of two
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

// Geometric is a price whose logarithm is a Walk: Drift and Sigma are those of the
// logarithm. Prices and levels are positive; for others the answers are NaN.
type Geometric struct{ Walk Walk }

// Probability is as of Walk.
func (g Geometric) Probability(from, level, within float64) float64 {
	return g.Walk.Probability(math.Log(from), math.Log(level), within)
}

// Level is as of Walk.
func (g Geometric) Level(from, p, within float64, below bool) float64 {
	return math.Exp(g.Walk.Level(math.Log(from), p, within, below))
}

// Time is as of Walk.
func (g Geometric) Time(from, level, p float64) float64 {
	return g.Walk.Time(math.Log(from), math.Log(level), p)
}
