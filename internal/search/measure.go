// This file resolves the names in a sum request: what is summed up, and the fields by which matches are grouped.

package search

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/search/aggregate"
	"understudy/internal/search/columns"
	"understudy/internal/search/lang"
	"understudy/spec"
)

// measure is a sum request with its names resolved.
type measure struct {
	request *query.SumRequest
	zone    *time.Location
	views   []*lang.KindView // the kinds that have the requested value and groupings
	byView  map[*lang.KindView]*kindMeasure
	timed   bool // whether the summed values are lengths of time
}

// kindMeasure says how the records of one kind are summed and grouped.
type kindMeasure struct {
	field   string // the summed field, or "" if only matches are counted
	unit    string
	elapsed *spec.Elapsed
	by      [aggregate.MaxDimensions]string // the grouping fields; "" if the matches are grouped by kind or by time
}

// measureOf resolves the names of a sum request. It returns ErrInvalid, or ErrForbidden for a field that the caller
// does not fully see.
func measureOf(q *lang.BoundQuery, r *query.SumRequest) (*measure, error) {
	if r.Limit < 0 || r.Limit > query.MaxSums {
		return nil, newInvalid("limit=%d is not allowed; write a number from 1 to %d", r.Limit, query.MaxSums)
	}
	if len(r.By) > query.MaxSumGroupings || len(r.By) == 2 && r.By[0] == r.By[1] {
		return nil, newInvalid("by: write one or two different fields")
	}
	m := &measure{request: r, zone: cmp.Or(r.Zone, time.UTC), views: q.Views, byView: map[*lang.KindView]*kindMeasure{}}
	for _, s := range q.Views {
		m.byView[s] = &kindMeasure{}
	}
	if err := m.resolveSum(q); err != nil {
		return nil, err
	}
	for i, by := range r.By {
		if err := m.groupBy(q, i, by); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// resolveSum resolves the value that is summed.
func (m *measure) resolveSum(q *lang.BoundQuery) error {
	name := m.request.Sum
	if name == query.SumCount {
		return nil
	}
	if some := m.viewsWith(func(s *lang.KindView) bool { return s.Kind.ElapsedTime(name) != nil }); len(some) > 0 {
		m.timed = true
		return m.resolveElapsed(some, name)
	}
	in, err := m.resolveField(q, "sum", name, canSum, m.sumNames)
	if err != nil {
		return err
	}
	for s, field := range in {
		m.byView[s].field, m.byView[s].unit = field, s.Kind.Field(field).Unit
		if unit := m.byView[s].unit; unit != "" && !s.CanSee(unit) {
			return fmt.Errorf("search: %w: sum=%s: your role can't see %s of %s in full, which is its unit", understudy.ErrForbidden, name, unit,
				s.Kind.Name)
		}
	}
	return nil
}

// resolveElapsed resolves a sum of elapsed times.
func (m *measure) resolveElapsed(some []*lang.KindView, name string) error {
	m.views = some
	for _, s := range some {
		e := s.Kind.ElapsedTime(name)
		fields := []string{e.From, e.To}
		if e.When != nil {
			fields = append(fields, e.When.Field)
		}
		for _, f := range fields {
			if !s.CanSee(f) {
				return fmt.Errorf("search: %w: sum=%s: your role can't see %s of %s in full, which it depends on", understudy.ErrForbidden,
					understudy.Clip(name), f, s.Kind.Name)
			}
		}
		m.byView[s].elapsed = e
	}
	return nil
}

// groupBy resolves the i-th grouping of the request, which has the given name.
func (m *measure) groupBy(q *lang.BoundQuery, i int, name string) error {
	switch {
	case name == lang.KindName:
		return nil
	case aggregate.IsSpan(name):
		return m.groupByTime(name)
	}
	field, isCountry := strings.CutSuffix(name, lang.CountryOf)
	in, err := m.resolveField(q, "by", field, groupFilter(isCountry), m.groupNames)
	for s, field := range in {
		m.byView[s].by[i] = field
	}
	return err
}

func canSum(s *lang.KindView, f *spec.Field) bool { return hasColumn(s, f, columns.Number) }

// groupFilter returns a test of fields by which matches can be grouped: by value, or by country of a phone number.
func groupFilter(isCountry bool) func(*lang.KindView, *spec.Field) bool {
	return func(s *lang.KindView, f *spec.Field) bool {
		return hasColumn(s, f, columns.Word) && (f.Class == spec.ClassPhone || !isCountry)
	}
}

// groupByTime leaves out kinds without a date and checks that the caller sees the date fields of the other kinds.
func (m *measure) groupByTime(name string) error {
	some := m.viewsWith(func(s *lang.KindView) bool { return len(query.TimeFields(s.Kind)) > 0 })
	if len(some) == 0 && len(m.views) > 0 {
		return newInvalid("by=%s: these records have no date", name)
	}
	m.views = some
	for _, s := range some {
		for _, f := range query.TimeFields(s.Kind) {
			if !s.CanSee(f.Name) {
				return fmt.Errorf("search: %w: by=%s: your role can't see %s of %s in full, which its date comes from", understudy.ErrForbidden,
					name, f.Name, s.Kind.Name)
			}
		}
	}
	return nil
}

// resolveField returns the field that a name means in each kind where fits accepts the field. It leaves the other kinds
// out. fits decides by the spec, not by what the caller sees. known lists the names that the error message suggests.
func (m *measure) resolveField(q *lang.BoundQuery, what, name string, fits func(*lang.KindView, *spec.Field) bool,
	known func() []string) (map[*lang.KindView]string, error) {
	there := m.viewsWith(func(s *lang.KindView) bool { f, several := s.Field(name); return f != nil || len(several) > 0 })
	if len(there) == 0 {
		if len(m.views) == 0 {
			return nil, nil
		}
		all := known()
		return nil, newInvalid("%s=%s: these records have no field with this name%s Write one of %s", what, understudy.Clip(name),
			lang.EndSentence(lang.Hint(name, all)), strings.Join(all, ", "))
	}
	there = m.viewsWith(func(s *lang.KindView) bool {
		f, several := s.Field(name)
		return len(several) > 0 || f != nil && fits(s, f)
	})
	if len(there) == 0 {
		return nil, newInvalid("%s=%s is not possible; write one of %s", what, understudy.Clip(name), strings.Join(known(), ", "))
	}
	b := &lang.Binder{Text: name, Now: q.Now, Views: there, AllKinds: func(func(*spec.Kind, bool) bool) {}}
	in, _ := b.Fields(name, 0, len(name), there)
	if b.Err != nil {
		return nil, fmt.Errorf("search: %w: %s=%s: %s", b.Err.Kind, what, understudy.Clip(name), b.Err.Why)
	}
	m.views = there
	return in, nil
}

// SumNames returns the names by which the matches of a search can be summed and grouped. Fields that the caller does
// not fully see are left out. It returns the errors of Find.
func (s *Searcher) SumNames(c understudy.Caller, a query.SearchRequest) (sums, by []string, err error) {
	q, err := s.read(c, &a, s.o.Now())
	if err != nil {
		return nil, nil, err
	}
	m := &measure{views: q.Views}
	return m.sumNames(), m.groupNames(), nil
}

// viewsWith returns the views for which the function holds returns true.
func (m *measure) viewsWith(holds func(*lang.KindView) bool) []*lang.KindView {
	return slices.DeleteFunc(slices.Clone(m.views), func(s *lang.KindView) bool { return !holds(s) })
}

// hasColumn reports whether a field has a column of the given sort.
func hasColumn(s *lang.KindView, f *spec.Field, want columns.Sort) bool {
	sort, ok := columns.SortOfField(s.Kind, f.Name)
	return ok && sort == want
}

// canAskFor reports whether the caller can use a name. Every kind in which fits accepts the field must show the
// field and its unit.
func (m *measure) canAskFor(name string, fits func(*lang.KindView, *spec.Field) bool) bool {
	return !slices.ContainsFunc(m.views, func(s *lang.KindView) bool {
		f, several := s.Field(name)
		return len(several) > 0 || f != nil && fits(s, f) && !(s.CanSee(f.Name) && (f.Unit == "" || s.CanSee(f.Unit)))
	})
}

// sumNames returns the names of what can be summed in the kinds of the measure.
func (m *measure) sumNames() []string {
	all := []string{query.SumCount}
	for _, s := range m.views {
		all = append(all, kindSumNames(s)...)
	}
	all = slices.DeleteFunc(all, func(name string) bool {
		if some := m.viewsWith(func(s *lang.KindView) bool { return s.Kind.ElapsedTime(name) != nil }); len(some) > 0 {
			return slices.ContainsFunc(some, func(s *lang.KindView) bool { return !slices.Contains(kindSumNames(s), name) })
		}
		return name != query.SumCount && !m.canAskFor(name, canSum)
	})
	return slices.Compact(sortFrom(all, 1))
}

func kindSumNames(s *lang.KindView) (all []string) {
	for _, f := range s.Kind.Fields {
		if hasColumn(s, f, columns.Number) && s.CanSee(f.Name) && (f.Unit == "" || s.CanSee(f.Unit)) {
			all = append(all, f.Name)
		}
	}
	for _, e := range s.Kind.Elapsed {
		if s.CanSee(e.From) && s.CanSee(e.To) && (e.When == nil || s.CanSee(e.When.Field)) {
			all = append(all, e.Name)
		}
	}
	return all
}

// groupNames returns the names by which matches of the kinds can be grouped.
func (m *measure) groupNames() []string {
	var all []string
	if dated := m.viewsWith(func(s *lang.KindView) bool { return len(query.TimeFields(s.Kind)) > 0 }); len(dated) == 0 ||
		!slices.ContainsFunc(dated, (*lang.KindView).HasHiddenTime) {
		all = aggregate.Spans()
	}
	all = append(all, lang.KindName)
	fixed := len(all)
	for _, s := range m.views {
		for _, name := range kindGroupNames(s) {
			if field, isCountry := strings.CutSuffix(name, lang.CountryOf); m.canAskFor(field, groupFilter(isCountry)) {
				all = append(all, name)
			}
		}
	}
	return slices.Compact(sortFrom(all, fixed))
}

// kindGroupNames returns the fields by which matches of one kind can be grouped, without times and the kind itself.
func kindGroupNames(s *lang.KindView) (all []string) {
	for _, f := range s.Kind.Fields {
		if !hasColumn(s, f, columns.Word) || !s.CanSee(f.Name) || s.Kind.IsUnit(f.Name) {
			continue
		}
		if all = append(all, f.Name); f.Class == spec.ClassPhone {
			all = append(all, f.Name+lang.CountryOf)
		}
	}
	return all
}

func sortFrom(all []string, from int) []string {
	slices.Sort(all[from:])
	return all
}

// aggregateOptions returns the options for aggregating one kind. The caller must hold the table's lock.
func (m *measure) aggregateOptions(s *lang.KindView, t *columns.Table) aggregate.Options {
	in := m.byView[s]
	o := aggregate.Options{Timed: in.elapsed != nil}
	for i, name := range m.request.By {
		o.By = append(o.By, m.dimension(s, t, name, in.by[i]))
	}
	switch {
	case in.elapsed != nil:
		o.Value = aggregate.ElapsedSeconds(t.Column(in.elapsed.From), t.Column(in.elapsed.To), elapsedCondition(in.elapsed, t))
	case in.field != "":
		o.Value = t.Column(in.field).Millionths
	}
	if in.unit != "" {
		unit := wordDimension(t.Column(in.unit))
		o.Unit = &unit
	}
	return o
}

// elapsedCondition returns the condition under which an elapsed time counts, or nil if it always counts.
func elapsedCondition(e *spec.Elapsed, t *columns.Table) func(row int32) bool {
	if e.When == nil {
		return nil
	}
	if test := t.Test(e.When.Field, query.OneOf{Texts: e.When.In}); test != nil {
		return test
	}
	return func(int32) bool { return false }
}

// dimension returns the grouping of the given name for one kind.
func (m *measure) dimension(s *lang.KindView, t *columns.Table, name, field string) aggregate.Dimension {
	switch {
	case name == lang.KindName:
		return aggregate.Dimension{Key: func(int32) int64 { return 0 }, Text: func(int64) string { return s.Kind.Name }}
	case aggregate.IsSpan(name):
		return aggregate.Calendar(name, m.zone, lang.RowClock(s.Kind, t))
	case strings.HasSuffix(name, lang.CountryOf):
		return countryDimension(t.Column(field))
	}
	return wordDimension(t.Column(field))
}

func wordDimension(c *columns.Column) aggregate.Dimension {
	return aggregate.Dimension{
		Key:  func(row int32) int64 { return int64(c.Word(row)) },
		Text: func(code int64) string { return c.Text(uint32(code)) },
	}
}

// countryDimension groups rows by the countries of a column's phone numbers.
func countryDimension(c *columns.Column) aggregate.Dimension {
	return aggregate.Dimension{
		Key: func(row int32) int64 {
			if name := c.Country(c.Word(row)); name != "" {
				return int64(name[0])<<8 | int64(name[1])
			}
			return 0
		},
		Text: func(key int64) string {
			if key == 0 {
				return ""
			}
			return string([]byte{byte(key >> 8), byte(key)})
		},
	}
}

// groupTerm returns the search condition that selects the matches of one group, or "" if no condition can.
func (m *measure) groupTerm(key []string) string {
	var all []string
	for i, name := range m.request.By {
		one := m.dimensionTerm(name, key[i])
		if one == "" {
			return ""
		}
		all = append(all, one)
	}
	return strings.Join(all, " ")
}

// dimensionTerm returns the condition for one key of a group, or "" if no condition selects it.
func (m *measure) dimensionTerm(name, text string) string {
	switch {
	case aggregate.IsSpan(name):
		from, to, ok := aggregate.ParseSpan(name, text, m.zone)
		if !ok {
			return ""
		}
		if m.zone == time.UTC && (name == "day" || name == "month") {
			return lang.DateName + ":" + text
		}
		const minute = "2006-01-02T15:04Z07:00"
		return lang.DateName + ":" + from.Format(minute) + ".." + to.Format(minute)
	case text == "" && strings.HasSuffix(name, lang.CountryOf):
		return ""
	case text == "":
		return "no:" + name
	}
	return facetTerm(name, text)
}
