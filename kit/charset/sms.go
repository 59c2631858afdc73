// SMS: how many parts a short message is sent in, and why.

package charset

import (
	"strings"
	"unicode/utf16"
)

// SMS is how a text is sent as short messages (3GPP TS 23.038 and 23.040).
type SMS struct {
	UCS2     bool // the text does not fit GSM-7
	Units    int  // septets of GSM-7, or UTF-16 code units of UCS-2
	Segments int  // messages it is sent in; at least 1
	Outside  []Outside
}

// Outside is a character that forces a text into UCS-2.
type Outside struct {
	Char       rune
	Start, End int // bytes of the text
	At         int // its place among the characters of the text, from 1
}

// GSM7 is the GSM 7 bit default alphabet (TS 23.038, section 6.2.1). GSM7Twice are the characters
// of its extension table (6.2.1.1), which take two septets.
const (
	GSM7 = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ " +
		"!\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
	GSM7Twice = "\f^{}\\[~]|€"
)

// MaxOutside is how many characters CountSMS names.
const MaxOutside = 20

// CountSMS counts the parts of a text: 160 septets fit into one message and 153
// into each of several, 70 and 67 code units where one character is not in
// GSM-7. A surrogate pair and an escaped septet are never cut, so a part may
// hold one unit less. It names the first MaxOutside characters that force UCS-2.
func CountSMS(text string) SMS {
	var s SMS
	septets, units := make([]int, 0, len(text)), make([]int, 0, len(text))
	at := 0
	for i, r := range text {
		at++
		units = append(units, max(utf16.RuneLen(r), 1))
		switch {
		case strings.ContainsRune(GSM7, r):
			septets = append(septets, 1)
		case strings.ContainsRune(GSM7Twice, r):
			septets = append(septets, 2)
		default:
			s.UCS2 = true
			if len(s.Outside) < MaxOutside {
				s.Outside = append(s.Outside, Outside{Char: r, Start: i, End: i + len(string(r)), At: at})
			}
		}
	}
	if s.UCS2 {
		s.Units, s.Segments = parts(units, 70, 67)
	} else {
		s.Units, s.Segments = parts(septets, 160, 153)
	}
	return s
}

// parts counts units, and the messages they fill: all of them in one, or each
// in several; what belongs together is not cut.
func parts(sizes []int, one, each int) (total, messages int) {
	for _, n := range sizes {
		total += n
	}
	if total <= one {
		return total, 1
	}
	messages, room := 1, each
	for _, n := range sizes {
		if n > room {
			messages, room = messages+1, each
		}
		room -= n
	}
	return total, messages
}
