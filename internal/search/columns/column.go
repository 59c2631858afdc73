// Column: one field of every record of a table, 4 bytes a record.

package columns

import (
	"math"
	"math/big"

	"understudy/internal/query"
	"understudy/spec"
)

// Sort is what the cells of a column hold.
type Sort uint8

// The sorts of columns.
const (
	Word   Sort = iota // a value among others: a choice, a code, a number of a telephone
	Number             // a decimal, exact
	Time               // Unix seconds
)

// Scale is how many units of a Number cell are one: cells hold millionths.
const Scale = 1_000_000

// Cells that are no value.
const (
	noNumber  = math.MinInt32
	oddNumber = math.MinInt32 + 1 // the value is in odd
	noTime    = 0
	oddTime   = 1
)

// Column is a field of every record. The table it belongs to guards it.
type Column struct {
	Field *spec.Field
	Sort  Sort
	cells []uint32
	words words
	odd   map[int32]oddValue // values that do not fit in a cell, by row
	// unreadable counts the cells whose value is there but cannot be kept: an object, a text in a number's place.
	unreadable int
}

// oddValue is a number or a time that does not fit in a cell.
type oddValue struct {
	number *big.Rat
	time   int64
}

// sortOf is the sort of column of a field; ok is false for a field that has none.
func sortOf(k *spec.Kind, f *spec.Field) (s Sort, ok bool) {
	if spec.IsTimeType(f.Type) {
		return Time, f.Class != spec.ClassSecret
	}
	switch f.Type {
	case spec.TypeSelect, spec.TypeBool, spec.TypeCode:
		return Word, f.Class != spec.ClassSecret
	case spec.TypeInt, spec.TypeDecimal:
		return Number, f.Class != spec.ClassSecret
	}
	return Word, f.Class == spec.ClassPhone && f.Type != spec.TypeMap || k.IsUnit(f.Name) || k.IsInEveryPath(f.Name)
}

// put sets the cell of a row, and returns whether its value cannot be kept.
func (c *Column) put(row int32, v query.Value) (doubtful bool) {
	doubtful = v.IsNested()
	present := !doubtful && query.Present{}.Match(v)
	switch c.Sort {
	case Word:
		c.cells[row] = 0
		if present {
			c.cells[row] = c.words.add(v.RawBytes())
		}
	case Number:
		c.cells[row] = number(noNumber)
		if present {
			doubtful = c.putNumber(row, v)
		}
	case Time:
		c.cells[row] = noTime
		if present {
			doubtful = c.putTime(row, v)
		}
	}
	if doubtful {
		c.unreadable++
	}
	return doubtful
}

func number(n int32) uint32 { return uint32(n) }

func (c *Column) putNumber(row int32, v query.Value) (doubtful bool) {
	text := v.Text()
	if n, ok := millionths(text); ok {
		c.cells[row] = number(n)
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
	c.keepOdd(row, oddValue{number: r})
	c.cells[row] = number(oddNumber)
	return false
}

func (c *Column) putTime(row int32, v query.Value) (doubtful bool) {
	switch at := v.Unix(); {
	case at == 0:
		return true
	case at > oddTime && at <= math.MaxUint32:
		c.cells[row] = uint32(at)
	default:
		c.keepOdd(row, oddValue{time: at})
		c.cells[row] = oddTime
	}
	return false
}

func (c *Column) keepOdd(row int32, v oddValue) {
	if c.odd == nil {
		c.odd = map[int32]oddValue{}
	}
	c.odd[row] = v
}

// clear takes the cell of a row away. doubtful is what put returned for it.
func (c *Column) clear(row int32, doubtful bool) {
	if c.Sort == Word && c.cells[row] != 0 {
		c.words.drop(c.cells[row])
	}
	delete(c.odd, row)
	c.cells[row] = 0
	if doubtful {
		c.unreadable--
	}
}

// millionths reads a plain decimal with six places at most that fits in a cell.
func millionths(text string) (int32, bool) {
	const most = 16 // bytes
	i, negative := 0, false
	if text != "" && (text[0] == '-' || text[0] == '+') {
		negative, i = text[0] == '-', 1
	}
	if len(text) > most || i == len(text) {
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
	return int32(n), n != oddNumber
}

// Readable reports whether every value of the field is kept.
func (c *Column) Readable() bool { return c.unreadable == 0 }

// Word is the code of a row's value in a column of words; 0: it has none.
func (c *Column) Word(row int32) uint32 { return c.cells[row] }

// Text is the text of a code.
func (c *Column) Text(code uint32) string { return c.words.text[code] }

// Country is the country (ISO 3166-1 alpha-2) of the telephone number that a code stands for;
// "" when it is none or tells none.
func (c *Column) Country(code uint32) string { return c.words.country[code] }

// Unix is the time of a row in a column of times; 0: it has none.
func (c *Column) Unix(row int32) int64 {
	at := c.cells[row]
	if at == oddTime {
		return c.odd[row].time
	}
	return int64(at)
}

// Millionths is the number of a row in a column of numbers. ok is false when it has none.
// odd is the number itself where it does not fit.
func (c *Column) Millionths(row int32) (n int64, odd *big.Rat, ok bool) {
	switch v := int32(c.cells[row]); v {
	case noNumber:
		return 0, nil, false
	case oddNumber:
		return 0, c.odd[row].number, true
	default:
		return int64(v), nil, true
	}
}

// Value is the number of a row in millionths or, where that does not fit, odd. ok is false when it has none.
type Value func(row int32) (n int64, odd *big.Rat, ok bool)
