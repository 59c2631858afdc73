// Masks: what is shown of a text that is neither hidden nor seen.

package access

import (
	"understudy"
	"understudy/kit/e164"
)

// mask stands for what is not shown, whatever its length.
const mask = "********"

// maxMasked is the most bytes a masked text has.
const maxMasked = max(len(mask)+len("1234"), len(hashPrefix)+numberHash)

// appendMasked appends what a node's level shows of a text. Nothing in it needs an
// escape in JSON. A text is "" too where there is a value, so that length tells nothing.
func (n *node) appendMasked(dst []byte, h *Hasher, text string) []byte {
	switch n.level {
	case Hash:
		return h.append(dst, text, n.phone)
	case Country:
		return appendCountry(append(dst, mask...), text)
	}
	return appendLast4(append(dst, mask...), text)
}

// appendCountry appends the country of a number that begins with a country code; of any
// other text nothing.
func appendCountry(dst []byte, text string) []byte {
	if p := understudy.ReadPhone(text); p.Country {
		return append(dst, e164.Country(p.Digits)...)
	}
	return dst
}

// appendLast4 appends the last four digits of a number that has at least 8: digits with
// nothing but the marks people write between them. Of any other text it appends nothing.
func appendLast4(dst []byte, text string) []byte {
	var last [4]byte
	digits := 0
	for i := range len(text) {
		switch c := text[i]; {
		case '0' <= c && c <= '9':
			copy(last[:], last[1:])
			last[3] = c
			digits++
		case c == '+' && i == 0, c == ' ', c == '-', c == '.', c == '(', c == ')', c == '/':
		default:
			return dst
		}
	}
	if digits < 8 {
		return dst
	}
	return append(dst, last[:]...)
}
