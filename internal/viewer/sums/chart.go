// The chart of a sum over time, drawn as bars on the server.

package sums

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy/internal/query"
	"understudy/internal/viewer/page"
	"understudy/spec"
)

// chart is a bar chart over time. A table in it has the same numbers.
type chart struct {
	Says   string // a sentence that describes the chart, for screen readers
	Bars   []bar
	Grid   []page.GridLine
	Marks  []page.Mark // the times written below the bars
	Series []series    // the colors of the stacked parts with their names; empty if the bars are not divided
	Rest   string      // a sentence that says which results the chart does not show
}

// bar is one colored part of a stacked bar. Series is the number of its color.
type bar struct {
	X, Y, Width, Rise float64
	Series            int
	Href, Title       string
}

type series struct {
	Number int
	Text   string
}

// The limits of a chart, which is 100 units wide and 100 units high.
const (
	maxBars          = 120
	maxSeries        = 6
	otherSeries      = maxSeries // the number of the color for all parts that have no color of their own
	gridLines        = 4
	maxMarks         = 6
	maxMarkX         = 94  // the x position from which the label of a bar is right-aligned, so that it stays inside the chart
	minVisibleHeight = 0.4 // the minimum height of the bar of a value that is not 0, so that it can be seen
)

// point has the groups that belong to one time, which are stacked in one bar.
type point struct {
	at    time.Time
	parts map[string]*query.SumRow
}

// chart returns a chart of the groups over time. The time is the key at the index at. If the sums have different
// units, it draws only the unit with the most matches. It returns nil if there is nothing to draw.
func (v *sumBuilder) chart(at int) *chart {
	if v.timed && len(v.out.By) > 1 || len(v.out.Totals) == 0 {
		return nil // medians of several groups cannot be stacked in a bar
	}
	c := &chart{}
	unit := v.out.Totals[0].Unit
	if len(v.out.Totals) > 1 && v.out.Sum != query.SumCount {
		c.Rest = "The chart shows only " + unit + ". The table has the other units too."
	}
	points := v.points(at, unit)
	if len(points) == 0 {
		return nil
	}
	if len(points) > maxBars {
		c.Rest = fmt.Sprintf("The chart shows the newest %d.", maxBars)
		points = points[len(points)-maxBars:]
	}
	names := v.series(points)
	v.draw(c, points, names, v.out.By[at])
	c.Says = fmt.Sprintf("%s, from %s to %s. The table below has the figures.", v.title(), v.keyText(at, layoutOf(v.out.By[at], points[0].at)),
		v.keyText(at, layoutOf(v.out.By[at], points[len(points)-1].at)))
	return c
}

func layoutOf(by string, t time.Time) string { return t.Format(layouts[by]) }

// points returns every time between the first and the last time of the groups. A time without matches has no groups.
func (v *sumBuilder) points(at int, unit string) (all []point) {
	by := v.out.By[at]
	for i := range v.out.Rows {
		r := &v.out.Rows[i]
		t, ok := parseKey(by, r.Key[at], v.q.Clock.Zone)
		if !ok || r.Unit != unit {
			continue
		}
		for len(all) > 0 && all[len(all)-1].at.Before(t) && len(all) < query.MaxSums {
			all = append(all, point{nextTime(by, all[len(all)-1].at), map[string]*query.SumRow{}})
		}
		if len(all) == 0 {
			all = append(all, point{t, map[string]*query.SumRow{}})
		}
		part := ""
		if len(r.Key) > 1 {
			part = r.Key[1-at]
		}
		if last := &all[len(all)-1]; last.at.Equal(t) {
			last.parts[part] = r
		}
	}
	return all
}

// nextTime returns the start of the hour, day, week or month that follows t.
func nextTime(by string, t time.Time) time.Time {
	switch by {
	case "hour":
		return t.Add(time.Hour)
	case "week":
		return t.AddDate(0, 0, 7)
	case "month":
		return t.AddDate(0, 1, 0)
	}
	return t.AddDate(0, 0, 1)
}

// series returns the names of the stacked parts that have a color of their own, the largest first.
func (v *sumBuilder) series(points []point) (names []string) {
	sizes := map[string]float64{}
	for _, p := range points {
		for name, r := range p.parts {
			sizes[name] += math.Abs(v.barValue(r))
		}
	}
	names = slices.SortedFunc(maps.Keys(sizes), func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[b], sizes[a]), strings.Compare(a, b))
	})
	return names[:min(len(names), maxSeries)]
}

