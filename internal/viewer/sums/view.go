// A sum as the page shows it: the totals, the table, and links to the records of each group.

package sums

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// sumView is a sum as the page shows it.
type sumView struct {
	Title  string
	Notes  []string
	More   bool // whether the search did not have enough time to add up all records
	Totals []total
	Chart  *chart // the chart over time; nil if there is nothing to draw
	Heads  []head
	Rows   []row
	JSON   string
	CSV    string
}

// total is the sum of all groups that have the same unit.
type total struct{ Figure, Says string }

// head is the heading of a column in the table.
type head struct {
	Text   string
	Number bool
}

// row is a row of the table. It shows one group, or the last row all groups that have no row of their own.
type row struct {
	Keys  []string
	Href  string // the address of a search for the records of the group; empty if no search finds exactly these
	Cells []string
	Width float64 // the width of the bar in the row; the largest is 100
}

// findSpan returns the index of a time span in the names of the keys by which a sum is grouped, or -1 if there is none.
func findSpan(by []string) int {
	return slices.IndexFunc(by, func(name string) bool { return slices.Contains([]string{"hour", "day", "week", "month"}, name) })
}

// newSumView returns a sum as the page shows it.
func newSumView(q *page.Exchange, r *request, out *query.SumResult) *sumView {
	v := sumBuilder{q: q, r: r, out: out, field: summedField(q, r)}
	for _, t := range out.Totals {
		v.timed = v.timed || t.Seconds != nil
	}
	at := findSpan(out.By)
	notes := out.Notes
	if out.Incomplete != "" {
		notes = append(slices.Clone(notes), plan.UpperFirst(out.Incomplete)+".")
	}
	view := &sumView{Title: v.title(), Notes: notes, More: !out.Complete, Totals: v.totals(), Heads: v.heads()}
	largest := 0.0
	for i := range out.Rows {
		largest = max(largest, math.Abs(v.barValue(&out.Rows[i])))
	}
	for i := range out.Rows {
		view.Rows = append(view.Rows, v.row(&out.Rows[i], largest))
	}
	if at >= 0 { // the chart begins with the oldest time, but the table with the newest
		slices.Reverse(view.Rows)
		view.Chart = v.chart(at)
	}
	for i := range out.Others {
		others := v.row(&out.Others[i], 0)
		others.Keys = make([]string, len(out.By))
		if others.Keys[0] = "others"; len(others.Keys) > 1 {
			others.Keys[1] = "—"
		}
		view.Rows = append(view.Rows, others)
	}
	more := append(r.params(r.by...), understudy.Param{Name: "zone", Value: out.Zone})
	view.JSON = page.SearchAddress("/-/search", r.search(), more...)
	view.CSV = page.SearchAddress("/-/search", r.search(), append(more, understudy.Param{Name: "format", Value: "csv"})...)
	return view
}

// sumBuilder builds the view of a sum.
type sumBuilder struct {
	q     *page.Exchange
	r     *request
	out   *query.SumResult
	timed bool
	field *spec.Field // the field whose values are added up
}

// summedField returns the field whose values are added up. It returns an empty field if the kinds define the field differently.
func summedField(q *page.Exchange, r *request) (f *spec.Field) {
	for _, s := range q.V.Planned {
		for _, k := range s.Kinds {
			if r.source != "" && s.Name != r.source || len(r.kinds) > 0 && !slices.Contains(r.kinds, k.Spec.Name) || !k.HasRecords() ||
				!q.Rights.CanSeeKind(k) {
				continue
			}
			one := k.Spec.Field(r.sum)
			switch {
			case one == nil:
			case f == nil:
				f = one
			case one.Show != f.Show || one.Class != f.Class || one.Type != f.Type:
				return &spec.Field{}
			}
		}
	}
	if f == nil {
		return &spec.Field{}
	}
	return f
}

// figure returns a sum formatted for people.
func (v *sumBuilder) figure(sum, unit string) string {
	if text, _, ok := plan.Figure(v.field, sum, unit); ok {
		return text
	}
	return strings.TrimSpace(sum + " " + unit)
}

// barValue returns the value of a group for the height of its bar.
func (v *sumBuilder) barValue(r *query.SumRow) float64 {
	switch {
	case v.out.Sum == query.SumCount:
		return float64(r.Count)
	case v.timed && r.Seconds != nil:
		return r.Seconds.P50
	case v.timed:
		return 0
	}
	f, err := strconv.ParseFloat(r.Sum, 64)
	switch {
	case err != nil: // no record of the group has a value
		return 0
	case v.field.Show == spec.ShowCost:
		return -f
	}
	return f
}

