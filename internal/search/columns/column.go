// This file stores one field of every record of a table, in 4 bytes per record.

package columns

import (
	"math"
	"math/big"
	"strconv"

	"understudy/internal/query"
	"understudy/spec"
)

// Sort says how the cells of a column encode values.
type Sort uint8

// The sorts of columns.
const (
	Word    Sort = iota // a code that stands for a value shared by many records, such as a choice, a code or a phone number
	Number              // an exact decimal in millionths
	Time                // a time in Unix seconds
	Degrees             // a latitude or a longitude, rounded to millionths of a degree, which are 11 cm at most
)

// Scale is the factor by which a number is multiplied in its cell: the cell holds millionths.
const Scale = 1_000_000

// Cells with a special meaning.
const (
	noNumber    = math.MinInt32     // also of degrees
	largeNumber = math.MinInt32 + 1 // the cell's number is in Column.large
	noTime      = 0
	largeTime   = 1 // the cell's time is in Column.large
)

// Column stores one field of every record. The lock of its table guards it.
type Column struct {
	Field *spec.Field
	Sort  Sort
	cells []uint32
	words valueTable
	large map[int32]largeValue // the values that do not fit in a cell, by row
	// unreadable counts the cells whose value cannot be kept, such as an object or a text in a number field.
	unreadable int
}

// largeValue is a number or a time that does not fit in a cell.
type largeValue struct {
	number *big.Rat
	time   int64
}

// sortOf returns the sort of a field's column. ok is false if the field has no column.
func sortOf(k *spec.Kind, f *spec.Field) (s Sort, ok bool) {
	if spec.IsTimeType(f.Type) {
		return Time, f.Class != spec.ClassSecret
	}
	switch f.Type {
	case spec.TypeSelect, spec.TypeBool, spec.TypeCode:
		return Word, f.Class != spec.ClassSecret
	case spec.TypeInt, spec.TypeDecimal:
		return Number, f.Class != spec.ClassSecret
	case spec.TypeLatitude, spec.TypeLongitude:
		return Degrees, f.Class != spec.ClassSecret
	}
	return Word, f.Class == spec.ClassPhone && f.Type != spec.TypeMap || k.IsUnit(f.Name) || k.IsInEveryPath(f.Name)
}

// putValue sets the cell of a row. It returns true if the cell cannot represent the value.
func (c *Column) putValue(row int32, v query.Value) (doubtful bool) {
	doubtful = v.IsNested()
	present := !doubtful && query.Present{}.Match(v)
	switch c.Sort {
	case Word:
		c.cells[row] = 0
		if present {
			c.cells[row] = c.words.addReference(v.RawBytes())
		}
	case Number:
		c.cells[row] = numberCell(noNumber)
		if present {
			doubtful = c.putNumber(row, v)
		}
	case Time:
		c.cells[row] = noTime
		if present {
			doubtful = c.putTime(row, v)
		}
	case Degrees:
		doubtful = false // what is no number has no distance
		c.cells[row] = numberCell(noNumber)
		if degrees, err := strconv.ParseFloat(v.Text(), 64); present && err == nil && math.Abs(degrees) <= 180 {
			c.cells[row] = numberCell(int32(math.Round(degrees * Scale)))
		}
	}
	if doubtful {
		c.unreadable++
	}
	return doubtful
}

func numberCell(n int32) uint32 { return uint32(n) }

// putNumber sets the cell of a row to a number. It returns true if the text is not a number.
func (c *Column) putNumber(row int32, v query.Value) (doubtful bool) {
	text := v.Text()
	if n, ok := parseMillionths(text); ok {
		c.cells[row] = numberCell(n)
		return false
	}
	d, ok := query.ParseDecimal(text)
	if !ok {
		return true
	}
	r, ok := new(big.Rat).SetString(d.String())
	if !ok {
		return true
	}
	c.keepLarge(row, largeValue{number: r})
	c.cells[row] = numberCell(largeNumber)
	return false
}

func (c *Column) putTime(row int32, v query.Value) (doubtful bool) {
	switch at := v.Unix(); {
	case at == 0:
		return true
	case at > largeTime && at <= math.MaxUint32:
		c.cells[row] = uint32(at)
	default:
		c.keepLarge(row, largeValue{time: at})
		c.cells[row] = largeTime
	}
	return false
}

func (c *Column) keepLarge(row int32, v largeValue) {
	if c.large == nil {
		c.large = map[int32]largeValue{}
	}
	c.large[row] = v
}

// clear empties the cell of a row. doubtful is what putValue returned for the cell.
func (c *Column) clear(row int32, doubtful bool) {
	if c.Sort == Word && c.cells[row] != 0 {
		c.words.release(c.cells[row])
	}
	delete(c.large, row)
	c.cells[row] = 0
	if doubtful {
		c.unreadable--
	}
}

// parseMillionths parses a decimal with at most six places whose millionths fit in a cell.
func parseMillionths(text string) (int32, bool) {
	const maxBytes = 16 // maximum length of a decimal, in bytes
	i, negative := 0, false
	if text != "" && (text[0] == '-' || text[0] == '+') {
		negative, i = text[0] == '-', 1
	}
	if len(text) > maxBytes || i == len(text) {
		return 0, false
	}
	n, places, digits := int64(0), -1, 0
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c == '.' && places < 0:
			places = 0
			continue
		case c < '0' || c > '9':
			return 0, false
		case places == 6 && c != '0':
			return 0, false
		case places == 6:
			continue
		default:
			n = n*10 + int64(c-'0')
			digits++
			if places >= 0 {
				places++
			}
		}
	}
	if digits == 0 || text[len(text)-1] == '.' {
		return 0, false
	}
	for p := max(places, 0); p < 6; p++ {
		if n *= 10; n > math.MaxInt32 {
			return 0, false
		}
	}
	if n > math.MaxInt32 {
		return 0, false
	}
	if negative {
		n = -n
	}
	return int32(n), n != largeNumber
}

// IsReadable reports whether the cells can represent every value of the field.
func (c *Column) IsReadable() bool { return c.unreadable == 0 }

// Word returns the code of a row's value in a column of words, or 0 if the row has no value.
func (c *Column) Word(row int32) uint32 { return c.cells[row] }

// Text returns the text of the value with a code.
func (c *Column) Text(code uint32) string { return c.words.text[code] }

// Country returns the country (ISO 3166-1 alpha-2) of the phone number with a code, or "" if it has none.
func (c *Column) Country(code uint32) string { return c.words.country[code] }

// Unix returns the Unix time of a row in a column of times, or 0 if the row has no time.
func (c *Column) Unix(row int32) int64 {
	at := c.cells[row]
	if at == largeTime {
		return c.large[row].time
	}
	return int64(at)
}

// Millionths returns the number of a row in a column of numbers. large is the number itself if its millionths do not
// fit in a cell. ok is false if the row has no number.
func (c *Column) Millionths(row int32) (n int64, large *big.Rat, ok bool) {
	switch v := int32(c.cells[row]); v {
	case noNumber:
		return 0, nil, false
	case largeNumber:
		return 0, c.large[row].number, true
	default:
		return int64(v), nil, true
	}
}

// Value returns the number of a row as Column.Millionths does.
type Value func(row int32) (n int64, large *big.Rat, ok bool)
