// This file counts records by the values of several fields. Records with the same values in every counted field
// form one group.

package search

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/search/aggregate"
	"understudy/internal/search/columns"
	"understudy/internal/search/lang"
)

// Limits of a tally and of its listed values.
const (
	maxGroups        = 1 << 16 // the maximum number of groups of a tally
	recordsPerPage   = 256     // the number of records in one page of a tally
	maxUnreadChanges = 1000    // the number of changes without a request after which a tally is emptied
	maxFacets        = 12
	maxListedValues  = 20   // the maximum number of listed values of a facet
	maxCountedValues = 1000 // the maximum number of counted values of a facet
	maxValueBytes    = 100  // the maximum length of a value that is counted separately, in bytes
)

// tally counts records by the values of several fields at once. The zero value is empty and counts records of all
// kinds. A tally of one kind follows the changes of its table. The table's lock guards it.
type tally struct {
	view          *lang.KindView
	cond          *lang.Cond
	candidate     lang.Candidate
	unreadChanges int  // the number of changes since a caller last asked for this tally
	abandoned     bool // whether the tally was emptied because of too many changes without a request

	groups []group
	byKey  map[string]uint32 // the index of a group in groups, plus 1, by the group's encoded values
	total  int64
	full   bool         // whether maxGroups was reached, so that some records are not counted
	key    []byte       // a reused buffer for the encoded values of one record
	values []facetValue // a reused buffer for the values of one record

	// pages hold the number of the group of each counted record, by the store's number of the record. 0 means no
	// group. A tally that receives no changes has no pages.
	pages  map[int64]*[recordsPerPage]uint32
	page   *[recordsPerPage]uint32 // the page of records that was used last; its number is pageAt
	pageAt int64
}

// group counts the records that have the same values in every counted field.
type group struct {
	n      int64
	values []facetValue
}

// facetValue is a value of one facet. If long is true, the value is too long to be shown.
type facetValue struct {
	facet, value string
	long         bool
}

// UpdateRecord moves a record from its former group to the group of its current values. r is nil after the record
// was deleted. The tally is emptied if it has received maxUnreadChanges changes without a request.
func (t *tally) UpdateRecord(record int64, r *understudy.Record) {
	switch t.unreadChanges++; {
	case t.abandoned || t.full:
		return
	case t.unreadChanges > maxUnreadChanges:
		*t = tally{abandoned: true}
		return
	}
	to := uint32(0)
	if r != nil && t.view.Read(&t.candidate, r) && t.cond.Match(&t.candidate) {
		to = t.group(&t.candidate)
	}
	t.assign(record, to)
}

// assign moves a record into the group to; 0 means no group.
func (t *tally) assign(record int64, to uint32) {
	if at := record / recordsPerPage; t.page == nil || t.pageAt != at {
		page := t.pages[at]
		if page == nil {
			if to == 0 {
				return
			}
			if t.pages == nil {
				t.pages = map[int64]*[recordsPerPage]uint32{}
			}
			page = new([recordsPerPage]uint32)
			t.pages[at] = page
		}
		t.page, t.pageAt = page, at
	}
	if at := &t.page[record%recordsPerPage]; *at != to {
		t.move(*at, -1)
		t.move(to, +1)
		*at = to
	}
}

// move adds by to the size of a group. It ignores group 0.
func (t *tally) move(group uint32, by int64) {
	if group != 0 {
		t.groups[group-1].n += by
		t.total += by
	}
}

// size returns an estimate of the tally's memory in bytes.
func (t *tally) size() int64 {
	return int64(len(t.pages))*(recordsPerPage*4+64) + int64(len(t.groups))*512
}

// group returns the number of a record's group and creates the group if needed. It returns 0 if there are already
// maxGroups groups.
func (t *tally) group(c *lang.Candidate) uint32 {
	day := ""
	if at := c.Clock(); at != 0 && c.View.CanSeeTime() {
		day = time.Unix(at, 0).UTC().Format(time.DateOnly)
	}
	return t.findGroup(c.View, day, c.TextOf)
}

// findGroup does what group does. The record is given by its kind, its day and the texts of its counted fields.
func (t *tally) findGroup(in *lang.KindView, day string, textOf func(field string) (string, bool)) uint32 {
	t.key, t.values = t.key[:0], append(t.values[:0], facetValue{facet: lang.KindName, value: in.Kind.Name})
	if day != "" {
		t.values = append(t.values, facetValue{facet: "day", value: day}, facetValue{facet: "month", value: day[:len("2006-01")]})
	}
	for _, f := range in.Counted {
		if text, ok := textOf(f); ok && len(text) > maxValueBytes {
			t.values = append(t.values, facetValue{facet: f, long: true})
		} else if ok {
			t.values = append(t.values, facetValue{facet: f, value: text})
		}
	}
	for _, v := range t.values {
		length := byte(len(v.value))
		if v.long {
			length = 255
		}
		t.key = append(append(append(append(t.key, v.facet...), 0), length), v.value...)
	}
	if at, ok := t.byKey[string(t.key)]; ok {
		return at
	}
	if len(t.groups) == maxGroups {
		t.full = true
		return 0
	}
	if t.byKey == nil {
		t.byKey = map[string]uint32{}
	}
	values := slices.Clone(t.values)
	for i := range values {
		values[i].value = strings.Clone(values[i].value)
	}
	t.groups = append(t.groups, group{values: values})
	t.byKey[string(t.key)] = uint32(len(t.groups))
	return uint32(len(t.groups))
}

