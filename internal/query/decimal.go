// This file contains decimal numbers of any precision, and conditions on them.

package query

import (
	"cmp"
	"strconv"
	"strings"
)

// Decimal is a decimal number with all its digits.
type Decimal struct {
	negative    bool
	whole, part string // the digits before and after the decimal point, without leading and trailing zeros
}

// maxDecimal is the maximum length of a text that is parsed as a number, in bytes.
const maxDecimal = 60

// ParseDecimal parses a number such as -0.0075, 12, +3.50 or 1e3. It returns false for any other text.
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
	if whole == "" && part == "" || !isAllDigits(whole) || !isAllDigits(part) || point && part == "" {
		return parseExponent(text)
	}
	d := Decimal{negative, strings.TrimLeft(whole, "0"), strings.TrimRight(part, "0")}
	d.negative = negative && d.whole+d.part != ""
	return d, true
}

// maxExponent is the maximum number of places by which an exponent may move the decimal point.
const maxExponent = 40

// parseExponent parses a number with an exponent. It moves the decimal point accordingly.
func parseExponent(text string) (Decimal, bool) {
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
		d.part = cmp.Or(d.part, "0")
		d.whole, d.part = d.whole+d.part[:1], d.part[1:]
	}
	for ; by < 0; by++ {
		d.whole = cmp.Or(d.whole, "0")
		last := len(d.whole) - 1
		d.whole, d.part = d.whole[:last], d.whole[last:]+d.part
	}
	d.whole, d.part = strings.TrimLeft(d.whole, "0"), strings.TrimRight(d.part, "0")
	return d, true
}

// String returns the number without an exponent: -0.0075, 12, 0.
func (d Decimal) String() string {
	text := cmp.Or(d.whole, "0")
	if d.part != "" {
		text += "." + d.part
	}
	if d.negative {
		text = "-" + text
	}
	return text
}

// isAllDigits reports whether a text consists of digits only.
func isAllDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// Compare returns a negative, zero or positive number if d is less than, equal to or greater than o.
func (d Decimal) Compare(o Decimal) int {
	if d.negative != o.negative {
		if d.negative {
			return -1
		}
		return 1
	}
	by := cmp.Or(len(d.whole)-len(o.whole), strings.Compare(d.whole, o.whole), strings.Compare(d.part, o.part))
	if d.negative {
		return -by
	}
	return by
}

// Key returns bytes that sort in the order of the decimals. Keys of negative numbers are cut to at most most bytes.
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

// Range matches decimals between From and To. If From or To is nil, there is no limit on that side. If Exclusive is true,
// From and To themselves do not match. If Negated is true, the sign of the value is changed before the comparison.
type Range struct {
	From, To           *Decimal
	Exclusive, Negated bool
}

// Match parses the value as a decimal and compares it with the range.
func (r Range) Match(v Value) bool {
	raw, plain := v.rawText()
	text := string(raw)
	if !plain {
		text = v.Text()
	}
	have, ok := ParseDecimal(text)
	have.negative = have.negative != r.Negated && have.whole+have.part != ""
	return ok && r.isAboveFrom(have) && r.isBelowTo(have)
}

func (r Range) isAboveFrom(have Decimal) bool {
	if r.From == nil {
		return true
	}
	by := have.Compare(*r.From)
	return by > 0 || by == 0 && !r.Exclusive
}

func (r Range) isBelowTo(have Decimal) bool {
	if r.To == nil {
		return true
	}
	by := have.Compare(*r.To)
	return by < 0 || by == 0 && !r.Exclusive
}