func (v *sumBuilder) title() string {
	title := plan.UpperFirst(words(v.q, v.out.Sum))
	for i, by := range v.out.By {
		title += []string{" by ", " and "}[i] + words(v.q, by)
	}
	return title
}

// totals returns the sum of all groups. If groups have different units, it returns one sum for each unit.
func (v *sumBuilder) totals() (all []total) {
	for _, t := range v.out.Totals {
		one := total{page.Thousands(t.Count), "matches"}
		switch {
		case v.out.Sum == query.SumCount:
		case v.timed && t.Seconds != nil:
			says := fmt.Sprintf("at the median of %s; 95 of 100 within %s", page.Thousands(t.Values), durationText(t.Seconds.P95))
			one = total{durationText(t.Seconds.P50), says}
		case t.Sum != "":
			one = total{v.figure(t.Sum, t.Unit), "of " + page.Thousands(t.Values)}
			if t.Values < t.Count {
				one.Says += fmt.Sprintf(", %s without a value", page.Thousands(t.Count-t.Values))
			}
		default:
			one.Says += " without a value"
		}
		all = append(all, one)
	}
	return all
}

func (v *sumBuilder) heads() (all []head) {
	for _, by := range v.out.By {
		all = append(all, head{Text: plan.UpperFirst(words(v.q, by))})
	}
	all = append(all, head{"Matches", true})
	switch {
	case v.out.Sum == query.SumCount:
	case v.timed:
		all = append(all, head{"Median", true}, head{"95 of 100", true}, head{"Mean", true})
	default:
		all = append(all, head{"With a value", true}, head{plan.UpperFirst(words(v.q, v.out.Sum)), true})
	}
	return all
}

// row returns the table's row for a group. The bar in the row is relative to the largest group.
func (v *sumBuilder) row(r *query.SumRow, largest float64) row {
	out := row{Cells: []string{page.Thousands(r.Count)}}
	for i, key := range r.Key {
		out.Keys = append(out.Keys, v.keyText(i, key))
	}
	if len(v.out.By) == 0 {
		out.Keys = nil
	}
	if r.Term != "" {
		out.Href = page.SearchAddress("/search", v.r.search(), understudy.Param{Name: "narrow", Value: r.Term})
	}
	switch {
	case v.out.Sum == query.SumCount:
	case v.timed && r.Seconds != nil:
		out.Cells = append(out.Cells, durationText(r.Seconds.P50), durationText(r.Seconds.P95), durationText(r.Seconds.Mean))
	case v.timed:
		out.Cells = append(out.Cells, "", "", "")
	default:
		out.Cells = append(out.Cells, page.Thousands(r.Values), v.figure(r.Sum, r.Unit))
	}
	if largest > 0 {
		out.Width = page.RoundCoordinate(100 * math.Abs(v.barValue(r)) / largest)
	}
	return out
}

// keyText returns the name of a group in words. i is the index of the key, and text its value.
func (v *sumBuilder) keyText(i int, text string) string {
	by := v.out.By[i]
	if t, ok := parseKey(by, text, v.q.Clock.Zone); ok {
		return t.Format(map[string]string{"hour": "2 Jan 2006 15:04", "day": "2 Jan 2006", "week": "week of 2 Jan 2006",
			"month": "Jan 2006"}[by])
	}
	return v.q.V.FormatValue(by, text, nil)
}

// layouts are the layouts of keys that are times, by the time span.
var layouts = map[string]string{"hour": "2006-01-02T15:04Z07:00", "day": time.DateOnly, "week": time.DateOnly, "month": "2006-01"}

// parseKey returns the time at which the time span of a key begins. by is the name of the time span. ok is false if
// it is no time span.
func parseKey(by, text string, zone *time.Location) (time.Time, bool) {
	layout, ok := layouts[by]
	if !ok {
		return time.Time{}, false
	}
	t, err := understudy.ParseTime(text, zone, layout)
	return t.In(zone), err == nil
}

func durationText(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return strconv.FormatFloat(math.Round(seconds*10)/10, 'f', -1, 64) + " s"
	case d < 2*time.Minute:
		return strconv.Itoa(int(math.Round(seconds))) + " s"
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}
