// Tally: the number of records of each value. Records with the same values in every
// counted field are one group.

package search

import (
	"slices"
	"strings"
	"time"

	"understudy/internal/query"
	"understudy/internal/search/lang"
)

// Bounds of a tally.
const (
	maxGroups = 1 << 16 // of one tally
	perPage   = 256     // records in one page of a tally
)

// tally counts records by the values of several fields at once. The zero value is
// empty.
type tally struct {
	groups []group
	byKey  map[string]uint32 // a group's place in groups, from 1
	total  int64
	full   bool // there were more groups than are kept: some records are not counted
	key    []byte

	// pages hold the group of each record that is counted, by the store's number of
	// the record; 0 is none. A tally that is never brought up to date has no pages.
	pages map[int64]*[perPage]uint32
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
func (t *tally) add(c *lang.Candidate) { t.move(0, t.group(c), +1) }

// set counts a record in its current form instead of its former one. With nil the
// record is no longer counted.
func (t *tally) set(record int64, c *lang.Candidate) {
	to := uint32(0)
	if c != nil {
		to = t.group(c)
	}
	t.assign(record, to)
}

// assign counts a record in a group instead of its former one; 0 is no group.
func (t *tally) assign(record int64, to uint32) {
	page := t.pages[record/perPage]
	if page == nil {
		if to == 0 {
			return
		}
		if t.pages == nil {
			t.pages = map[int64]*[perPage]uint32{}
		}
		page = new([perPage]uint32)
		t.pages[record/perPage] = page
	}
	if at := &page[record%perPage]; *at != to {
		t.move(*at, 0, -1)
		t.move(0, to, +1)
		*at = to
	}
}

// move adds to, or takes from, the groups that are not 0.
func (t *tally) move(from, to uint32, by int64) {
	for _, g := range [...]uint32{from, to} {
		if g != 0 {
			t.groups[g-1].n += by
			t.total += by
		}
	}
}

// size is about how many bytes it takes.
func (t *tally) size() int64 { return int64(len(t.pages))*(perPage*4+64) + int64(len(t.groups))*512 }

// group returns the group of a record and makes it if it is new; 0 if the maximum
// number of groups is reached.
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
	t.key = append(append(t.key[:0], in.Kind.Name...), 0)
	t.key = append(append(t.key, day...), 0)
	for _, f := range in.Counted {
		text, ok := textOf(f)
		switch { // one byte of length, which is at most maxFacetted
		case !ok:
			t.key = append(t.key, 254)
		case len(text) > maxFacetted:
			t.key = append(t.key, 255)
		default:
			t.key = append(append(t.key, byte(len(text))), text...)
		}
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
	t.groups = append(t.groups, group{values: valuesOf(in, day, textOf)})
	t.byKey[string(t.key)] = uint32(len(t.groups))
	return uint32(len(t.groups))
}

// valuesOf are the values of a record that are counted.
func valuesOf(in *lang.KindView, day string, textOf func(field string) (string, bool)) []named {
	all := []named{{facet: lang.KindName, value: in.Kind.Name}}
	if day != "" {
		all = append(all, named{facet: "day", value: day}, named{facet: "month", value: day[:len("2006-01")]})
	}
	for _, f := range in.Counted {
		if text, ok := textOf(f); ok && len(text) > maxFacetted {
			all = append(all, named{facet: f, long: true})
		} else if ok {
			all = append(all, named{facet: f, value: strings.Clone(text)})
		}
	}
	return all
}

// facets are the values with their counts: kinds, then fields by name, then times.
// broken says that not every record was counted.
func (t *tally) facets(broken bool) []query.SearchFacet {
	by := map[string]*query.SearchFacet{}
	at := map[named]int{}
	for _, name := range []string{lang.KindName, "month", "day"} {
		by[name] = &query.SearchFacet{Name: name, Values: []query.SearchValue{}}
	}
	for _, g := range t.groups {
		if g.n == 0 {
			continue
		}
		for _, v := range g.values {
			f := by[v.facet]
			if f == nil {
				f = &query.SearchFacet{Name: v.facet, Values: []query.SearchValue{}}
				by[v.facet] = f
			}
			i, known := at[v]
			switch {
			case v.long, !known && len(f.Values) == maxCounted:
				f.More = true
				continue
			case !known:
				i = len(f.Values)
				at[v] = i
				f.Values = append(f.Values, query.SearchValue{Value: v.value, Count: query.Count{AtLeast: broken}})
			}
			f.Values[i].Count.N += g.n
		}
	}
	times := []string{"month", "day"}
	names := slices.DeleteFunc(slices.Sorted(keys(by)), func(name string) bool {
		return name == lang.KindName ||
			slices.Contains(times, name)
	})
	names = append([]string{lang.KindName}, names...)
	var all []query.SearchFacet
	for _, name := range append(names[:min(len(names), maxFacets)], times...) {
		f := by[name]
		sortValues(f)
		if len(f.Values) > maxListed {
			f.Values, f.More = f.Values[:maxListed], true
		}
		for i := range f.Values {
			f.Values[i].Term = term(name, f.Values[i].Value)
		}
		all = append(all, *f)
	}
	return all
}
