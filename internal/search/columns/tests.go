// Tests: conditions on fields, decided by the cells of a column.

package columns

import (
	"math/big"
	"strconv"

	"understudy/internal/query"
)

// Test is a test of a field as a test of rows; nil when the cells cannot decide it: the records do. The test is right
// until its watchers are Reset. The table is locked when the test is made and used.
func (t *Table) Test(field string, test query.Test) func(row int32) bool {
	c := t.Column(field)
	switch {
	case c == nil:
		return nil
	case c.Sort == Word && c.unreadable == 0:
		return c.wordTest(test)
	case c.Sort == Number && decimal(test):
		return c.numberTest(test)
	case c.Sort == Time:
		if times, ok := test.(query.Times); ok {
			return func(row int32) bool { return times.Has(c.Unix(row)) }
		}
	}
	if _, present := test.(query.Present); present && c.unreadable == 0 {
		return func(row int32) bool { return c.has(row) }
	}
	return nil
}

// has reports whether a row has a value.
func (c *Column) has(row int32) bool {
	if c.Sort == Number {
		return int32(c.cells[row]) != noNumber
	}
	return c.cells[row] != 0
}

// decimal reports whether a test is of numbers alone.
func decimal(test query.Test) bool {
	switch test := test.(type) {
	case query.Range:
		return true
	case query.Any:
		for _, one := range test {
			if !decimal(one) {
				return false
			}
		}
		return true
	}
	return false
}

// wordTest tests each value once.
func (c *Column) wordTest(test query.Test) func(row int32) bool {
	const yes, no = 1, 2
	var known []uint8
	reused := c.words.reused
	return func(row int32) bool {
		code := c.cells[row]
		if code == 0 {
			return false
		}
		if reused != c.words.reused {
			clear(known)
			reused = c.words.reused
		}
		for int(code) >= len(known) {
			known = append(known, make([]uint8, max(64, len(c.words.raw)-len(known)))...)
		}
		if known[code] == 0 {
			known[code] = no
			if test.Match(valueOf(c.words.raw[code], c.Field.Type)) {
				known[code] = yes
			}
		}
		return known[code] == yes
	}
}

// maxKnown bounds the numbers whose result a test keeps.
const maxKnown = 1 << 16

// numberTest tests each number once, while they are not too many.
func (c *Column) numberTest(test query.Test) func(row int32) bool {
	known := map[uint32]bool{}
	return func(row int32) bool {
		cell := c.cells[row]
		switch int32(cell) {
		case noNumber:
			return false
		case oddNumber:
			return test.Match(valueOf(decimalOf(c.odd[row].number), ""))
		}
		holds, ok := known[cell]
		if !ok {
			holds = test.Match(valueOf(decimalOf(big.NewRat(int64(int32(cell)), Scale)), ""))
			if len(known) < maxKnown {
				known[cell] = holds
			}
		}
		return holds
	}
}

// decimalOf writes a number as a JSON text, with all its places.
func decimalOf(r *big.Rat) string {
	places, _ := r.FloatPrec()
	return strconv.Quote(r.FloatString(places))
}

// Times is the time of a row in a field; nil when the field is in no column.
func (t *Table) Times(field string) func(row int32) int64 {
	if c := t.Column(field); c != nil && c.Sort == Time {
		return c.Unix
	}
	return nil
}
