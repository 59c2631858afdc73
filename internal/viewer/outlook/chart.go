// The chart of a forecast: the samples, the level, and the likely values of the number in the future.

package outlook

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"understudy/internal/forecast"
	"understudy/internal/viewer/page"
)

// chart is the chart of a forecast. Its area is 100 by 100 units.
type chart struct {
	Line, Middle, Band string // the points of the lines: the samples, the middle of the forecast, and the area of likely values
	Level              float64
	LevelText          string
	Now                float64 // the x position of the last sample, where the forecast begins
	Grid               []page.GridLine
	Marks              []page.Mark
	Says               string // a sentence that describes the chart
}

// The maximum number of grid lines, and the number of points of the area with the likely values.
const (
	maxGridLines = 5
	fanPoints    = 24
)

// normal95 is the 0.95 quantile of the standard normal distribution.
const normal95 = 1.6449

// newChart returns the chart of a forecast. It returns nil if there are too few samples for a line.
func newChart(q *page.Exchange, f *forecast.Forecast, w figures) *chart {
	if len(f.Line) < 2 {
		return nil
	}
	level, _ := strconv.ParseFloat(f.Level, 64) // an error is not possible, because the forecast has parsed the level before
	last := f.Line[len(f.Line)-1]
	end := last.At
	if f.State == forecast.Ready {
		end = math.Max(end, f.By.Sub(f.Since).Hours()/24)
	}
	fan := fanOf(f, last.At, last.Value, end)
	low, high := level, level
	for _, p := range f.Line {
		low, high = min(low, p.Value), max(high, p.Value)
	}
	for _, p := range fan { // the chart has no room for likely values far beyond the level
		high = max(high, min(p.high, high+(high-low)/2))
		low = min(low, max(p.low, low-(high-low)/4))
	}
	if low == high {
		low, high = low-1, high+1
	}
	x := func(at float64) float64 { return page.RoundCoordinate(100 * at / max(end, 1e-9)) }
	y := func(v float64) float64 {
		return page.RoundCoordinate(100 - 100*(min(max(v, low), high)-low)/(high-low))
	}
	c := &chart{Level: y(level), LevelText: w.format(f.Level), Now: x(last.At)}
	var course, middle, upper, lower strings.Builder
	for _, p := range f.Line {
		fmt.Fprintf(&course, "%g,%g ", x(p.At), y(p.Value))
	}
	for i, p := range fan {
		fmt.Fprintf(&middle, "%g,%g ", x(p.at), y(p.middle))
		fmt.Fprintf(&upper, "%g,%g ", x(p.at), y(p.high))
		back := fan[len(fan)-1-i]
		fmt.Fprintf(&lower, "%g,%g ", x(back.at), y(back.low))
	}
	c.Line, c.Middle = strings.TrimSpace(course.String()), strings.TrimSpace(middle.String())
	c.Band = strings.TrimSpace(upper.String() + lower.String())
	step := niceStep(high-low, maxGridLines)
	for v := math.Ceil(low/step) * step; v <= high+step/1e6; v += step {
		c.Grid = append(c.Grid, page.GridLine{Y: y(v), Text: w.format(strconv.FormatFloat(math.Round(v/step)*step+0, 'g', 6, 64))})
	}
	c.Marks = timeMarks(q, f.Since, end, x)
	c.Says = "The number from " + dayText(q, &f.Since) + " to " + dayText(q, &f.At) + ", last " +
		w.format(f.Value) + "; the level " + w.format(f.Level)
	if f.State == forecast.Ready {
		c.Says += "; from there on, until " + dayText(q, &f.By) + ", where 90 % of the likely paths are at each time"
	}
	return c
}

// fanPoint is the range of likely values of the number at one moment.
type fanPoint struct{ at, low, middle, high float64 }

func fanOf(f *forecast.Forecast, at, value, end float64) (fan []fanPoint) {
	if f.State != forecast.Ready || end <= at {
		return nil
	}
	for i := range fanPoints + 1 {
		t := (end - at) * float64(i*i) / (fanPoints * fanPoints) // the points are closer together at the beginning, where the area is more curved
		middle, off := value+f.Drift*t, normal95*f.Deviation*math.Sqrt(t)
		fan = append(fan, fanPoint{at + t, middle - off, middle, middle + off})
	}
	return fan
}

func timeMarks(q *page.Exchange, since time.Time, days float64, x func(float64) float64) (all []page.Mark) {
	form, step := "2 Jan", max(math.Ceil(days/maxGridLines), 1)
	if days < 2 {
		form, step = "15:04", max(days/maxGridLines, 1./1440)
	}
	for at := step / 2; at < days; at += step {
		l := since.Add(time.Duration(at * 24 * float64(time.Hour))).In(q.Clock.Zone)
		all = append(all, page.Mark{X: x(at), Text: l.Format(form)})
	}
	return all
}

// niceStep returns the distance between grid lines: 1, 2 or 5 times a power of ten, so that the range has at most parts steps.
func niceStep(over float64, parts int) float64 {
	power := math.Pow(10, math.Floor(math.Log10(over/float64(parts))))
	for _, times := range []float64{1, 2, 5} {
		if over/(power*times) <= float64(parts) {
			return power * times
		}
	}
	return power * 10
}
