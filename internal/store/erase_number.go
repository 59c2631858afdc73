// Numbers: one person's number in the ways people and programs write it.

package store

import "strings"

// leastNumber and mostNumber bound the digits of a phone number (E.164 allows
// 15; short codes are no person's).
const (
	leastNumber = 7
	mostNumber  = 15
)

// number is a phone number: its digits, and whether they begin with the code of
// a country.
type number struct {
	digits  string
	country bool
}

// numberOf reads a number: +1 (415) 555-0100, 0014155550100, 415.555.0100,
// tel:+14155550100, whatsapp:+14155550100, sip:+14155550100@example.com. Of
// anything else there are no digits.
func numberOf(text string) number {
	text = strings.TrimSpace(text)
	if i := strings.IndexByte(text, ':'); i >= 0 && !strings.ContainsAny(text[:i], "0123456789+") {
		text = text[i+1:]
	}
	text, _, _ = strings.Cut(text, "@")
	text, _, _ = strings.Cut(text, ";")
	var n number
	digits := make([]byte, 0, mostNumber+3)
	for i := range len(text) {
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			if digits = append(digits, c); len(digits) > mostNumber+2 {
				return number{}
			}
		case c == '+' && len(digits) == 0:
			n.country = true
		case strings.IndexByte(" ().-/", c) < 0:
			return number{}
		}
	}
	n.digits = string(digits)
	if rest, ok := strings.CutPrefix(n.digits, "00"); ok && !n.country {
		n.digits, n.country = rest, true
	}
	if n.country && strings.HasPrefix(n.digits, "0") {
		return number{} // no country's code begins so
	}
	if len(n.digits) < leastNumber || len(n.digits) > mostNumber {
		return number{}
	}
	return n
}

// leastNational is how many digits a number without a country's code must have
// to be found among those that have one.
const leastNational = 9

// same reports whether two numbers are one: the same digits, or, when one has
// no country's code, the same but for up to three digits of a code and a
// leading zero.
func (n number) same(m number) bool {
	switch {
	case n.digits == "" || m.digits == "":
		return false
	case n.digits == m.digits:
		return true
	case n.country == m.country:
		return false
	case m.country:
		return m.same(n)
	}
	national := strings.TrimPrefix(m.digits, "0")
	code := len(n.digits) - len(national)
	return len(national) >= leastNational && code >= 1 && code <= 3 && strings.HasSuffix(n.digits, national)
}

// numbersIn yields the digits of everything in a text that may be a number.
func numbersIn(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := 0; i < len(text); {
			if !digit(text[i]) {
				i++
				continue
			}
			end, last := i, i
			for end < len(text) && (digit(text[end]) || strings.IndexByte(" ().-/", text[end]) >= 0) {
				if digit(text[end]) {
					last = end
				}
				end++
			}
			n := numberOf(text[i : last+1])
			if n.digits != "" && !yield(n.digits) {
				return
			}
			i = end
		}
	}
}

func digit(c byte) bool { return c >= '0' && c <= '9' }
