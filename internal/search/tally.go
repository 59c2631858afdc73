// Tally: the number of records of each value. Records with the same values in every counted field are one group.

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

// Bounds of a tally and of what is listed of it.
const (
	maxGroups   = 1 << 16 // of one tally
	perPage     = 256     // records in one page of a tally
	maxUnasked  = 1000    // changes that a tally follows though nobody asks for it
	maxFacets   = 12
	maxListed   = 20   // values of a facet
	maxCounted  = 1000 // values of a facet that are counted
	maxFacetted = 100  // bytes of a value that is counted
)

// tally counts records by the values of several fields at once. The zero value is empty and is of all
// kinds. One of a kind follows its table, which guards it.
type tally struct {
	in      *lang.KindView
	cond    *lang.Cond
	one     lang.Candidate
	unasked int  // changes since somebody asked
	left    bool // nobody asked for too long: it is empty

	groups []group
	byKey  map[string]uint32 // a group's place in groups, from 1
	total  int64
	full   bool // there were more groups than are kept: some records are not counted
	key    []byte
	values []named // room for those of one record

	// pages hold the group of each record that is counted, by the store's number of
	// the record; 0 is none. A tally that is never brought up to date has no pages.
	pages  map[int64]*[perPage]uint32
	page   *[perPage]uint32 // the last one that was used
	pageAt int64
}

// group is records with the same values.
type group struct {
	n      int64
	values []named
}

// named is a value of one facet. long marks a value that is too long to be shown.
type named struct {
	facet, value string
	long         bool
}

// add counts a record.
func (t *tally) add(c *lang.Candidate) { t.move(t.group(c), +1) }

// Changed counts a record in its current form instead of its former one. A tally is emptied when nobody asked for it
// during many changes.
func (t *tally) Changed(record int64, r *understudy.Record) {
	switch t.unasked++; {
	case t.left || t.full:
		return
	case t.unasked > maxUnasked:
		*t = tally{left: true}
		return
	}
	to := uint32(0)
	if r != nil && t.in.See(&t.one, r) && t.cond.Holds(&t.one) {
		to = t.group(&t.one)
	}
	t.assign(record, to)
}

// assign counts a record in a group instead of its former one; 0 is no group.
func (t *tally) assign(record int64, to uint32) {
	if at := record / perPage; t.page == nil || t.pageAt != at {
		page := t.pages[at]
		if page == nil {
			if to == 0 {
				return
			}
			if t.pages == nil {
				t.pages = map[int64]*[perPage]uint32{}
			}
			page = new([perPage]uint32)
			t.pages[at] = page
		}
		t.page, t.pageAt = page, at
	}
	if at := &t.page[record%perPage]; *at != to {
		t.move(*at, -1)
		t.move(to, +1)
		*at = to
	}
}

// move adds to a group, or takes from it; 0 is no group.
func (t *tally) move(group uint32, by int64) {
	if group != 0 {
		t.groups[group-1].n += by
		t.total += by
	}
}

// size is about how many bytes it takes.
func (t *tally) size() int64 { return int64(len(t.pages))*(perPage*4+64) + int64(len(t.groups))*512 }

// group returns the group of a record and makes it if it is new; 0 if the maximum number of groups is reached.
func (t *tally) group(c *lang.Candidate) uint32 {
	day := ""
	if c.View.ShowsTime() {
		day = dayOf(c.Clock())
	}
	return t.groupOf(c.View, day, c.TextOf)
}

// dayOf is the day of a time in UTC, "" for none.
func dayOf(at int64) string {
	if at == 0 {
		return ""
	}
	return time.Unix(at, 0).UTC().Format(time.DateOnly)
}

