// Series: what the past of a number says of its drift and deviation.

package touch

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Point is a number at a time. The unit of time is the caller's.
type Point struct{ At, Value float64 }

// Step is what happened between two points.
type Step struct{ Over, Change float64 }

// Series are the steps of a number, in the order of time. The distances in time need not
// be equal.
type Series []Step

// Steps are the steps between points that are in the order of time. Points of the same
// time count once, with the last value.
func Steps(points []Point) Series {
	var s Series
	for i := 1; i < len(points); i++ {
		if over := points[i].At - points[i-1].At; over > 0 {
			s = append(s, Step{Over: over, Change: points[i].Value - points[i-1].Value})
		} else if len(s) > 0 {
			s[len(s)-1].Change += points[i].Value - points[i-1].Value
		}
	}
	return s
}

// Walk estimates drift and deviation by maximum likelihood, the deviation without bias:
// every step counts by its length. Its Span says how sure the drift is. Fewer than two steps are no estimate: ok is false.
func (s Series) Walk() (w Walk, ok bool) { return s.weighted(func(int) float64 { return 1 }) }

// Recent is Walk with weights that halve with every halfLife back from the end. ok is
// false as for Walk, and when halfLife is not positive.
func (s Series) Recent(halfLife float64) (w Walk, ok bool) {
	if !(halfLife > 0) {
		return Walk{}, false
	}
	weights, age := make([]float64, len(s)), 0.0
	for i := len(s) - 1; i >= 0; i-- {
		weights[i] = math.Exp2(-age / halfLife)
		age += s[i].Over
	}
	return s.weighted(func(i int) float64 { return weights[i] })
}

func (s Series) weighted(weight func(i int) float64) (w Walk, ok bool) {
	var change, over, squared, sum, squares float64
	for i, step := range s {
		by := weight(i)
		change, over, squared = change+by*step.Change, over+by*step.Over, squared+by*by*step.Over
		sum, squares = sum+by, squares+by*by
	}
	if len(s) < 2 || !(over > 0) || squares >= sum*sum {
		return Walk{}, false
	}
	w.Drift, w.Span = change/over, over*over/squared
	for i, step := range s {
		off := step.Change - w.Drift*step.Over
		w.Sigma += weight(i) * off * off / step.Over
	}
	w.Sigma = math.Sqrt(w.Sigma / (sum - squares/sum))
	return w, !math.IsNaN(w.Sigma+w.Drift) && !math.IsInf(w.Sigma+w.Drift, 0)
}

// Bootstrap estimates anew from so many random samples of the steps, drawn with
// replacement in blocks of neighbours (Künsch 1989), so that what hangs together in time
// stays together; block is their number, 1 for steps that are independent. of makes a
// figure of each estimate. The figures come sorted; Quantile reads a band from them. The
// same rnd gives the same figures.
func (s Series) Bootstrap(rnd *rand.Rand, times, block int, of func(Walk) float64) []float64 {
	if len(s) < 2 {
		return nil
	}
	block = min(max(block, 1), len(s))
	drawn, figures := make(Series, 0, len(s)), make([]float64, 0, times)
	for range times {
		drawn = drawn[:0]
		for len(drawn) < len(s) { // blocks run over the end, so that every step is as likely
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

// Quantile is the p-quantile of sorted figures, between two of them by interpolation;
// NaN of none.
func Quantile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := min(max(p, 0), 1) * float64(len(sorted)-1)
	low := int(at)
	a, b := sorted[low], sorted[min(low+1, len(sorted)-1)]
	if a == b { // two that are infinite, too
		return a
	}
	return a + (b-a)*(at-float64(low))
}

// unseen is -zeta(1/2) / sqrt(2 pi).
const unseen = 0.5826

// Tried is the result of a Backtest.
type Tried struct {
	Forecasts int `json:"forecasts"`
	Touched   int `json:"touched"`
}

// Backtest makes forecasts from the past: at times that lie a horizon apart it estimates
// from the points before, at least so many, and asks for the level that is reached with
// probability p. It counts how many were made, and how many of those levels a later
// point within the horizon reached. Points show less than the path: a level counts as
// reached when they come within unseen deviations of one step (Broadie, Glasserman and
// Kou, A Continuity Correction for Discrete Barrier Options, 1997).
func Backtest(points []Point, least int, p, horizon float64, below bool) (t Tried) {
	for i := max(least, 3) - 1; i < len(points); {
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
			away -= unseen * w.Sigma * math.Sqrt((points[end].At-now.At)/float64(end-i))
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
