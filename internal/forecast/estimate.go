// Estimate: what samples say of the time to come.

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
	Reached = "reached" // the number is at the level already, or beyond
	NotYet  = "not yet" // there is too little history: no number is given
)

// Forecast is the answer to a question. The unit of time of its rates is a day.
type Forecast struct {
	Of      string    `json:"of"`
	State   string    `json:"state"`
	Why     string    `json:"why,omitempty"` // it is not yet one
	Level   string    `json:"level"`
	By      time.Time `json:"by"`
	Percent float64   `json:"percent"`
	Value   string    `json:"value,omitempty"` // the newest, as upstream wrote it
	At      time.Time `json:"at,omitzero"`     // of the newest
	Since   time.Time `json:"since,omitzero"`  // of the oldest
	Samples int       `json:"samples"`

	Probability *Band  `json:"probability,omitempty"` // to reach the level in time
	Dates       []Date `json:"dates,omitempty"`       // by when it is that likely
	Need        *Band  `json:"need,omitempty"`        // how much further away it had to be, to be so sure not to reach it

	// How the number has moved.
	Drift     float64               `json:"drift"`     // a day
	Deviation float64               `json:"deviation"` // of a day
	LeftOut   int                   `json:"left_out"`  // jumps away from the level, such as a payment
	Backtest  *touch.BacktestResult `json:"backtest,omitempty"`
	// BacktestWithin is the horizon of those forecasts.
	BacktestWithin string `json:"backtest_within,omitempty"`

	Line []touch.Point `json:"-"` // of days since Since, at most some hundred, for a drawing
}

