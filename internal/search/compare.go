// Compare: decimals and phone numbers, by what they mean.

package search

import (
	"math"
	"strconv"
	"strings"
)

// decimal is a number as it is written: no digits are lost.
type decimal struct {
	negative    bool
	whole, part string // without zeros in front and behind
}

// maxDecimal bounds what is looked at as a number, in bytes.
const maxDecimal = 60

// parseDecimal reads -0.0075, 12, +3.50 and, as closely as a float is, 1e3.
func parseDecimal(text string) (decimal, bool) {
	if len(text) == 0 || len(text) > maxDecimal {
		return decimal{}, false
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
	d := decimal{negative, strings.TrimLeft(whole, "0"), strings.TrimRight(part, "0")}
	d.negative = negative && d.whole+d.part != ""
	return d, true
}

// exponent reads a number with an exponent.
func exponent(text string) (decimal, bool) {
	if strings.Trim(text, "0123456789+-.eE") != "" {
		return decimal{}, false
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.Abs(f) > 1e40 {
		return decimal{}, false
	}
	plain := strconv.FormatFloat(f, 'f', 30, 64)
	whole, part, _ := strings.Cut(strings.TrimPrefix(plain, "-"), ".")
	d := decimal{f < 0, strings.TrimLeft(whole, "0"), strings.TrimRight(part, "0")}
	return d, true
}

func allDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// compare is negative, zero or positive as d is less than, equal to or greater
// than o.
func (d decimal) compare(o decimal) int {
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

// Bounds of the digits of a phone number, and how many one without a country's
// code must have to be found among those that have one.
const (
	leastNumber   = 7
	mostNumber    = 15
	leastShort    = 3
	leastNational = 9
)

// phone is a phone number: its digits, and whether they begin with the code of
// a country.
type phone struct {
	digits  string
	country bool
}

// phoneOf reads a number as people and programs write it: +1 (415) 555-0100,
// 0014155550100, 415.555.0100, whatsapp:+14155550100. Of anything else there
// are no digits. It reads as the store's index of numbers does.
func phoneOf(text string) phone {
	text = strings.TrimSpace(text)
	if i := strings.IndexByte(text, ':'); i >= 0 && !strings.ContainsAny(text[:i], "0123456789+") {
		text = text[i+1:]
	}
	text, _, _ = strings.Cut(text, "@")
	text, _, _ = strings.Cut(text, ";")
	var p phone
	var digits []byte
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9':
			if digits = append(digits, byte(c)); len(digits) > mostNumber+2 {
				return phone{}
			}
		case c == '+' && len(digits) == 0:
			p.country = true
		case !strings.ContainsRune(" ().-/", c):
			return phone{}
		}
	}
	p.digits = string(digits)
	if rest, ok := strings.CutPrefix(p.digits, "00"); ok && !p.country {
		p.digits, p.country = rest, true
	}
	if p.country && strings.HasPrefix(p.digits, "0") || len(p.digits) < leastNumber || len(p.digits) > mostNumber {
		return phone{}
	}
	return p
}

// same reports whether two numbers are one: the same digits, or, when one has
// no country's code, the same but for up to three digits of a code and a
// leading zero.
func (p phone) same(o phone) bool {
	switch {
	case p.digits == "" || o.digits == "":
		return false
	case p.digits == o.digits:
		return true
	case p.country == o.country:
		return false
	case o.country:
		return o.same(p)
	}
	national := strings.TrimPrefix(o.digits, "0")
	code := len(p.digits) - len(national)
	return len(national) >= leastNational && code >= 1 && code <= 3 && strings.HasSuffix(p.digits, national)
}

// spaced puts plain marks for those a keyboard does not have.
var spaced = strings.NewReplacer("\u00a0", " ", "\u2011", "-")

// isNumber says whether a text is a phone number or a short code.
func isNumber(text string) bool {
	return phoneOf(text).digits != "" || len(text) >= leastShort && len(text) < leastNumber && allDigits(text)
}

// sameNumber says whether a held text is the number somebody typed.
func sameNumber(held, typed string) bool {
	if p := phoneOf(typed); p.digits != "" {
		return p.same(phoneOf(held))
	}
	return strings.EqualFold(held, typed)
}
