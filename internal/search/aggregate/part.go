// Package aggregate sums up rows of columns in groups. It can subtract a row again when the row changes.
package aggregate

import (
	"math/big"

	"understudy"
	"understudy/internal/search/columns"
)

// Dimension says how rows are grouped. Rows with equal keys are in the same group.
type Dimension struct {
	Key  func(row int32) int64
	Text func(key int64) string // returns the text of a key; "" for rows without a value
}

// Options describe what a part sums up. All functions are called while the table is locked.
type Options struct {
	// Rows reports whether a row matches. If nil, Records decides.
	Rows func(row int32) bool
	// Records reports whether a record matches. It decides if Rows is nil.
	Records func(r *understudy.Record) bool
	By      []Dimension
	// Value returns the number that a row adds. If nil, rows are only counted.
	Value Value
	// Unit groups rows by the unit of their values; if nil, values have no unit.
	Unit *Dimension
	// Timed is true if the values are lengths of time whose quantiles are needed.
	Timed bool
}

// Value returns the number of a row. ok is false if the row has no number.
type Value = columns.Value

// Part sums up the matches of one kind. The lock of its table guards it.
type Part struct {
	Table     *columns.Table
	o         Options
	rows      []uint64 // a bit for each row, set if the row is in the sums
	groups    map[key]*group
	lastKey   key
	lastGroup *group // the group of lastKey
	// rest sums up the rows that have no group because of maxGroups, by unit. restRows has a bit for each row, set
	// if the row is in rest.
	rest     map[uint32]*group
	restRows []uint64
}

// maxGroups is the maximum number of groups in a part.
const maxGroups = 1 << 16

// New returns an empty part for a table. The caller must hold the table's lock.
func New(t *columns.Table, o Options) *Part {
	return &Part{Table: t, o: o, groups: map[key]*group{}}
}

// Fill adds every row that matches; Options.Rows must be set. The caller must hold the table's lock. Fill calls
// goOn from time to time. If goOn returns false, Fill stops and returns false.
func (p *Part) Fill(goOn func() bool) (whole bool) {
	n := 0
	for row := range p.Table.VisitRows {
		if p.o.Rows(row) {
			p.Add(row)
		}
		if n++; n%(1<<14) == 0 && !goOn() {
			return false
		}
	}
	return true
}

// Add adds a row unless it was already added. The caller must hold the table's lock.
func (p *Part) Add(row int32) {
	if hasBit(p.rows, row) {
		return
	}
	setBit(&p.rows, row)
	g := p.findGroup(row)
	if g == nil {
		g = p.addToRest(row)
	}
	g.add(p.rowValue(row), 1, p.o.Timed)
}

func (p *Part) addToRest(row int32) *group {
	setBit(&p.restRows, row)
	unit := p.rowKey(row).unit
	if p.rest[unit] == nil {
		if p.rest == nil {
			p.rest = map[uint32]*group{}
		}
		p.rest[unit] = &group{}
	}
	return p.rest[unit]
}

// RemoveRow subtracts a row if it was added.
func (p *Part) RemoveRow(row int32) {
	if !hasBit(p.rows, row) {
		return
	}
	p.rows[row/64] &^= 1 << (row % 64)
	k := p.rowKey(row)
	if hasBit(p.restRows, row) {
		p.restRows[row/64] &^= 1 << (row % 64)
		if g := p.rest[k.unit]; g.add(p.rowValue(row), -1, p.o.Timed) == 0 {
			delete(p.rest, k.unit)
		}
		return
	}
	if g := p.groups[k]; g.add(p.rowValue(row), -1, p.o.Timed) == 0 {
		delete(p.groups, k)
		p.lastGroup = nil
	}
}

func hasBit(of []uint64, row int32) bool {
	return int(row)/64 < len(of) && of[row/64]>>(row%64)&1 != 0
}

func setBit(of *[]uint64, row int32) {
	for int(row)/64 >= len(*of) {
		*of = append(*of, 0)
	}
	(*of)[row/64] |= 1 << (row % 64)
}

// AddRow adds a row if it matches.
func (p *Part) AddRow(row int32, r *understudy.Record) {
	if p.o.Rows != nil && p.o.Rows(row) || p.o.Rows == nil && p.o.Records(r) {
		p.Add(row)
	}
}

func (p *Part) rowValue(row int32) (v value) {
	if p.o.Value != nil {
		v.millionths, v.large, v.present = p.o.Value(row)
	}
	return v
}

func (p *Part) rowKey(row int32) (k key) {
	for i := range p.o.By {
		k.by[i] = p.o.By[i].Key(row)
	}
	if p.o.Unit != nil {
		k.unit = uint32(p.o.Unit.Key(row))
	}
	return k
}

// findGroup returns the group of a row and creates it if needed. It returns nil if there are already maxGroups groups.
func (p *Part) findGroup(row int32) *group {
	k := p.rowKey(row)
	if p.lastGroup != nil && p.lastKey == k {
		return p.lastGroup
	}
	g := p.groups[k]
	if g == nil {
		if len(p.groups) == maxGroups {
			return nil
		}
		g = &group{}
		p.groups[k] = g
	}
	p.lastKey, p.lastGroup = k, g
	return g
}

// Bytes returns an estimate of the part's memory in bytes. The caller must hold the table's lock.
func (p *Part) Bytes() int64 {
	n := int64(len(p.rows)+len(p.restRows))*8 + int64(len(p.groups))*200
	for _, g := range p.groups {
		n += int64(len(g.durations)) * 24
	}
	return n
}

// ElapsedSeconds returns a Value: the time from one column to another in a row. If when is nil, every row counts.
// If the end is before the beginning, the row has no value.
func ElapsedSeconds(from, to *columns.Column, when func(row int32) bool) Value {
	return func(row int32) (n int64, large *big.Rat, ok bool) {
		begin, end := from.Unix(row), to.Unix(row)
		if begin == 0 || end == 0 || end < begin || when != nil && !when(row) {
			return 0, nil, false
		}
		return (end - begin) * columns.Scale, nil, true
	}
}
