// This file compiles conditions on fields to tests of column cells.

package columns

import (
	"math"
	"math/big"
	"slices"
	"strconv"

	"understudy/internal/query"
	"understudy/kit/geo"
)

// Test compiles a test of a field to a test of rows. It returns nil if the cells cannot decide the test, so that
// records must be read. The test is valid until the table's row watches end. The caller must hold the table's lock
// during compilation and use.
func (t *Table) Test(field string, test query.Test) func(row int32) bool {
	c := t.Column(field)
	switch {
	case c == nil:
		return nil
	case c.Sort == Word && c.unreadable == 0:
		return c.wordTest(test)
	case c.Sort == Number && isNumberTest(test):
		return c.numberTest(test)
	case c.Sort == Time:
		if times, ok := test.(query.Times); ok {
			return func(row int32) bool { return times.Has(c.Unix(row)) }
		}
	}
	if _, present := test.(query.Present); present && c.unreadable == 0 && c.Sort != Degrees {
		return func(row int32) bool { return c.hasValue(row) }
	}
	return nil
}

func (c *Column) hasValue(row int32) bool {
	if c.Sort == Number {
		return int32(c.cells[row]) != noNumber
	}
	return c.cells[row] != 0
}

func isNumberTest(test query.Test) bool {
	switch test := test.(type) {
	case query.Range:
		return true
	case query.Any:
		return !slices.ContainsFunc(test, func(one query.Test) bool { return !isNumberTest(one) })
	}
	return false
}

// wordTest returns a test of rows that evaluates each distinct value only once.
func (c *Column) wordTest(test query.Test) func(row int32) bool {
	const yes, no = 1, 2
	var known []uint8
	reused := c.words.reuses
	return func(row int32) bool {
		code := c.cells[row]
		if code == 0 {
			return false
		}
		if reused != c.words.reuses {
			clear(known)
			reused = c.words.reuses
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

// maxCachedResults is the maximum number of distinct numbers whose result a test keeps.
const maxCachedResults = 1 << 16

// numberTest returns a test of rows that evaluates each distinct number only once, up to maxCachedResults numbers.
func (c *Column) numberTest(test query.Test) func(row int32) bool {
	known := map[uint32]bool{}
	return func(row int32) bool {
		cell := c.cells[row]
		switch int32(cell) {
		case noNumber:
			return false
		case largeNumber:
			return test.Match(valueOf(formatDecimal(c.large[row].number), ""))
		}
		holds, ok := known[cell]
		if !ok {
			holds = test.Match(valueOf(formatDecimal(big.NewRat(int64(int32(cell)), Scale)), ""))
			if len(known) < maxCachedResults {
				known[cell] = holds
			}
		}
		return holds
	}
}

// formatDecimal returns a number as a JSON string with all its decimal places.
func formatDecimal(r *big.Rat) string {
	places, _ := r.FloatPrec()
	return strconv.Quote(r.FloatString(places))
}

// Times returns a function that reads the time of a row, or nil if the field has no column of times.
func (t *Table) Times(field string) func(row int32) int64 {
	if c := t.Column(field); c != nil && c.Sort == Time {
		return c.Unix
	}
	return nil
}

// FindNear returns the numbers of the records whose coordinates are at most reach metres from a point, and of some that are up to a metre
// farther; it is not nil if ok. ok is false if a field has no column of degrees, or if there are more than limit records. The caller
// must hold the table's lock.
func (t *Table) FindNear(at geo.Point, reach float64, latitude, longitude string, limit int) (
	records []int64, ok bool) {
	lat, lon := t.Column(latitude), t.Column(longitude)
	if lat == nil || lon == nil || lat.Sort != Degrees || lon.Sort != Degrees {
		return nil, false
	}
	records = []int64{}
	reach++
	band := reach / geo.EarthRadius * 180 / math.Pi
	low, high := cellOf(at.Lat-band), cellOf(at.Lat+band)
	var lats, lons [1024]float64
	var numbers [len(lats)]int64
	n := 0
	measure := func() bool {
		geo.FillDistances(lats[:n], at, lats[:n], lons[:n])
		for i, meters := range lats[:n] {
			if meters <= reach {
				records = append(records, numbers[i])
			}
		}
		n = 0
		return len(records) <= limit
	}
	for record, row := range t.VisitRecords {
		y, x := int32(lat.cells[row]), int32(lon.cells[row])
		if y < low || y > high || y == noNumber || x == noNumber {
			continue
		}
		lats[n], lons[n], numbers[n] = float64(y)/Scale, float64(x)/Scale, record
		if n++; n == len(lats) && !measure() {
			return nil, false
		}
	}
	return records, measure()
}

// cellOf returns the millionths of degrees as a cell holds them. Degrees beyond the poles are cut.
func cellOf(degrees float64) int32 { return int32(math.Round(min(max(degrees, -90), 90) * Scale)) }