// groupOf is group for a record of a kind by its day and the texts of its counted fields.
func (t *tally) groupOf(in *lang.KindView, day string, textOf func(field string) (string, bool)) uint32 {
	t.key, t.values = t.key[:0], append(t.values[:0], named{facet: lang.KindName, value: in.Kind.Name})
	if day != "" {
		t.values = append(t.values, named{facet: "day", value: day}, named{facet: "month", value: day[:len("2006-01")]})
	}
	for _, f := range in.Counted {
		if text, ok := textOf(f); ok && len(text) > maxFacetted {
			t.values = append(t.values, named{facet: f, long: true})
		} else if ok {
			t.values = append(t.values, named{facet: f, value: text})
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

// countsRows reports whether the columns of a kind, whose table is locked, tell what matches and every value that is
// counted.
func countsRows(cond *lang.Cond, s *lang.KindView, t *columns.Table) bool {
	if s.Rule != nil || cond.Rows(s, t) == nil || s.ShowsTime() && lang.Clock(s.Kind, t) == nil {
		return false
	}
	return !slices.ContainsFunc(s.Counted, func(field string) bool {
		c := t.Column(field)
		return c == nil || c.Sort != columns.Word || !c.Readable()
	})
}

// fill counts the rows of the table, which is locked and has every record. It reports false when the tally has no
// room for them, or goOn is false.
func (t *tally) fill(table *columns.Table, goOn func() bool) bool {
	s, test := t.in, t.cond.Rows(t.in, table)
	clock := func(int32) int64 { return 0 }
	if s.ShowsTime() {
		clock = lang.Clock(s.Kind, table)
	}
	day := aggregate.Calendar("day", time.UTC, clock)
	counted := make([]*columns.Column, len(s.Counted))
	for i, field := range s.Counted {
		counted[i] = table.Column(field)
	}
	groups := map[string]uint32{} // by the day and the codes of a row
	var key []byte
	looked := 0
	table.Records(func(record int64, row int32) bool {
		if looked++; looked%perLook == 0 && !goOn() {
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
			to = t.groupOf(s, day.Text(at), func(field string) (string, bool) {
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

// perLook is after how many rows it is asked whether to go on.
const perLook = 1 << 14

// facets are the values of several tallies with their counts.
type facets struct {
	total int64
	by    map[string]*query.SearchFacet
	at    map[named]int // the places of values among those of their facet
}

func newFacets() *facets { return &facets{by: map[string]*query.SearchFacet{}, at: map[named]int{}} }

// add adds a tally.
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

func (a *facets) count(v named, n int64) {
	f := a.facet(v.facet)
	i, known := a.at[v]
	switch {
	case v.long, !known && len(f.Values) == maxCounted:
		f.More = true
		return
	case !known:
		i = len(f.Values)
		a.at[v] = i
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

// answer lists kinds, then fields by name, then times. broken says that not every record was counted.
func (a *facets) answer(broken bool) *answer {
	names, last := []string{lang.KindName}, []string{"month", "day"}
	for _, name := range slices.Sorted(maps.Keys(a.by)) {
		if name != lang.KindName && !slices.Contains(last, name) && len(names) < maxFacets {
			names = append(names, name)
		}
	}
	out := &answer{total: query.Count{N: a.total, AtLeast: broken}, broken: broken}
	for _, name := range append(names, last...) {
		f := a.facet(name)
		sortValues(f)
		if len(f.Values) > maxListed {
			f.Values, f.More = f.Values[:maxListed], true
		}
		for i := range f.Values {
			f.Values[i].AtLeast = broken
			f.Values[i].Term = term(name, f.Values[i].Value)
		}
		out.facets = append(out.facets, *f)
	}
	return out
}

// sortValues puts the newest time first, of others the most frequent.
func sortValues(f *query.SearchFacet) {
	times := f.Name == "day" || f.Name == "month"
	slices.SortFunc(f.Values, func(a, b query.SearchValue) int {
		if times {
			return strings.Compare(b.Value, a.Value)
		}
		return cmp.Or(cmp.Compare(b.N, a.N), strings.Compare(a.Value, b.Value))
	})
}

// term is the condition that leaves one value of a facet.
func term(name, text string) string {
	n := &lang.Node{Op: lang.OpField, Name: name, Rel: lang.RelSame, Values: []lang.Value{{Text: text}}}
	switch name {
	case lang.KindName:
		n.Rel = lang.RelIs
	case "day", "month":
		n.Name, n.Rel = lang.DateName, lang.RelIs
	}
	return n.String()
}
