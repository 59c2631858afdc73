// Chart: our answer times against upstream's, drawn on the server.

package viewer

import (
	"fmt"
	"math"
	"strings"
	"time"

	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
)

// chart draws our answer times against upstream's on one logarithmic scale.
type chart struct {
	Ours, Theirs             string // points of the lines
	OursMedian, TheirsMedian string
	Times                    string // "2,400"; "" when there is nothing to compare
	Rows                     []page.TimeRow
	Grid                     []gridLine
}

type gridLine struct {
	Y    float64
	Text string
}

// The answer times at the chart's edges, and its most points. Its box is 100 wide and high.
const (
	chartLow, chartHigh = 100 * time.Microsecond, 10 * time.Second
	chartPoints         = 60
)

func newChart(s *page.Snapshot) *chart {
	ours, theirs := s.OurTimes, s.TheirTimes
	if ours.Answers == 0 && theirs.Answers == 0 {
		return nil
	}
	c := &chart{Ours: polyline(s.Ours), Theirs: polyline(s.Theirs)}
	if ours.Answers > 0 {
		c.OursMedian = page.Millis(ours.P50)
		c.Rows = append(c.Rows, page.NewTimeRow("Understudy", "", ours))
	}
	if theirs.Answers > 0 {
		c.TheirsMedian = page.Millis(theirs.P50)
		c.Rows = append(c.Rows, page.NewTimeRow("Upstream", "", theirs))
	}
	for _, g := range []struct {
		at   time.Duration
		text string
	}{{time.Millisecond, "1 ms"}, {10 * time.Millisecond, "10 ms"}, {100 * time.Millisecond, "100 ms"}, {time.Second, "1 s"}} {
		c.Grid = append(c.Grid, gridLine{chartY(g.at), g.text})
	}
	if a, b := ours.P50, theirs.P50; a > 0 && b >= 2*a {
		c.Times = page.Thousands(int64(b / a))
	}
	return c
}

func polyline(times []time.Duration) string {
	if len(times) > chartPoints {
		times = times[len(times)-chartPoints:]
	}
	if len(times) == 1 {
		times = []time.Duration{times[0], times[0]}
	}
	var b strings.Builder
	for i, d := range times {
		x := 100 * float64(i) / float64(len(times)-1)
		fmt.Fprintf(&b, "%g,%g ", round(x), chartY(d))
	}
	return strings.TrimSuffix(b.String(), " ")
}

func chartY(d time.Duration) float64 {
	low, high := math.Log(float64(chartLow)), math.Log(float64(chartHigh))
	at := math.Log(float64(min(max(d, chartLow), chartHigh)))
	return round(100 - 100*(at-low)/(high-low))
}

func round(x float64) float64 { return math.Round(x*10) / 10 }

// timeRows are upstream's times by kind and reason.
func (q homeView) timeRows(s *plan.Source, times []page.Times) []page.TimeRow {
	var rows []page.TimeRow
	for _, t := range times {
		who := "Other paths"
		if k := s.Spec.Kind(t.Kind); k != nil {
			who = plan.UpperFirst(k.Title)
		}
		rows = append(rows, page.NewTimeRow(who, t.Reason, t))
	}
	return rows
}
