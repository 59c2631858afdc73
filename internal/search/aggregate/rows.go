// This file merges the groups of several parts into one table.

package aggregate

import (
	"cmp"
	"math/big"
	"slices"
	"strings"
)

// Row sums up the matches that have the same values in every dimension.
type Row struct {
	By     [MaxDimensions]string // the texts of the row's keys; "" for a dimension without a value
	Unit   string
	Count  int64
	Values int64 // the number of matches that have a value
	group  *group
}

// Sum returns the exact sum of the values.
func (r *Row) Sum() *big.Rat { return r.group.valueSum() }

// Durations returns the mean and some quantiles of elapsed times in seconds. ok is false if no row has a value.
func (r *Row) Durations(shares ...float64) (mean float64, quantiles []float64, ok bool) {
	if r.Values == 0 {
		return 0, nil, false
	}
	mean, _ = new(big.Rat).Quo(r.Sum(), big.NewRat(r.Values, 1)).Float64()
	return mean, r.group.durations.quantiles(shares...), true
}

// Table contains the rows of a sum.
type Table struct {
	Rows   []Row
	Others []Row // the sums of all groups that are not in Rows, one row for each unit
	Totals []Row // the sums of all groups, one row for each unit
}

// rowName holds the texts that identify a row.
type rowName struct {
	by   [MaxDimensions]string
	unit string
}

// Tables merges the groups of several parts. The zero value is empty.
type Tables struct {
	all  map[rowName]*group
	rest map[string]*group // the rows of all parts that have no group because of maxGroups, by unit
}

// Add adds the groups of a part. The caller must hold the lock of the part's table.
func (t *Tables) Add(p *Part) {
	if t.all == nil {
		t.all, t.rest = map[rowName]*group{}, map[string]*group{}
	}
	for unit, g := range p.rest {
		mergeInto(t.rest, p.o.Unit.keyText(int64(unit)), g)
	}
	for k, g := range p.groups {
		var n rowName
		for i := range p.o.By {
			n.by[i] = p.o.By[i].Text(k.by[i])
		}
		n.unit = p.o.Unit.keyText(int64(k.unit))
		mergeInto(t.all, n, g)
	}
}

// keyText returns the text of a key, or "" for a nil dimension.
func (d *Dimension) keyText(key int64) string {
	if d == nil {
		return ""
	}
	return d.Text(key)
}

func mergeInto[N comparable](all map[N]*group, n N, g *group) {
	if all[n] == nil {
		all[n] = &group{}
	}
	all[n].merge(g)
}

// Table returns the rows. They are sorted by time if a dimension is a time, else by sum if values are summed, else
// by count. Table returns at most limit rows and keeps the newest times. inTime says which dimensions are times.
func (t *Tables) Table(limit int, summed bool, inTime [MaxDimensions]bool) Table {
	rows := make([]Row, 0, len(t.all))
	totals, others := map[string]*group{}, map[string]*group{}
	for n, g := range t.all {
		rows = append(rows, newRow(n, g))
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
			by = cmp.Compare(b.group.magnitude(), a.group.magnitude())
		}
		return cmp.Or(by, cmp.Compare(b.Count, a.Count), slices.Compare(a.By[:], b.By[:]), strings.Compare(a.Unit, b.Unit))
	})
	out := Table{Rows: rows, Totals: unitRows(totals)}
	if len(rows) > limit {
		for _, r := range rows[limit:] {
			mergeInto(others, r.Unit, r.group)
		}
		out.Rows = rows[:limit:limit]
	}
	out.Others = unitRows(others)
	if inTime[0] || inTime[1] { // the newest rows were kept, but they are shown with the oldest first
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

func newRow(n rowName, g *group) Row {
	return Row{By: n.by, Unit: n.unit, Count: g.rows, Values: g.values, group: g}
}

// unitRows returns a row for each unit, with the largest count first.
func unitRows(all map[string]*group) []Row {
	rows := make([]Row, 0, len(all))
	for unit, g := range all {
		rows = append(rows, newRow(rowName{unit: unit}, g))
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Unit, b.Unit)) })
	return rows
}