// Band is a figure and the interval that holds it in 90 % of random samples of history.
type Band struct {
	Figure float64 `json:"figure"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// Date is when a probability is reached; a nil time is never, or later than in ten years.
type Date struct {
	Probability float64    `json:"probability"`
	At          *time.Time `json:"at"`
	Early       *time.Time `json:"early"`
	Late        *time.Time `json:"late"`
}

// What an estimate needs and does.
const (
	leastSteps  = 24      // without a forecast is not yet one
	leastSpan   = 1. / 30 // of the time it is to look ahead, that history has to cover
	resamples   = 200     // of the bootstrap
	low, high   = 0.05, 0.95
	tooFar      = 10.  // times the median move toward the level: a jump away is left out
	mostPoints  = 240  // of a drawing
	farthest    = 3650 // days a date may lie ahead
	leastTried  = 3    // forecasts of a back-test that says something
	backtestCut = 8    // parts of history, of which a back-test looks one ahead
	// A back-test begins after the first of so many parts, so that none of its forecasts looks
	// farther ahead than back.
	backtestFrom = 4
)

// estimate answers a question from samples, oldest first. The same samples and time give
// the same answer.
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
	f.Line = thinned(points)
	level, below := q.level(), falls(points, q.level())
	value := points[len(points)-1].Value
	if below && value <= level || !below && value >= level {
		f.State = Reached
		return f
	}
	steps, left := moves(points, below)
	f.LeftOut = left
	walk, ok := steps.Walk()
	if f.Why = lacking(q, points, steps); f.Why != "" || !ok {
		return f
	}
	f.State, f.Drift, f.Deviation = Ready, walk.Drift, walk.Sigma
	within := (q.Within + now.Sub(newest.At)).Hours() / 24
	m := measure{value: value, level: level, below: below, sure: q.Percent, within: within}
	m.resample(steps, newest.At)
	m.fill(f, walk, newest.At)
	backtest(f, q, steps, below)
	return f
}

// pointsOf are samples as numbers, in days from the first. What is no number is left out.
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

// falls reports whether the level is reached from above: most of history lies there.
func falls(points []touch.Point, level float64) bool {
	above := 0
	for _, p := range points {
		if p.Value > level {
			above++
		}
	}
	return 2*above >= len(points)
}

// moves are the steps without jumps away from the level, such as money that was paid in.
func moves(points []touch.Point, below bool) (kept touch.Series, left int) {
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
	most := tooFar * touch.Quantile(toward, 0.5)
	for _, s := range steps {
		if -sign*s.Change > most {
			left++
			continue
		}
		kept = append(kept, s)
	}
	return kept, left
}

// lacking says why there is no forecast yet, or nothing.
func lacking(q Question, points []touch.Point, steps touch.Series) string {
	span, ahead := points[len(points)-1].At-points[0].At, q.Within.Hours()/24
	switch {
	case len(steps) < leastSteps:
		return fmt.Sprintf("a forecast needs %d samples, and has %d", leastSteps+1, len(points))
	case span < ahead*leastSpan:
		return fmt.Sprintf("the samples cover %s; to look %s ahead they must cover %s", spanText(span), spanText(ahead),
			spanText(ahead*leastSpan))
	case !slices.ContainsFunc(steps, func(s touch.Step) bool { return s.Change != 0 }):
		return "the number has not moved"
	}
	return ""
}

// spanText is a time in days as people write it.
func spanText(days float64) string {
	if days < 2./24 {
		return strconv.FormatFloat(math.Ceil(days*24*60*10)/10, 'f', -1, 64) + " min"
	}
	if days < 2 {
		return strconv.FormatFloat(math.Ceil(days*24*10)/10, 'f', -1, 64) + " h"
	}
	return strconv.FormatFloat(math.Ceil(days*10)/10, 'f', -1, 64) + " d"
}

// measure makes the figures of a forecast from an estimate, and from others that random
// samples of history give.
type measure struct {
	value, level, within, sure float64
	below                      bool
	others                     []touch.Walk
}

// resample draws blocks of about a day, so that days with their busy and quiet hours stay
// whole. The seed is made of what is known.
func (m *measure) resample(steps touch.Series, at time.Time) {
	span := 0.0
	for _, s := range steps {
		span += s.Duration
	}
	block := int(math.Ceil(float64(len(steps)) / max(span, 1)))
	block = max(min(block, len(steps)/8), 1)
	rnd := rand.New(rand.NewPCG(uint64(len(steps)), uint64(at.UnixNano())))
	steps.Bootstrap(rnd, resamples, block, func(w touch.Walk) float64 {
		w.Span = 0 // how unsure the drift is shows in how the others differ
		m.others = append(m.others, w)
		return 0
	})
}

// band is a figure with its interval.
func (m *measure) band(walk touch.Walk, of func(touch.Walk) float64) Band {
	figures := make([]float64, 0, len(m.others))
	for _, w := range m.others {
		figures = append(figures, of(w))
	}
	slices.Sort(figures)
	return Band{of(walk), touch.Quantile(figures, low), touch.Quantile(figures, high)}
}

func (m *measure) fill(f *Forecast, walk touch.Walk, from time.Time) {
	p := m.band(walk, func(w touch.Walk) float64 { return w.Probability(m.value, m.level, m.within) })
	f.Probability = &Band{digits(p.Figure, 4), digits(p.Low, 4), digits(p.High, 4)}
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
	f.Need = &Band{digits(need.Figure, 2), digits(need.Low, 2), digits(need.High, 2)}
	f.Drift, f.Deviation = digits(f.Drift, 6), digits(f.Deviation, 6)
}

// digits rounds to so many digits after the point.
func digits(x float64, n int) float64 {
	by := math.Pow10(n)
	return math.Round(x*by) / by
}

// dateAfter is so many days after a time; nil when that is too far.
func dateAfter(from time.Time, days float64) *time.Time {
	if !(days < farthest) {
		return nil
	}
	at := from.Add(time.Duration(days * float64(day))).UTC().Truncate(time.Second)
	return &at
}

// backtest looks how forecasts from the past would have done, each over an eighth of
// history at most. Jumps that are left out are left out here, too.
func backtest(f *Forecast, q Question, steps touch.Series, below bool) {
	points := []touch.Point{{}}
	for _, s := range steps {
		last := points[len(points)-1]
		points = append(points, touch.Point{At: last.At + s.Duration, Value: last.Value + s.Change})
	}
	horizon := min(q.Within.Hours()/24, points[len(points)-1].At/backtestCut)
	tried := touch.Backtest(points, max(leastSteps+1, len(points)/backtestFrom), q.Percent, horizon, below)
	if tried.Forecasts >= leastTried {
		f.Backtest, f.BacktestWithin = &tried, spanText(horizon)
	}
}

// thinned are some of the points, the last one among them.
func thinned(points []touch.Point) []touch.Point {
	every := (len(points) + mostPoints - 1) / mostPoints
	var some []touch.Point
	for i := (len(points) - 1) % every; i < len(points); i += every {
		some = append(some, points[i])
	}
	return some
}
