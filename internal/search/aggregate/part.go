// Part: the matches of one kind, in groups, right while its table changes.

// Package aggregate adds up rows of columns in groups and takes them out again.
package aggregate

import (
	"math/big"

	"understudy"
	"understudy/internal/search/columns"
)

// Dimension puts rows in groups: those of one key are alike.
type Dimension struct {
	Key  func(row int32) int64
	Text func(key int64) string // what a key is called; "" for rows without a value
}

// Options say what a part adds up. All functions are called with the table locked.
type Options struct {
	// Rows tells whether a row matches; nil: only its record tells.
	Rows func(row int32) bool
	// Records tells whether a record matches.
	Records func(r *understudy.Record) bool
	By      []Dimension
	// Value is what a row adds, in millionths or, where that does not fit, as another
	// number; nil: rows are only counted.
	Value Value
	// Unit is the unit of a row's value, and its text; nil: there are none.
	Unit *Dimension
	// Timed says that values are lengths of time, whose quantiles are wanted.
	Timed bool
}

// Value is the number of a row. ok is false when it has none.
type Value = columns.Value

// Part adds up the matches of one kind. Its table guards it.
type Part struct {
	Table  *columns.Table
	o      Options
	has    []uint64 // the rows that are added up
	groups map[key]*group
	last   key
	of     *group // the group of last
	// rest are the rows beyond maxGroups, by unit; spilled says which those are.
	rest    map[uint32]*group
	spilled []uint64
}

// maxGroups bounds the groups of a part.
const maxGroups = 1 << 16

// New returns an empty part of a table, which is locked.
func New(t *columns.Table, o Options) *Part {
	return &Part{Table: t, o: o, groups: map[key]*group{}}
}

// Fill adds every row that matches; Rows must be set. The table is locked. It ends early
// when goOn is false, which it asks from time to time.
func (p *Part) Fill(goOn func() bool) (whole bool) {
	n := 0
	for row := range p.Table.Rows {
		if p.o.Rows(row) {
			p.Add(row)
		}
		if n++; n%(1<<14) == 0 && !goOn() {
			return false
		}
	}
	return true
}

// Add adds a row, once. The table is locked.
func (p *Part) Add(row int32) {
	if bit(p.has, row) {
		return
	}
	set(&p.has, row)
	g := p.group(row)
	if g == nil {
		g = p.spill(row)
	}
	g.add(p.value(row), 1, p.o.Timed)
}

// spill puts a row among those beyond maxGroups.
func (p *Part) spill(row int32) *group {
	set(&p.spilled, row)
	unit := p.keyOf(row).unit
	if p.rest[unit] == nil {
		if p.rest == nil {
			p.rest = map[uint32]*group{}
		}
		p.rest[unit] = &group{}
	}
	return p.rest[unit]
}

// Leave takes a row out.
func (p *Part) Leave(row int32) {
	if !bit(p.has, row) {
		return
	}
	p.has[row/64] &^= 1 << (row % 64)
	k := p.keyOf(row)
	if bit(p.spilled, row) {
		p.spilled[row/64] &^= 1 << (row % 64)
		if g := p.rest[k.unit]; g.add(p.value(row), -1, p.o.Timed) == 0 {
			delete(p.rest, k.unit)
		}
		return
	}
	if g := p.groups[k]; g.add(p.value(row), -1, p.o.Timed) == 0 {
		delete(p.groups, k)
		p.of = nil
	}
}

// bit reports whether a row is in a set, set puts it in.
func bit(of []uint64, row int32) bool {
	return int(row)/64 < len(of) && of[row/64]>>(row%64)&1 != 0
}

func set(of *[]uint64, row int32) {
	for int(row)/64 >= len(*of) {
		*of = append(*of, 0)
	}
	(*of)[row/64] |= 1 << (row % 64)
}

// Enter adds a row when it matches.
func (p *Part) Enter(row int32, r *understudy.Record) {
	if p.o.Rows != nil && p.o.Rows(row) || p.o.Rows == nil && p.o.Records(r) {
		p.Add(row)
	}
}

func (p *Part) value(row int32) (v value) {
	if p.o.Value != nil {
		v.millionths, v.odd, v.ok = p.o.Value(row)
	}
	return v
}

func (p *Part) keyOf(row int32) (k key) {
	for i := range p.o.By {
		k.by[i] = p.o.By[i].Key(row)
	}
	if p.o.Unit != nil {
		k.unit = uint32(p.o.Unit.Key(row))
	}
	return k
}

// group is the group of a row, a new one when there is none; nil when there are too many.
func (p *Part) group(row int32) *group {
	k := p.keyOf(row)
	if p.of != nil && p.last == k {
		return p.of
	}
	g := p.groups[k]
	if g == nil {
		if len(p.groups) == maxGroups {
			return nil
		}
		g = &group{}
		p.groups[k] = g
	}
	p.last, p.of = k, g
	return g
}

// Bytes is about how many bytes the part takes. The table is locked.
func (p *Part) Bytes() int64 {
	n := int64(len(p.has)+len(p.spilled))*8 + int64(len(p.groups))*200
	for _, g := range p.groups {
		n += int64(len(g.times)) * 24
	}
	return n
}

// Elapsed is the seconds that pass from one time of a row to another, while a condition
// holds; nil: always. A time that passes backwards is none.
func Elapsed(from, to *columns.Column, when func(row int32) bool) Value {
	return func(row int32) (n int64, odd *big.Rat, ok bool) {
		begin, end := from.Unix(row), to.Unix(row)
		if begin == 0 || end == 0 || end < begin || when != nil && !when(row) {
			return 0, nil, false
		}
		return (end - begin) * columns.Scale, nil, true
	}
}
