// This file computes a forecast from the samples of a series.

package forecast

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"understudy"
	"understudy/kit/touch"
)

// The states of a forecast.
const (
	Ready   = "forecast"
	Reached = "reached" // the newest sample is already at the level or beyond it
	NotYet  = "not yet" // there are too few samples for a forecast; Why has the reason
)

// Forecast is the answer to a question.
type Forecast struct {
	Of      string    `json:"of"` // the name of the series
	State   string    `json:"state"`
	Why     string    `json:"why,omitempty"` // the reason for the state NotYet
	Level   string    `json:"level"`
	By      time.Time `json:"by"`
	Percent float64   `json:"percent"`
	Value   string    `json:"value,omitempty"` // the newest sample, as upstream wrote it
	At      time.Time `json:"at,omitzero"`     // the time of the newest sample
	Since   time.Time `json:"since,omitzero"`  // the time of the oldest sample
	Samples int       `json:"samples"`         // the number of samples that are numbers

	Probability *Band  `json:"probability,omitempty"` // the probability that the number reaches the level by the time By
	Dates       []Date `json:"dates,omitempty"`       // the times by which the number reaches the level with certain probabilities
	// the extra distance from the level that is needed to avoid the level with probability Percent
	Need *Band `json:"need,omitempty"`

	Drift     float64               `json:"drift"`     // the mean change of the number in one day
	Deviation float64               `json:"deviation"` // the standard deviation of the number's change in one day
	LeftOut   int                   `json:"left_out"`  // the number of ignored jumps away from the level, such as a payment
	Backtest  *touch.BacktestResult `json:"backtest,omitempty"`
	// BacktestWithin is the time span of the forecasts in Backtest, as text.
	BacktestWithin string `json:"backtest_within,omitempty"`

	Line []touch.Point `json:"-"` // the points of a chart, at most maxPoints; At is in days after Since
}

