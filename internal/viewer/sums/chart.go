// Chart: a sum over time as bars, drawn on the server.

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

// chart is bars over time. Its table says the same in words.
type chart struct {
	Says   string // what it shows, in a sentence
	Bars   []bar
	Grid   []page.GridLine
	Marks  []page.Mark // times below the bars
	Series []series    // what the parts of a bar are; none: bars have one part
	Rest   string      // what is not drawn
}

// bar is one part of a bar. Series is its number among the colours.
type bar struct {
	X, Y, Width, Rise float64
	Series            int
	Href, Title       string
}

type series struct {
	Number int
	Text   string
}

// The most bars and the most parts of a bar. The box of the chart is 100 wide and high.
const (
	mostBars     = 120
	mostSeries   = 6
	otherSeries  = mostSeries // the colour of all others
	gridLines    = 4
	mostMarks    = 6
	lastMark     = 94  // a mark beyond ends with its bar
	leastVisible = 0.4 // height of a bar that is not 0
)

// point is the groups of one time.
type point struct {
	at    time.Time
	parts map[string]*query.SumRow
}

// chart draws the rows by the time among their keys. It draws one unit, that with the most
// matches; nil: there is nothing to draw.
func (v *viewing) chart(at int) *chart {
	if v.timed && len(v.out.By) > 1 || len(v.out.Totals) == 0 {
		return nil // quantiles do not add up to a bar
	}
	c := &chart{}
	unit := v.out.Totals[0].Unit
	if len(v.out.Totals) > 1 && v.out.Sum != query.SumCount {
		c.Rest = "Drawn is " + unit + " alone; the table has the other units, too."
	}
	points := v.points(at, unit)
	if len(points) == 0 {
		return nil
	}
	if len(points) > mostBars {
		c.Rest = fmt.Sprintf("Drawn are the newest %d.", mostBars)
		points = points[len(points)-mostBars:]
	}
	names := v.series(points)
	v.draw(c, points, names, v.out.By[at])
	c.Says = fmt.Sprintf("%s, from %s to %s. The table below has the figures.", v.title(), v.key(at, layoutOf(v.out.By[at], points[0].at)),
		v.key(at, layoutOf(v.out.By[at], points[len(points)-1].at)))
	return c
}

func layoutOf(by string, t time.Time) string { return t.Format(layouts[by]) }

// points are the times from the first to the last, those without a match too.
func (v *viewing) points(at int, unit string) (all []point) {
	by := v.out.By[at]
	for i := range v.out.Rows {
		r := &v.out.Rows[i]
		t, ok := when(by, r.Key[at], v.q.Clock.Zone)
		if !ok || r.Unit != unit {
			continue
		}
		for len(all) > 0 && all[len(all)-1].at.Before(t) && len(all) < query.MostSums {
			all = append(all, point{after(by, all[len(all)-1].at), map[string]*query.SumRow{}})
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

// after is the time that follows another one.
func after(by string, t time.Time) time.Time {
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

// series are the parts of the bars by name, the largest first; those that get no colour of
// their own are left out.
func (v *viewing) series(points []point) (names []string) {
	sizes := map[string]float64{}
	for _, p := range points {
		for name, r := range p.parts {
			sizes[name] += math.Abs(v.size(r))
		}
	}
	names = slices.SortedFunc(maps.Keys(sizes), func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[b], sizes[a]), strings.Compare(a, b))
	})
	return names[:min(len(names), mostSeries)]
}

// draw puts the bars in the box. Sums below zero, costs, are drawn upwards.
func (v *viewing) draw(c *chart, points []point, names []string, by string) {
	highest, sign := 0.0, 1.0
	for _, p := range points {
		sum := 0.0
		for _, r := range p.parts {
			sum += math.Abs(v.size(r))
			if v.size(r) < 0 {
				sign = -1
			}
		}
		highest = max(highest, sum)
	}
	step := stepOf(highest)
	scale := 100 / (step * gridLines)
	for i := range gridLines + 1 {
		c.Grid = append(c.Grid, page.GridLine{Y: page.Round(100 - float64(i)*step*scale), Text: v.axis(sign * float64(i) * step)})
	}
	width := 100 / float64(len(points))
	for i, p := range points {
		x := float64(i) * width
		if every := (len(points) + mostMarks - 1) / mostMarks; i%every == 0 {
			m := page.Mark{X: page.Round(x + width/2), Anchor: "middle", Text: p.at.Format(map[string]string{
				"hour": "2 Jan 15:04", "day": "2 Jan", "week": "2 Jan", "month": "Jan 06"}[by])}
			if m.X > lastMark {
				m.X, m.Anchor = page.Round(x+width), "end"
			}
			c.Marks = append(c.Marks, m)
		}
		v.drawPoint(c, p, names, x, width, scale)
	}
	if len(v.out.By) < 2 {
		return
	}
	_, at := spanOf(v.out.By)
	for i, name := range names {
		c.Series = append(c.Series, series{i, v.key(1-at, name)})
	}
	if slices.ContainsFunc(c.Bars, func(b bar) bool { return b.Series == otherSeries }) {
		c.Series = append(c.Series, series{otherSeries, "others"})
	}
}

// drawPoint draws the bar of one time, part on part.
func (v *viewing) drawPoint(c *chart, p point, names []string, x, width, scale float64) {
	y := 100.0
	put := func(number int, r *query.SumRow) {
		height := math.Abs(v.size(r)) * scale
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
		height = max(height, leastVisible)
		y -= height
		gap := min(width*0.15, 0.3)
		c.Bars = append(c.Bars, bar{X: page.Round(x + gap/2), Y: page.Round(y), Width: page.Round(width - gap), Rise: page.Round(height),
			Series: number, Href: shown.Href, Title: title})
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

// axis is a value at the side of the grid.
func (v *viewing) axis(value float64) string {
	switch {
	case value == 0:
		return "0" // never less than nothing
	case v.timed || v.field.Show == spec.ShowSeconds:
		return passed(value)
	}
	plain := strconv.FormatFloat(math.Round(value*1e9)/1e9, 'f', -1, 64)
	if v.field.Class == spec.ClassPrice {
		return v.figure(v.written(plain), v.out.Totals[0].Unit)
	}
	if math.Abs(value) >= 10_000 {
		return strconv.FormatFloat(value/1000, 'f', -1, 64) + "k"
	}
	return plain
}

// written is a drawn value as the API writes it.
func (v *viewing) written(value string) string {
	if v.field.Show == spec.ShowCost {
		return "-" + value
	}
	return value
}

// stepOf is a plain step between the lines of a grid that reaches a value: few digits of a
// power of ten.
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
