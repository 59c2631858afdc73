// Phone: a phone number, in the ways people and programs write it.

package understudy

import (
	"strings"
	"unicode"
)

// LeastPhone and MostPhone bound the digits of a phone number. E.164 allows 15. Short
// codes belong to no person.
const (
	LeastPhone = 7
	MostPhone  = 15
)

// Phone is a phone number: its digits, and whether they begin with the code of
// a country. The zero value is none.
type Phone struct {
	Digits  string
	Country bool
}

// ReadPhone reads a number: +1 (415) 555-0100, 0014155550100, 415.555.0100,
// tel:+14155550100, whatsapp:+14155550100, sip:+14155550100@example.com, +44 (0)20 5550 0100,
// and these in the digits of another script. Another text has no digits.
func ReadPhone(text string) Phone {
	text = strings.TrimSpace(PlainNumber(text))
	if i := strings.IndexByte(text, ':'); i >= 0 && !strings.ContainsAny(text[:i], "0123456789+") {
		text = text[i+1:]
	}
	text, _, _ = strings.Cut(text, "@")
	text, _, _ = strings.Cut(text, ";")
	if strings.HasPrefix(text, "+") || strings.HasPrefix(text, "00") {
		text = strings.Replace(text, "(0)", "", 1) // it is dialled within the country alone
	}
	var p Phone
	digits := make([]byte, 0, MostPhone+3)
	for i := range len(text) {
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			if digits = append(digits, c); len(digits) > MostPhone+2 {
				return Phone{}
			}
		case c == '+' && len(digits) == 0:
			p.Country = true
		case strings.IndexByte(" ().-/", c) < 0:
			return Phone{}
		}
	}
	p.Digits = string(digits)
	if rest, ok := strings.CutPrefix(p.Digits, "00"); ok && !p.Country {
		p.Digits, p.Country = rest, true
	}
	if p.Country && strings.HasPrefix(p.Digits, "0") {
		return Phone{} // no country's code begins so
	}
	if len(p.Digits) < LeastPhone || len(p.Digits) > MostPhone {
		return Phone{}
	}
	return p
}

// PlainNumber writes the digits, the plus, the dashes and the blanks of any script in ASCII, and takes out what is not
// seen, such as the marks of direction that are pasted with a number. Other characters stay.
func PlainNumber(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) < 0 {
		return text
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r <= unicode.MaxASCII:
			return r
		case unicode.Is(unicode.Cf, r):
			return -1
		case unicode.Is(unicode.Nd, r):
			return digitOf(r)
		case unicode.Is(unicode.Pd, r) || r == '\u2212':
			return '-'
		case unicode.Is(unicode.Zs, r):
			return ' '
		}
		if i := strings.IndexRune("\uff0b\u207a\ufe62\uff08\uff09\uff0e\uff0f", r); i >= 0 {
			return rune("+++()./"[i/3])
		}
		return r
	}, text)
}

// digitOf returns the ASCII digit for one of another script. Digits of a script stand together, from zero to nine.
func digitOf(r rune) rune {
	zero := r
	for zero > 0 && unicode.Is(unicode.Nd, zero-1) {
		zero--
	}
	return '0' + (r-zero)%10
}

// NationalPhone is how many digits a number without a country's code must have
// to be found among those that have one.
const NationalPhone = 9

// Same reports whether two numbers are the same. When one has no country's code, up to
// three digits of a code and a leading zero do not count.
func (p Phone) Same(o Phone) bool {
	switch {
	case p.Digits == "" || o.Digits == "":
		return false
	case p.Digits == o.Digits:
		return true
	case p.Country == o.Country:
		return false
	case o.Country:
		return o.Same(p)
	}
	national := strings.TrimPrefix(o.Digits, "0")
	code := len(p.Digits) - len(national)
	return len(national) >= NationalPhone && code >= 1 && code <= 3 && strings.HasSuffix(p.Digits, national)
}
