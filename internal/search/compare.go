// Compare: decimals and phone numbers, by what they mean.

package search

import (
	"math"
	"strconv"
	"strings"

	"understudy"
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

// leastShort is how many digits a short code has.
const leastShort = 3

// spaced puts plain marks for those a keyboard does not have.
var spaced = strings.NewReplacer("\u00a0", " ", "\u2011", "-")

// isNumber says whether a text is a phone number or a short code.
func isNumber(text string) bool {
	return understudy.ReadPhone(text).Digits != "" || len(text) >= leastShort && len(text) < understudy.LeastPhone && allDigits(text)
}

// sameNumber says whether a held text is the number somebody typed.
func sameNumber(held, typed string) bool {
	if p := understudy.ReadPhone(typed); p.Digits != "" {
		return p.Same(understudy.ReadPhone(held))
	}
	return strings.EqualFold(held, typed)
}
