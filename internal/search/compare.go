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

// dialledNumber is a phone number without its marks.
type dialledNumber struct {
	digits   string
	national bool // no country code comes first; a zero in front is gone
}

// readNumber reads a phone number as people write it: any marks between the
// digits, a plus or 00 before the country code. False for anything else.
func readNumber(text string) (dialledNumber, bool) {
	var b strings.Builder
	plus := false
	for i, r := range text {
		switch {
		case i > 40:
			return dialledNumber{}, false
		case r >= '0' && r <= '9':
			b.WriteRune(r)
		case r == '+' && b.Len() == 0 && !plus:
			plus = true
		case strings.ContainsRune(" -./()\u00a0\u2011", r):
		default:
			return dialledNumber{}, false
		}
	}
	digits := b.String()
	if rest, international := strings.CutPrefix(digits, "00"); international && !plus {
		digits, plus = rest, true
	}
	if !plus && len(digits) >= wholeDigits {
		return dialledNumber{strings.TrimLeft(digits, "0"), true}, len(digits) <= mostDigits+2
	}
	return dialledNumber{digits, false}, len(digits) >= 3 && len(digits) <= mostDigits+2
}

// sameNumber says whether a held text is the number somebody typed. One typed
// without a country code is the same as any whose last digits it is.
func sameNumber(held, typed string) bool {
	want, ok := readNumber(typed)
	if !ok {
		return false
	}
	if i := strings.IndexByte(held, ':'); i > 0 {
		held = held[i+1:] // the channel it is of
	}
	have, ok := readNumber(held)
	switch {
	case !ok || want.digits == "":
		return false
	case want.national:
		return strings.HasSuffix(have.digits, want.digits)
	}
	return have.digits == want.digits
}
