// Rows: the groups of several parts as one table.

package aggregate

import (
	"cmp"
	"math/big"
	"slices"
	"strings"
)

// Row is the matches that are alike in everything they are put in groups by.
type Row struct {
	By     [MostBy]string // what they have in common; "" for those without a value
	Unit   string
	Count  int64
	Values int64 // those that have a value
	group  *group
}

// Sum is the sum of the values.
func (r *Row) Sum() *big.Rat { return r.group.total() }

// Times are the mean of elapsed seconds and some quantiles; ok is false when there are none.
func (r *Row) Times(shares ...float64) (mean float64, quantiles []float64, ok bool) {
	if r.Values == 0 {
		return 0, nil, false
	}
	mean, _ = new(big.Rat).Quo(r.Sum(), big.NewRat(r.Values, 1)).Float64()
	return mean, r.group.times.quantiles(shares...), true
}

// Table is the rows of a sum.
type Table struct {
	Rows   []Row
	Others []Row // of what is not among Rows, one for each unit
	Totals []Row // of all, one for each unit
}

// names is what rows have in common.
type names struct {
	by   [MostBy]string
	unit string
}

// Tables adds up groups part by part. The zero value is empty.
type Tables struct {
	all  map[names]*group
	rest map[string]*group // of groups that a part did not keep apart, by unit
}

// Add adds the groups of a part, whose table is locked.
func (t *Tables) Add(p *Part) {
	if t.all == nil {
		t.all, t.rest = map[names]*group{}, map[string]*group{}
	}
	for unit, g := range p.rest {
		mergeInto(t.rest, p.o.Unit.text(int64(unit)), g)
	}
	for k, g := range p.groups {
		var n names
		for i := range p.o.By {
			n.by[i] = p.o.By[i].Text(k.by[i])
		}
		n.unit = p.o.Unit.text(int64(k.unit))
		mergeInto(t.all, n, g)
	}
}

// text is what a key is called; "" in no dimension.
func (d *Dimension) text(key int64) string {
	if d == nil {
		return ""
	}
	return d.Text(key)
}

// mergeInto adds the rows of a group to those of a name.
func mergeInto[N comparable](all map[N]*group, n N, g *group) {
	if all[n] == nil {
		all[n] = &group{}
	}
	all[n].merge(g)
}

// Table is the rows: times first in their order, then those with the largest sums or, where nothing is summed up, the
// most matches. most bounds them: of times the newest are kept. inTime says which dimensions are times.
func (t *Tables) Table(most int, summed bool, inTime [MostBy]bool) Table {
	rows := make([]Row, 0, len(t.all))
	totals, others := map[string]*group{}, map[string]*group{}
	for n, g := range t.all {
		rows = append(rows, rowOf(n, g))
		mergeInto(totals, n.unit, g)
	}
	for unit, g := range t.rest {
		mergeInto(totals, unit, g)
		mergeInto(others, unit, g)
	}
	slices.SortFunc(rows, func(a, b Row) int {
		for i, timed := range inTime {
			if by := strings.Compare(b.By[i], a.By[i]); timed && by != 0 {
				return by
			}
		}
		by := 0
		if summed {
			by = cmp.Compare(b.group.size(), a.group.size())
		}
		return cmp.Or(by, cmp.Compare(b.Count, a.Count), slices.Compare(a.By[:], b.By[:]), strings.Compare(a.Unit, b.Unit))
	})
	out := Table{Rows: rows, Totals: units(totals)}
	if len(rows) > most {
		for _, r := range rows[most:] {
			mergeInto(others, r.Unit, r.group)
		}
		out.Rows = rows[:most:most]
	}
	out.Others = units(others)
	if inTime[0] || inTime[1] { // the newest were kept; they are read in their order
		slices.SortStableFunc(out.Rows, func(a, b Row) int {
			for i, timed := range inTime {
				if by := strings.Compare(a.By[i], b.By[i]); timed && by != 0 {
					return by
				}
			}
			return 0
		})
	}
	return out
}

func rowOf(n names, g *group) Row {
	return Row{By: n.by, Unit: n.unit, Count: g.rows, Values: g.values, group: g}
}

// units are groups by unit as rows, the most matches first.
func units(all map[string]*group) []Row {
	rows := make([]Row, 0, len(all))
	for unit, g := range all {
		rows = append(rows, rowOf(names{unit: unit}, g))
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Unit, b.Unit)) })
	return rows
}