// draw adds the bars and the grid to the chart. It draws negative sums, such as costs, upwards like positive ones.
func (v *sumBuilder) draw(c *chart, points []point, names []string, by string) {
	highest, sign := 0.0, 1.0
	for _, p := range points {
		sum := 0.0
		for _, r := range p.parts {
			sum += math.Abs(v.barValue(r))
			if v.barValue(r) < 0 {
				sign = -1
			}
		}
		highest = max(highest, sum)
	}
	step := stepOf(highest)
	scale := 100 / (step * gridLines)
	for i := range gridLines + 1 {
		c.Grid = append(c.Grid, page.GridLine{Y: page.RoundCoordinate(100 - float64(i)*step*scale), Text: v.axisLabel(sign * float64(i) * step)})
	}
	width := 100 / float64(len(points))
	for i, p := range points {
		x := float64(i) * width
		if every := (len(points) + maxMarks - 1) / maxMarks; i%every == 0 {
			m := page.Mark{X: page.RoundCoordinate(x + width/2), Anchor: "middle", Text: p.at.Format(map[string]string{
				"hour": "2 Jan 15:04", "day": "2 Jan", "week": "2 Jan", "month": "Jan 06"}[by])}
			if m.X > maxMarkX {
				m.X, m.Anchor = page.RoundCoordinate(x+width), "end"
			}
			c.Marks = append(c.Marks, m)
		}
		v.drawPoint(c, p, names, x, width, scale)
	}
	if len(v.out.By) < 2 {
		return
	}
	at := findSpan(v.out.By)
	for i, name := range names {
		c.Series = append(c.Series, series{i, v.keyText(1-at, name)})
	}
	if slices.ContainsFunc(c.Bars, func(b bar) bool { return b.Series == otherSeries }) {
		c.Series = append(c.Series, series{otherSeries, "others"})
	}
}

// drawPoint draws the stacked bar for one time.
func (v *sumBuilder) drawPoint(c *chart, p point, names []string, x, width, scale float64) {
	y := 100.0
	put := func(number int, r *query.SumRow) {
		height := math.Abs(v.barValue(r)) * scale
		if height == 0 {
			return
		}
		shown := v.row(r, 0)
		title := strings.Join(shown.Keys, ", ") + ": " + shown.Cells[len(shown.Cells)-1]
		if v.timed {
			title = shown.Keys[0] + ": " + shown.Cells[1]
		} else if v.out.Sum == query.SumCount {
			title += " matches"
		}
		height = max(height, minVisibleHeight)
		y -= height
		gap := min(width*0.15, 0.3)
		c.Bars = append(c.Bars, bar{X: page.RoundCoordinate(x + gap/2), Y: page.RoundCoordinate(y), Width: page.RoundCoordinate(width - gap),
			Rise: page.RoundCoordinate(height), Series: number, Href: shown.Href, Title: title})
	}
	for i, name := range names {
		if r := p.parts[name]; r != nil {
			put(i, r)
		}
	}
	var others []string
	for name := range p.parts {
		if !slices.Contains(names, name) {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	for _, name := range others {
		put(otherSeries, p.parts[name])
	}
}

// axisLabel returns the label of a grid line.
func (v *sumBuilder) axisLabel(value float64) string {
	switch {
	case value == 0:
		return "0" // formatting a negative zero would give "-0"
	case v.timed || v.field.Show == spec.ShowSeconds:
		return durationText(value)
	}
	plain := strconv.FormatFloat(math.Round(value*1e9)/1e9, 'f', -1, 64)
	if v.field.Class == spec.ClassPrice {
		if v.field.Show == spec.ShowCost {
			plain = "-" + plain // costs are negative in the API
		}
		return v.figure(plain, v.out.Totals[0].Unit)
	}
	if math.Abs(value) >= 10_000 {
		return strconv.FormatFloat(value/1000, 'f', -1, 64) + "k"
	}
	return plain
}

// stepOf returns a round distance between grid lines, so that the lines reach the highest value.
func stepOf(highest float64) float64 {
	if highest <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(highest/gridLines)))
	for _, n := range []float64{1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10} {
		if n*power*gridLines >= highest {
			return n * power
		}
	}
	return 10 * power
}