// canCountRows reports whether the columns of a kind suffice to decide what matches and to read every counted
// value. The caller must hold the table's lock.
func canCountRows(cond *lang.Cond, s *lang.KindView, t *columns.Table) bool {
	if s.Rule != nil || cond.CompileRows(s, t) == nil || s.CanSeeTime() && lang.RowClock(s.Kind, t) == nil {
		return false
	}
	return !slices.ContainsFunc(s.Counted, func(field string) bool {
		c := t.Column(field)
		return c == nil || c.Sort != columns.Word || !c.IsReadable()
	})
}

// fill counts the rows of a table that has a row for every record. The caller must hold the table's lock. fill
// returns false if the tally has too many groups, or if goOn returns false.
func (t *tally) fill(table *columns.Table, goOn func() bool) bool {
	s, test := t.view, t.cond.CompileRows(t.view, table)
	clock := func(int32) int64 { return 0 }
	if s.CanSeeTime() {
		clock = lang.RowClock(s.Kind, table)
	}
	day := aggregate.Calendar("day", time.UTC, clock)
	counted := make([]*columns.Column, len(s.Counted))
	for i, field := range s.Counted {
		counted[i] = table.Column(field)
	}
	groups := map[string]uint32{} // the group of a row, by its day and the codes of its values in the counted columns
	var key []byte
	looked := 0
	table.VisitRecords(func(record int64, row int32) bool {
		if looked++; looked%rowsPerCheck == 0 && !goOn() {
			return false
		}
		if !test(row) {
			return true
		}
		at := day.Key(row)
		key = binary.AppendVarint(key[:0], at)
		for _, c := range counted {
			key = binary.LittleEndian.AppendUint32(key, c.Word(row))
		}
		to, known := groups[string(key)]
		if !known {
			to = t.findGroup(s, day.Text(at), func(field string) (string, bool) {
				c := counted[slices.Index(s.Counted, field)]
				if c.Word(row) == 0 {
					return "", false
				}
				return c.Text(c.Word(row)), true
			})
			groups[string(key)] = to
		}
		t.assign(record, to)
		return !t.full
	})
	return !t.full && goOn()
}

// rowsPerCheck is how many rows fill reads between two calls of goOn.
const rowsPerCheck = 1 << 14

// facets are the counted values of several tallies.
type facets struct {
	total  int64
	by     map[string]*query.SearchFacet
	places map[facetValue]int // the index of each value in its facet's Values
}

func newFacets() *facets {
	return &facets{by: map[string]*query.SearchFacet{}, places: map[facetValue]int{}}
}

func (a *facets) add(t *tally) {
	a.total += t.total
	for _, g := range t.groups {
		for _, v := range g.values {
			if g.n != 0 {
				a.count(v, g.n)
			}
		}
	}
}

func (a *facets) count(v facetValue, n int64) {
	f := a.facet(v.facet)
	i, known := a.places[v]
	switch {
	case v.long, !known && len(f.Values) == maxCountedValues:
		f.More = true
		return
	case !known:
		i = len(f.Values)
		a.places[v] = i
		f.Values = append(f.Values, query.SearchValue{Value: v.value})
	}
	f.Values[i].N += n
}

func (a *facets) facet(name string) *query.SearchFacet {
	if a.by[name] == nil {
		a.by[name] = &query.SearchFacet{Name: name, Values: []query.SearchValue{}}
	}
	return a.by[name]
}

// answer returns the facets: first kinds, then fields by name, then times. If broken is true, the counts are incomplete.
func (a *facets) answer(broken bool) *answer {
	names, last := []string{lang.KindName}, []string{"month", "day"}
	for _, name := range slices.Sorted(maps.Keys(a.by)) {
		if name != lang.KindName && !slices.Contains(last, name) && len(names) < maxFacets {
			names = append(names, name)
		}
	}
	out := &answer{total: query.Count{N: a.total, AtLeast: broken}, partial: broken}
	for _, name := range append(names, last...) {
		f := a.facet(name)
		sortValues(f)
		if len(f.Values) > maxListedValues {
			f.Values, f.More = f.Values[:maxListedValues], true
		}
		for i := range f.Values {
			f.Values[i].AtLeast = broken
			f.Values[i].Term = facetTerm(name, f.Values[i].Value)
		}
		out.facets = append(out.facets, *f)
	}
	return out
}

// sortValues sorts the values of a time facet with the newest first, and other values by count.
func sortValues(f *query.SearchFacet) {
	times := f.Name == "day" || f.Name == "month"
	slices.SortFunc(f.Values, func(a, b query.SearchValue) int {
		if times {
			return strings.Compare(b.Value, a.Value)
		}
		return cmp.Or(cmp.Compare(b.N, a.N), strings.Compare(a.Value, b.Value))
	})
}

// facetTerm returns the search condition that selects one value of a facet.
func facetTerm(name, text string) string {
	n := &lang.Node{Op: lang.OpField, Name: name, Rel: lang.RelSame, Values: []lang.Value{{Text: text}}}
	switch name {
	case lang.KindName:
		n.Rel = lang.RelIs
	case "day", "month":
		n.Name, n.Rel = lang.DateName, lang.RelIs
	}
	return n.String()
}
