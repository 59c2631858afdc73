// A chart that compares the times of answers from the store with those of upstream.

package administration

import (
	"fmt"
	"math"
	"strings"
	"time"

	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
)

// chart shows the times of answers from the store and from upstream on a logarithmic scale.
type chart struct {
	Ours, Theirs             string // the points of the two lines: answers from the store, and from upstream
	OursMedian, TheirsMedian string
	// how many times faster answers from the store are, such as "2,400"; empty if there are too few answers
	Times      string
	Rows, Each []page.TimeRow
	Grid       []page.GridLine
}

// The shortest and the longest time that the chart can show, and the maximum number of points. The chart is 100 units
// wide and high.
const (
	chartLow, chartHigh = 100 * time.Microsecond, 10 * time.Second
	chartPoints         = 60
)

// newChart returns the chart and its table. It returns nil if there were no answers.
func newChart(src *plan.Source, l *page.Latencies) *chart {
	c := &chart{Ours: polyline(l.StoredDurations), Theirs: polyline(l.UpstreamDurations), Times: l.Speedup(), Each: timeRows(src, l.Times)}
	for _, one := range []struct {
		who   string
		times page.Times
	}{{"Programs, stored data", l.StoredTimes}, {"Programs, fetched from " + src.Spec.Title, l.ColdTimes}, {src.Spec.Title, l.UpstreamTimes}} {
		if one.times.Answers > 0 {
			c.Rows = append(c.Rows, page.NewTimeRow(one.who, "", one.times))
		}
	}
	if len(c.Rows) == 0 {
		return nil
	}
	if l.StoredTimes.Answers > 0 {
		c.OursMedian = page.FormatMillis(l.StoredTimes.P50)
	}
	if l.UpstreamTimes.Answers > 0 {
		c.TheirsMedian = page.FormatMillis(l.UpstreamTimes.P50)
	}
	for _, g := range []struct {
		at   time.Duration
		text string
	}{{time.Millisecond, "1 ms"}, {10 * time.Millisecond, "10 ms"}, {100 * time.Millisecond, "100 ms"}, {time.Second, "1 s"}} {
		c.Grid = append(c.Grid, page.GridLine{Y: chartY(g.at), Text: g.text})
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
		fmt.Fprintf(&b, "%g,%g ", page.RoundCoordinate(x), chartY(d))
	}
	return strings.TrimSuffix(b.String(), " ")
}

func chartY(d time.Duration) float64 {
	low, high := math.Log(float64(chartLow)), math.Log(float64(chartHigh))
	at := math.Log(float64(min(max(d, chartLow), chartHigh)))
	return page.RoundCoordinate(100 - 100*(at-low)/(high-low))
}

func timeRows(s *plan.Source, times []page.Times) []page.TimeRow {
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
