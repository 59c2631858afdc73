// Decimal: numbers as written, and conditions on them.

package query

import (
	"strconv"
	"strings"
)

// Decimal is a number as written: no digits are lost.
type Decimal struct {
	negative    bool
	whole, part string // without zeros in front and behind
}

// maxDecimal bounds what is looked at as a number, in bytes.
const maxDecimal = 60

// ParseDecimal reads -0.0075, 12, +3.50 and 1e3.
func ParseDecimal(text string) (Decimal, bool) {
	if len(text) == 0 || len(text) > maxDecimal {
		return Decimal{}, false
	}
	rest := strings.TrimPrefix(text, "-")
	negative := len(rest) < len(text)
	if !negative {
		rest = strings.TrimPrefix(text, "+")
	}
	whole, part, point := strings.Cut(rest, ".")
	if whole == "" && part == "" || !allDigits(whole) || !allDigits(part) || point && part == "" {
		return exponent(text)
	}
	d := Decimal{negative, strings.TrimLeft(whole, "0"), strings.TrimRight(part, "0")}
	d.negative = negative && d.whole+d.part != ""
	return d, true
}

// maxExponent bounds by how many places an exponent moves the point.
const maxExponent = 40

// exponent reads a number with an exponent: its digits, with the point moved.
func exponent(text string) (Decimal, bool) {
	at := strings.IndexAny(text, "eE")
	if at < 0 || strings.ContainsAny(text[:at], "eE") {
		return Decimal{}, false
	}
	by, err := strconv.Atoi(text[at+1:])
	d, ok := ParseDecimal(text[:at])
	if err != nil || !ok || by < -maxExponent || by > maxExponent {
		return Decimal{}, false
	}
	for ; by > 0; by-- {
		if d.part == "" {
			d.part = "0"
		}
		d.whole, d.part = d.whole+d.part[:1], d.part[1:]
	}
	for ; by < 0; by++ {
		if d.whole == "" {
			d.whole = "0"
		}
		last := len(d.whole) - 1
		d.whole, d.part = d.whole[:last], d.whole[last:]+d.part
	}
	d.whole, d.part = strings.TrimLeft(d.whole, "0"), strings.TrimRight(d.part, "0")
	return d, true
}

// String is the number in plain digits: -0.0075, 12, 0.
func (d Decimal) String() string {
	text := d.whole
	if text == "" {
		text = "0"
	}
	if d.part != "" {
		text += "." + d.part
	}
	if d.negative {
		text = "-" + text
	}
	return text
}

func allDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// Compare is negative, zero or positive as d is less than, equal to or greater than o.
func (d Decimal) Compare(o Decimal) int {
	if d.negative != o.negative {
		if d.negative {
			return -1
		}
		return 1
	}
	by := len(d.whole) - len(o.whole)
	if by == 0 {
		by = strings.Compare(d.whole, o.whole)
	}
	if by == 0 {
		by = strings.Compare(d.part, o.part)
	}
	if d.negative {
		return -by
	}
	return by
}

// Key is bytes that compare as the decimals do; those below zero are cut to most bytes.
func (d Decimal) Key(most int) []byte {
	key := append([]byte{1, byte(len(d.whole))}, d.whole...)
	key = append(key, d.part...)
	if !d.negative {
		return key
	}
	key[0] = 0xff
	for i := range key {
		key[i] = ^key[i]
	}
	return append(key[:min(len(key), most-1)], 0xff)
}

// Range wants a decimal from one to another. An end that is nil is open, and
// with Inside the ends are not part of the range. With Negated the value is taken with the other sign.
type Range struct {
	From, To        *Decimal
	Inside, Negated bool
}

// Holds reads the value as a decimal.
func (r Range) Holds(v Value) bool {
	raw, plain := v.plain()
	text := string(raw)
	if !plain {
		text = v.Text()
	}
	have, ok := ParseDecimal(text)
	have.negative = have.negative != r.Negated && have.whole+have.part != ""
	return ok && r.after(have) && r.before(have)
}

func (r Range) after(have Decimal) bool {
	if r.From == nil {
		return true
	}
	by := have.Compare(*r.From)
	return by > 0 || by == 0 && !r.Inside
}

func (r Range) before(have Decimal) bool {
	if r.To == nil {
		return true
	}
	by := have.Compare(*r.To)
	return by < 0 || by == 0 && !r.Inside
}