// Band is a value with its 90 % interval, computed by bootstrap from random samples of the history.
type Band struct {
	Figure float64 `json:"figure"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// Date is the time by which the level is reached with a probability. A nil time means never, or later than maxDateDays.
type Date struct {
	Probability float64    `json:"probability"`
	At          *time.Time `json:"at"`
	Early       *time.Time `json:"early"` // Early and Late are the limits of the 90 % interval of At
	Late        *time.Time `json:"late"`
}

// Limits and parameters of an estimate.
const (
	minSteps                  = 24      // the minimum number of steps between samples for a forecast
	minSpanRatio              = 1. / 30 // the minimum time that the samples must cover, as a share of the time of the forecast
	bootstrapSamples          = 200     // the number of random histories in the bootstrap
	lowQuantile, highQuantile = 0.05, 0.95
	maxJump                   = 10.  // a step away from the level is ignored if it is larger than this many median steps toward the level
	maxPoints                 = 240  // the maximum number of points of a chart
	maxDateDays               = 3650 // the maximum distance of a Date from the newest sample, in days
	minBacktests              = 3    // the minimum number of forecasts in a back-test that is shown
	backtestParts             = 8    // each forecast of a back-test covers at most 1/backtestParts of the history
	// backtestStart is the divisor of the samples before a back-test begins, so that no forecast looks farther
	// ahead than back.
	backtestStart = 4
)

// estimate computes the answer to a question from samples, ordered from oldest to newest. The result depends only
// on the arguments, because the random numbers have a fixed seed.
func estimate(q Question, samples []understudy.Sample, now time.Time) *Forecast {
	by := now.Add(q.Within).UTC().Truncate(time.Second)
	f := &Forecast{Of: q.Series.String(), State: NotYet, Level: q.Level, By: by, Percent: q.Percent}
	points := pointsOf(samples)
	f.Samples = len(points)
	if len(points) == 0 {
		f.Why = "there is no sample yet"
		return f
	}
	newest := samples[len(samples)-1]
	f.Value, f.At, f.Since = newest.Value, newest.At.UTC(), samples[0].At.UTC()
	f.Line = reducePoints(points)
	level, below := q.levelNumber(), isMostlyAbove(points, q.levelNumber())
	value := points[len(points)-1].Value
	if below && value <= level || !below && value >= level {
		f.State = Reached
		return f
	}
	steps, left := stepsWithoutJumps(points, below)
	f.LeftOut = left
	walk, ok := steps.Walk()
	if f.Why = reasonNotReady(q, points, steps); f.Why != "" || !ok {
		return f
	}
	f.State, f.Drift, f.Deviation = Ready, walk.Drift, walk.Sigma
	within := (q.Within + now.Sub(newest.At)).Hours() / 24
	m := estimator{value: value, level: level, below: below, sure: q.Percent, within: within}
	m.sampleHistory(steps, newest.At)
	m.fillForecast(f, walk, newest.At)
	runBacktest(f, q, steps, below)
	return f
}

// pointsOf converts samples to points, with At in days after the first sample. It skips samples that are no numbers.
func pointsOf(samples []understudy.Sample) []touch.Point {
	points := make([]touch.Point, 0, len(samples))
	for _, s := range samples {
		v, err := strconv.ParseFloat(s.Value, 64)
		if err == nil && !math.IsInf(v, 0) && !math.IsNaN(v) {
			points = append(points, touch.Point{At: s.At.Sub(samples[0].At).Hours() / 24, Value: v})
		}
	}
	return points
}

// isMostlyAbove reports whether at least half of the points lie above level, so that the number has to fall to reach it.
func isMostlyAbove(points []touch.Point, level float64) bool {
	above := 0
	for _, p := range points {
		if p.Value > level {
			above++
		}
	}
	return 2*above >= len(points)
}

// stepsWithoutJumps returns the steps between the points without large jumps away from the level, such as a payment.
// It also returns the number of jumps that it removed. If below is true, the number falls toward the level.
func stepsWithoutJumps(points []touch.Point, below bool) (kept touch.Series, left int) {
	sign := 1.0
	if below {
		sign = -1
	}
	steps := touch.Steps(points)
	var toward []float64
	for _, s := range steps {
		if by := sign * s.Change; by > 0 {
			toward = append(toward, by)
		}
	}
	if len(toward) == 0 {
		return steps, 0
	}
	slices.Sort(toward)
	most := maxJump * touch.Quantile(toward, 0.5)
	for _, s := range steps {
		if -sign*s.Change > most {
			left++
			continue
		}
		kept = append(kept, s)
	}
	return kept, left
}

// reasonNotReady returns why there is no forecast yet, or "" if there are enough samples.
func reasonNotReady(q Question, points []touch.Point, steps touch.Series) string {
	span, ahead := points[len(points)-1].At-points[0].At, q.Within.Hours()/24
	switch {
	case len(steps) < minSteps:
		return fmt.Sprintf("a forecast needs %d samples, and has %d", minSteps+1, len(points))
	case span < ahead*minSpanRatio:
		return fmt.Sprintf("the samples cover %s; to look %s ahead they must cover %s", formatDays(span), formatDays(ahead),
			formatDays(ahead*minSpanRatio))
	case !slices.ContainsFunc(steps, func(s touch.Step) bool { return s.Change != 0 }):
		return "the number has not moved"
	}
	return ""
}

// formatDays formats a number of days as text in minutes, hours or days, rounded up to one decimal.
func formatDays(days float64) string {
	if days < 2./24 {
		return strconv.FormatFloat(math.Ceil(days*24*60*10)/10, 'f', -1, 64) + " min"
	}
	if days < 2 {
		return strconv.FormatFloat(math.Ceil(days*24*10)/10, 'f', -1, 64) + " h"
	}
	return strconv.FormatFloat(math.Ceil(days*10)/10, 'f', -1, 64) + " d"
}

// estimator computes the values of a forecast and their 90 % intervals. The intervals come from random walks that
// were estimated from random samples of the history.
type estimator struct {
	value, level, within, sure float64
	below                      bool
	resampled                  []touch.Walk
}

// sampleHistory fills m.resampled with walks estimated from random histories (block bootstrap). A block covers
// about a day, so that busy and quiet hours stay together. The seed depends only on the number of steps and on at.
func (m *estimator) sampleHistory(steps touch.Series, at time.Time) {
	span := 0.0
	for _, s := range steps {
		span += s.Duration
	}
	block := int(math.Ceil(float64(len(steps)) / max(span, 1)))
	block = max(min(block, len(steps)/8), 1)
	rnd := rand.New(rand.NewPCG(uint64(len(steps)), uint64(at.UnixNano())))
	steps.Bootstrap(rnd, bootstrapSamples, block, func(w touch.Walk) float64 {
		w.Span = 0 // the spread of the resampled walks already contains the uncertainty of the drift
		m.resampled = append(m.resampled, w)
		return 0
	})
}

// band returns the value of figure for walk, with its 90 % interval over the resampled walks.
func (m *estimator) band(walk touch.Walk, figure func(touch.Walk) float64) Band {
	figures := make([]float64, 0, len(m.resampled))
	for _, w := range m.resampled {
		figures = append(figures, figure(w))
	}
	slices.Sort(figures)
	return Band{figure(walk), touch.Quantile(figures, lowQuantile), touch.Quantile(figures, highQuantile)}
}

// fillForecast sets the probability, dates, need and rates of f. Its dates are counted from the time from.
func (m *estimator) fillForecast(f *Forecast, walk touch.Walk, from time.Time) {
	p := m.band(walk, func(w touch.Walk) float64 { return w.Probability(m.value, m.level, m.within) })
	f.Probability = &Band{roundDigits(p.Figure, 4), roundDigits(p.Low, 4), roundDigits(p.High, 4)}
	likely := []float64{0.5, m.sure}
	if m.sure == 0.5 {
		likely = likely[:1]
	}
	for _, one := range likely {
		t := m.band(walk, func(w touch.Walk) float64 { return w.Time(m.value, m.level, one) })
		f.Dates = append(f.Dates, Date{one, dateAfter(from, t.Figure), dateAfter(from, t.Low), dateAfter(from, t.High)})
	}
	away := math.Abs(m.value - m.level)
	need := m.band(walk, func(w touch.Walk) float64 {
		return max(math.Abs(m.value-w.Level(m.value, 1-m.sure, m.within, m.below))-away, 0)
	})
	f.Need = &Band{roundDigits(need.Figure, 2), roundDigits(need.Low, 2), roundDigits(need.High, 2)}
	f.Drift, f.Deviation = roundDigits(f.Drift, 6), roundDigits(f.Deviation, 6)
}

// roundDigits rounds x to n digits after the decimal point.
func roundDigits(x float64, n int) float64 {
	by := math.Pow10(n)
	return math.Round(x*by) / by
}

// dateAfter returns the time that is a number of days after from, or nil if days is maxDateDays or more.
func dateAfter(from time.Time, days float64) *time.Time {
	if !(days < maxDateDays) {
		return nil
	}
	at := from.Add(time.Duration(days * float64(day))).UTC().Truncate(time.Second)
	return &at
}

// runBacktest tests how forecasts made in the past would have performed and sets f.Backtest and f.BacktestWithin.
// Steps that were ignored as jumps are also ignored here.
func runBacktest(f *Forecast, q Question, steps touch.Series, below bool) {
	points := []touch.Point{{}}
	for _, s := range steps {
		last := points[len(points)-1]
		points = append(points, touch.Point{At: last.At + s.Duration, Value: last.Value + s.Change})
	}
	horizon := min(q.Within.Hours()/24, points[len(points)-1].At/backtestParts)
	tried := touch.Backtest(points, max(minSteps+1, len(points)/backtestStart), q.Percent, horizon, below)
	if tried.Forecasts >= minBacktests {
		f.Backtest, f.BacktestWithin = &tried, formatDays(horizon)
	}
}

// reducePoints returns at most maxPoints of the points, evenly spaced, always with the last point.
func reducePoints(points []touch.Point) []touch.Point {
	every := (len(points) + maxPoints - 1) / maxPoints
	var some []touch.Point
	for i := (len(points) - 1) % every; i < len(points); i += every {
		some = append(some, points[i])
	}
	return some
}
