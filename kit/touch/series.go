// Series: estimates drift and deviation from past values of a number.

package touch

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Point is the value of a number at a time. The caller chooses the unit of time.
type Point struct{ At, Value float64 }

// Step is the change between two points, and the time between them.
type Step struct{ Duration, Change float64 }

// Series are the steps of a number in the order of time. They may have different durations.
type Series []Step

// Steps returns the steps between points, which must be in the order of time. Of several points with the same
// time only the last value counts.
func Steps(points []Point) Series {
	var s Series
	for i := 1; i < len(points); i++ {
		if over := points[i].At - points[i-1].At; over > 0 {
			s = append(s, Step{Duration: over, Change: points[i].Value - points[i-1].Value})
		} else if len(s) > 0 {
			s[len(s)-1].Change += points[i].Value - points[i-1].Value
		}
	}
	return s
}

// Walk estimates drift and deviation by maximum likelihood, the deviation without bias. Every step counts in
// proportion to its duration. The Span of the result says how certain the drift is. ok is false for fewer than
// two steps.
func (s Series) Walk() (w Walk, ok bool) { return s.weightedWalk(func(int) float64 { return 1 }) }

// RecentWalk is like Walk, but the weight of a step halves with every halfLife before the end. ok is also false
// if halfLife is not positive.
func (s Series) RecentWalk(halfLife float64) (w Walk, ok bool) {
	if !(halfLife > 0) {
		return Walk{}, false
	}
	weights, age := make([]float64, len(s)), 0.0
	for i := len(s) - 1; i >= 0; i-- {
		weights[i] = math.Exp2(-age / halfLife)
		age += s[i].Duration
	}
	return s.weightedWalk(func(i int) float64 { return weights[i] })
}

// weightedWalk estimates drift and deviation from the steps with the given weights.
func (s Series) weightedWalk(weight func(i int) float64) (w Walk, ok bool) {
	var change, over, squared, sum, squares float64
	for i, step := range s {
		by := weight(i)
		change, over, squared = change+by*step.Change, over+by*step.Duration, squared+by*by*step.Duration
		sum, squares = sum+by, squares+by*by
	}
	if len(s) < 2 || !(over > 0) || squares >= sum*sum {
		return Walk{}, false
	}
	w.Drift, w.Span = change/over, over*over/squared
	for i, step := range s {
		off := step.Change - w.Drift*step.Duration
		w.Sigma += weight(i) * off * off / step.Duration
	}
	w.Sigma = math.Sqrt(w.Sigma / (sum - squares/sum))
	return w, !math.IsNaN(w.Sigma+w.Drift) && !math.IsInf(w.Sigma+w.Drift, 0)
}

// Bootstrap estimates again from random samples of the steps, times in number. Samples are drawn with
// replacement in blocks of block neighbouring steps (Künsch 1989), which keeps dependencies in time; block is 1
// for independent steps. of computes a figure from each estimate. The figures are returned sorted; Quantile
// reads a band from them. The same rnd gives the same figures.
func (s Series) Bootstrap(rnd *rand.Rand, times, block int, of func(Walk) float64) []float64 {
	if len(s) < 2 {
		return nil
	}
	block = min(max(block, 1), len(s))
	drawn, figures := make(Series, 0, len(s)), make([]float64, 0, times)
	for range times {
		drawn = drawn[:0]
		for len(drawn) < len(s) { // blocks wrap around the end, so that every step is equally likely
			at := rnd.IntN(len(s))
			for i := 0; i < block && len(drawn) < len(s); i++ {
				drawn = append(drawn, s[(at+i)%len(s)])
			}
		}
		if w, ok := drawn.Walk(); ok {
			figures = append(figures, of(w))
		}
	}
	slices.Sort(figures)
	return figures
}

// Quantile returns the p-quantile of sorted figures, interpolated between neighbours. It returns NaN without figures.
func Quantile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := min(max(p, 0), 1) * float64(len(sorted)-1)
	low := int(at)
	a, b := sorted[low], sorted[min(low+1, len(sorted)-1)]
	if a == b { // also right if both values are the same infinity
		return a
	}
	return a + (b-a)*(at-float64(low))
}

// continuityCorrection is -zeta(1/2) / sqrt(2 pi).
const continuityCorrection = 0.5826

// BacktestResult is the result of a Backtest.
type BacktestResult struct {
	Forecasts int `json:"forecasts"`
	Touched   int `json:"touched"`
}

// Backtest makes forecasts from the past. At times that are a horizon apart it estimates from the earlier
// points, at least minPoints, and computes the level that is reached with probability p. It counts the
// forecasts, and the levels that a later point within the horizon reached. Points show less than the whole
// path. So a level also counts as reached if a point comes within continuityCorrection deviations of one step
// (Broadie, Glasserman and Kou, A Continuity Correction for Discrete Barrier Options, 1997).
func Backtest(points []Point, minPoints int, p, horizon float64, below bool) (t BacktestResult) {
	for i := max(minPoints, 3) - 1; i < len(points); {
		now := points[i]
		end := i
		for end+1 < len(points) && points[end+1].At <= now.At+horizon {
			end++
		}
		if end == i || points[len(points)-1].At < now.At+horizon {
			return t
		}
		if w, ok := Steps(points[:i+1]).Walk(); ok {
			away := math.Abs(w.Level(now.Value, p, horizon, below) - now.Value)
			away -= continuityCorrection * w.Sigma * math.Sqrt((points[end].At-now.At)/float64(end-i))
			t.Forecasts++
			if slices.ContainsFunc(points[i+1:end+1], func(q Point) bool {
				return q.Value <= now.Value-away && below || q.Value >= now.Value+away && !below
			}) {
				t.Touched++
			}
		}
		i = end
	}
	return t
}
