// Measure: what a sum adds up and puts in groups by, in the kinds that have it.

package search

import (
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

// measure is a sum with its names resolved.
type measure struct {
	request *query.SumRequest
	zone    *time.Location
	views   []*lang.KindView // the kinds that have what is asked for
	in      map[*lang.KindView]*measured
	timed   bool // lengths of time are summed up
}

// measured is what a kind has of a measure.
type measured struct {
	field   string // "": nothing but the matches
	unit    string
	elapsed *spec.Elapsed
	by      [aggregate.MostBy]string // the fields; "" where it is none
}

// measureOf resolves what a request sums up. Errors: ErrInvalid, and ErrForbidden for what
// the caller does not fully see.
func measureOf(q *lang.BoundQuery, r *query.SumRequest) (*measure, error) {
	if r.Limit < 0 || r.Limit > query.MaxSums {
		return nil, invalid("limit=%d: want 1 to %d", r.Limit, query.MaxSums)
	}
	if len(r.By) > query.MaxSumGroupings || len(r.By) == 2 && r.By[0] == r.By[1] {
		return nil, invalid("by: write one or two different things")
	}
	m := &measure{request: r, zone: r.Zone, views: q.Views, in: map[*lang.KindView]*measured{}}
	if m.zone == nil {
		m.zone = time.UTC
	}
	for _, s := range q.Views {
		m.in[s] = &measured{}
	}
	if err := m.what(q); err != nil {
		return nil, err
	}
	for i, by := range r.By {
		if err := m.groupBy(q, i, by); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// what resolves what is summed up.
func (m *measure) what(q *lang.BoundQuery) error {
	name := m.request.Sum
	if name == query.SumCount {
		return nil
	}
	if some := m.having(func(s *lang.KindView) bool { return s.Kind.ElapsedTime(name) != nil }); len(some) > 0 {
		m.timed = true
		return m.elapsed(some, name)
	}
	in, err := m.fields(q, "sum", name, numbered, m.sums)
	if err != nil {
		return err
	}
	for s, field := range in {
		m.in[s].field, m.in[s].unit = field, s.Kind.Field(field).Unit
		if unit := m.in[s].unit; unit != "" && !sees(s, unit) {
			return fmt.Errorf("search: %w: sum=%s: your role does not fully see %s of %s, the unit it is in", understudy.ErrForbidden, name, unit,
				s.Kind.Name)
		}
	}
	return nil
}

// elapsed resolves a time that passes.
func (m *measure) elapsed(some []*lang.KindView, name string) error {
	m.views = some
	for _, s := range some {
		e := s.Kind.ElapsedTime(name)
		fields := []string{e.From, e.To}
		if e.When != nil {
			fields = append(fields, e.When.Field)
		}
		for _, f := range fields {
			if !sees(s, f) {
				return fmt.Errorf("search: %w: sum=%s: your role does not fully see %s of %s, by which it is told", understudy.ErrForbidden,
					understudy.Clip(name), f, s.Kind.Name)
			}
		}
		m.in[s].elapsed = e
	}
	return nil
}

// groupBy resolves one thing that matches are put in groups by.
func (m *measure) groupBy(q *lang.BoundQuery, i int, name string) error {
	switch {
	case name == lang.KindName:
		return nil
	case aggregate.IsSpan(name):
		return m.byTime(name)
	}
	field, isCountry := strings.CutSuffix(name, lang.CountryOf)
	in, err := m.fields(q, "by", field, grouped(isCountry), m.groups)
	for s, field := range in {
		m.in[s].by[i] = field
	}
	return err
}

// numbered says which fields can be summed up.
func numbered(s *lang.KindView, f *spec.Field) bool { return has(s, f, columns.Number) }

// grouped says which fields matches can be put in groups by: as they are, or by country.
func grouped(isCountry bool) func(*lang.KindView, *spec.Field) bool {
	return func(s *lang.KindView, f *spec.Field) bool {
		return has(s, f, columns.Word) && (f.Class == spec.ClassPhone || !isCountry)
	}
}

// byTime sees that the caller sees the times of the kinds; those without one are left out.
func (m *measure) byTime(name string) error {
	some := m.having(func(s *lang.KindView) bool { return len(query.TimeFields(s.Kind)) > 0 })
	if len(some) == 0 && len(m.views) > 0 {
		return invalid("by=%s: what is looked in has no date", name)
	}
	m.views = some
	for _, s := range some {
		for _, f := range query.TimeFields(s.Kind) {
			if !sees(s, f.Name) {
				return fmt.Errorf("search: %w: by=%s: your role does not fully see %s of %s, by which its date is told", understudy.ErrForbidden,
					name, f.Name, s.Kind.Name)
			}
		}
	}
	return nil
}

// fields are the fields a name means, in the kinds where one that fits has it; the others are left out. Fits goes by
// the spec, not by what the caller sees. known are the names that can be written.
func (m *measure) fields(q *lang.BoundQuery, what, name string, fits func(*lang.KindView, *spec.Field) bool,
	known func() []string) (map[*lang.KindView]string, error) {
	there := m.having(func(s *lang.KindView) bool { f, several := s.Field(name); return f != nil || len(several) > 0 })
	if len(there) == 0 {
		if len(m.views) == 0 {
			return nil, nil
		}
		all := known()
		return nil, invalid("%s=%s: what is looked in has nothing of that name%s Write one of %s", what, understudy.Clip(name),
			lang.Stopped(lang.Hint(name, all)), strings.Join(all, ", "))
	}
	there = m.having(func(s *lang.KindView) bool {
		f, several := s.Field(name)
		return len(several) > 0 || f != nil && fits(s, f)
	})
	if len(there) == 0 {
		return nil, invalid("%s=%s cannot be asked; write one of %s", what, understudy.Clip(name), strings.Join(known(), ", "))
	}
	b := &lang.Binder{Text: name, Now: q.Now, Views: there, Every: func(func(*spec.Kind, bool) bool) {}}
	in, _ := b.Fields(name, 0, len(name), there)
	if b.Err != nil {
		return nil, fmt.Errorf("search: %w: %s=%s: %s", b.Err.Kind, what, understudy.Clip(name), b.Err.Why)
	}
	m.views = there
	return in, nil
}

// SumNames are what the matches of a search can be summed up as and put in groups by, for a
// caller: what it does not fully see is not among them. Errors: as Find.
func (s *Searcher) SumNames(c understudy.Caller, a query.SearchRequest) (sums, by []string, err error) {
	q, err := s.read(c, &a, s.o.Now())
	if err != nil {
		return nil, nil, err
	}
	m := &measure{views: q.Views}
	return m.sums(), m.groups(), nil
}

// having are the kinds at hand of which something holds.
func (m *measure) having(holds func(*lang.KindView) bool) []*lang.KindView {
	return slices.DeleteFunc(slices.Clone(m.views), func(s *lang.KindView) bool { return !holds(s) })
}

// has reports whether a field is in a column of a sort.
func has(s *lang.KindView, f *spec.Field, want columns.Sort) bool {
	sort, ok := columns.Has(s.Kind, f.Name)
	return ok && sort == want
}

func sees(s *lang.KindView, field string) bool {
	_, ok := s.Fields[field]
	return ok
}

// works reports whether a name can be asked for in the kinds at hand: each in which it fits must
// show it, and its unit.
func (m *measure) works(name string, fits func(*lang.KindView, *spec.Field) bool) bool {
	return !slices.ContainsFunc(m.views, func(s *lang.KindView) bool {
		f, several := s.Field(name)
		return len(several) > 0 || f != nil && fits(s, f) && !(sees(s, f.Name) && (f.Unit == "" || sees(s, f.Unit)))
	})
}

// sums are the names of what can be summed up in the kinds at hand.
func (m *measure) sums() []string {
	all := []string{query.SumCount}
	for _, s := range m.views {
		all = append(all, sumsOf(s)...)
	}
	all = slices.DeleteFunc(all, func(name string) bool {
		if some := m.having(func(s *lang.KindView) bool { return s.Kind.ElapsedTime(name) != nil }); len(some) > 0 {
			return slices.ContainsFunc(some, func(s *lang.KindView) bool { return !slices.Contains(sumsOf(s), name) })
		}
		return name != query.SumCount && !m.works(name, numbered)
	})
	return slices.Compact(sortedFrom(all, 1))
}

// sumsOf are those of one kind.
func sumsOf(s *lang.KindView) (all []string) {
	for _, f := range s.Kind.Fields {
		if has(s, f, columns.Number) && sees(s, f.Name) && (f.Unit == "" || sees(s, f.Unit)) {
			all = append(all, f.Name)
		}
	}
	for _, e := range s.Kind.Elapsed {
		if sees(s, e.From) && sees(s, e.To) && (e.When == nil || sees(s, e.When.Field)) {
			all = append(all, e.Name)
		}
	}
	return all
}

// groups are the names of what matches can be put in groups by.
func (m *measure) groups() []string {
	var all []string
	if dated := m.having(func(s *lang.KindView) bool { return len(query.TimeFields(s.Kind)) > 0 }); len(dated) == 0 ||
		!slices.ContainsFunc(dated, hidesTimes) {
		all = aggregate.Spans()
	}
	all = append(all, lang.KindName)
	fixed := len(all)
	for _, s := range m.views {
		for _, name := range groupsOf(s) {
			if field, isCountry := strings.CutSuffix(name, lang.CountryOf); m.works(field, grouped(isCountry)) {
				all = append(all, name)
			}
		}
	}
	return slices.Compact(sortedFrom(all, fixed))
}

// groupsOf are those of one kind, but for times and the kind itself.
func groupsOf(s *lang.KindView) (all []string) {
	for _, f := range s.Kind.Fields {
		if !has(s, f, columns.Word) || !sees(s, f.Name) || s.Kind.IsUnit(f.Name) {
			continue
		}
		if all = append(all, f.Name); f.Class == spec.ClassPhone {
			all = append(all, f.Name+lang.CountryOf)
		}
	}
	return all
}

// hidesTimes reports whether the caller does not see a time by which a kind's date is told.
func hidesTimes(s *lang.KindView) bool {
	return slices.ContainsFunc(query.TimeFields(s.Kind), func(f *spec.Field) bool { return !sees(s, f.Name) })
}

func sortedFrom(all []string, from int) []string {
	slices.Sort(all[from:])
	return all
}

// options are what a part of a kind adds up. The table is locked.
func (m *measure) options(s *lang.KindView, t *columns.Table) aggregate.Options {
	in := m.in[s]
	o := aggregate.Options{Timed: in.elapsed != nil}
	for i, name := range m.request.By {
		o.By = append(o.By, m.dimension(s, t, name, in.by[i]))
	}
	switch {
	case in.elapsed != nil:
		o.Value = aggregate.Elapsed(t.Column(in.elapsed.From), t.Column(in.elapsed.To), when(in.elapsed, t))
	case in.field != "":
		o.Value = t.Column(in.field).Millionths
	}
	if in.unit != "" {
		unit := word(t.Column(in.unit))
		o.Unit = &unit
	}
	return o
}

// when is the condition under which a time that passes counts; nil: always.
func when(e *spec.Elapsed, t *columns.Table) func(row int32) bool {
	if e.When == nil {
		return nil
	}
	if test := t.Test(e.When.Field, query.OneOf{Texts: e.When.In}); test != nil {
		return test
	}
	return func(int32) bool { return false }
}

// dimension is one thing that matches are put in groups by.
func (m *measure) dimension(s *lang.KindView, t *columns.Table, name, field string) aggregate.Dimension {
	switch {
	case name == lang.KindName:
		return aggregate.Dimension{Key: func(int32) int64 { return 0 }, Text: func(int64) string { return s.Kind.Name }}
	case aggregate.IsSpan(name):
		return aggregate.Calendar(name, m.zone, lang.Clock(s.Kind, t))
	case strings.HasSuffix(name, lang.CountryOf):
		return country(t.Column(field))
	}
	return word(t.Column(field))
}

// word is the dimension of a column's values.
func word(c *columns.Column) aggregate.Dimension {
	return aggregate.Dimension{
		Key:  func(row int32) int64 { return int64(c.Word(row)) },
		Text: func(code int64) string { return c.Text(uint32(code)) },
	}
}

// country is the dimension of the countries of a column's phone numbers.
func country(c *columns.Column) aggregate.Dimension {
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

// term is the condition that leaves the matches of one group alone; "" when none does.
func (m *measure) term(key []string) string {
	var all []string
	for i, name := range m.request.By {
		one := m.termOf(name, key[i])
		if one == "" {
			return ""
		}
		all = append(all, one)
	}
	return strings.Join(all, " ")
}

func (m *measure) termOf(name, text string) string {
	switch {
	case aggregate.IsSpan(name):
		from, to, ok := aggregate.Range(name, text, m.zone)
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
	return term(name, text)
}
