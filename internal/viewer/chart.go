// Chart: our answer times against upstream's, drawn on the server.

package viewer

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// chart draws our answer times against upstream's on one logarithmic scale.
type chart struct {
	Ours, Theirs             string // points of the lines
	OursMedian, TheirsMedian string
	Times                    string // "2,400"; "" when there is nothing to compare
	Grid                     []gridLine
}

type gridLine struct {
	Y    float64
	Text string
}

// The chart's box and the answer times at its edges.
const (
	chartLeft, chartRight = 60.0, 596.0
	chartTop, chartBottom = 8.0, 132.0
	chartLow, chartHigh   = 100 * time.Microsecond, 10 * time.Second
	chartPoints           = 60
)

func newChart(ours, theirs []time.Duration) *chart {
	if len(ours) == 0 && len(theirs) == 0 {
		return nil
	}
	c := &chart{Ours: polyline(ours), Theirs: polyline(theirs), OursMedian: medianText(ours), TheirsMedian: medianText(theirs)}
	for _, g := range []struct {
		at   time.Duration
		text string
	}{{time.Millisecond, "1 ms"}, {10 * time.Millisecond, "10 ms"}, {100 * time.Millisecond, "100 ms"}, {time.Second, "1 s"}} {
		c.Grid = append(c.Grid, gridLine{chartY(g.at), g.text})
	}
	if a, b := median(ours), median(theirs); a > 0 && b >= 2*a {
		c.Times = thousands(int64(b / a))
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
		x := chartLeft + (chartRight-chartLeft)*float64(i)/float64(len(times)-1)
		fmt.Fprintf(&b, "%g,%g ", round(x), chartY(d))
	}
	return strings.TrimSuffix(b.String(), " ")
}

func chartY(d time.Duration) float64 {
	low, high := math.Log(float64(chartLow)), math.Log(float64(chartHigh))
	at := math.Log(float64(min(max(d, chartLow), chartHigh)))
	return round(chartBottom - (chartBottom-chartTop)*(at-low)/(high-low))
}

func round(x float64) float64 { return math.Round(x*10) / 10 }

func median(times []time.Duration) time.Duration {
	if len(times) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(times))
	return s[len(s)/2]
}

func medianText(times []time.Duration) string {
	if len(times) == 0 {
		return ""
	}
	return millis(median(times))
}
