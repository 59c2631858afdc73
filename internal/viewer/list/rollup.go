// Rollups: how many records of each level, such as a severity, arrived recently. They are counted from the newest page.

package list

import (
	"slices"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/viewer/page"
)

// rollup is the table of counts above a list.
type rollup struct {
	Title  string // the title of the field whose values are the levels
	Spans  []string
	Levels []rollupLevel
}

// rollupLevel is one value of the field, with the counts of its records. Its cell links to the list filtered by the value.
type rollupLevel struct {
	Cell   page.Cell
	Counts []tally
}

// tally is a number of records in a time span. AtLeast is true if the page does not reach back to the start of the
// time span, so that there may be more.
type tally struct {
	Count   int64
	AtLeast bool
}

// rollupSpans are the recent time spans for which records are counted.
var rollupSpans = [...]struct {
	word   string
	length time.Duration
}{{"5 minutes", 5 * time.Minute}, {"hour", time.Hour}, {"day", 24 * time.Hour}, {"3 days", 72 * time.Hour}}

// rollup counts the rows of the newest page by the field that the spec names for this. It returns nil if the spec
// names none, or if the caller may not see the field or the time of records.
func (lv listing) rollup(s *page.CellContext, rows []access.Row) *rollup {
	k := lv.q.Kind
	by := k.ByField[k.Spec.Rollup]
	if by == nil || k.Spec.Clock == "" {
		return nil
	}
	for _, name := range []string{k.Spec.Rollup, k.Spec.Clock} {
		if lv.q.Rights.Level(k, name) != access.See {
			return nil
		}
	}
	out := &rollup{Title: by.Heading}
	for _, span := range rollupSpans {
		out.Spans = append(out.Spans, span.word)
	}
	values, filter := lv.levels(k.Spec.Rollup)
	counts := map[string][len(rollupSpans)]int64{}
	oldest := lv.q.Clock.Start
	for _, row := range rows {
		t, ok := page.ClockTime(k, row)
		if !ok {
			continue
		}
		value := row.Field(k.Spec.Rollup).Text
		if !slices.Contains(values, value) {
			values = append(values, value)
		}
		oldest = slices.MinFunc([]time.Time{oldest, t}, time.Time.Compare)
		n := counts[value]
		for i, span := range rollupSpans {
			if lv.q.Clock.Start.Sub(t) <= span.length {
				n[i]++
			}
		}
		counts[value] = n
	}
	more := !lv.q.Answer.Page.Next.IsZero()
	for _, value := range values {
		l := rollupLevel{Cell: page.Cell{Text: value, Tone: s.Tone(k.Spec.Rollup, value)}}
		if filter != "" {
			query := lv.ask.query.Remove(func(p understudy.Param) bool { return p.Name == filter })
			l.Cell.Href = lv.ask.address("", append(query, understudy.Param{Name: filter, Value: value}), nil)
		}
		for i, n := range counts[value] {
			l.Counts = append(l.Counts, tally{n, more && lv.q.Clock.Start.Sub(oldest) <= rollupSpans[i].length})
		}
		out.Levels = append(out.Levels, l)
	}
	return out
}

// levels returns the values to count: all values of the filter for the field, or only one if the page is filtered by
// it. filter is the name of the filter if the caller may use it, else "".
func (lv listing) levels(field string) (values []string, filter string) {
	for i, f := range lv.ask.list.Spec.Filters {
		if f.Field != field || !lv.q.Rights.CanFilter(lv.ask.list, i) {
			continue
		}
		if set, ok := lv.ask.query.Get(f.Name); ok {
			return []string{set}, f.Name
		}
		return slices.Clone(f.Values), f.Name
	}
	return nil, ""
}
