// SMS: counts the parts of a short message and finds the characters that make it longer.

package charset

import (
	"strings"
	"unicode/utf16"
)

// SMS describes how a text is sent as short messages (3GPP TS 23.038 and 23.040).
type SMS struct {
	UCS2     bool          // whether the text needs UCS-2 because a character is not in GSM-7
	Units    int           // the length in septets of GSM-7, or in UTF-16 code units of UCS-2
	Segments int           // the number of messages that are sent, at least 1
	NonGSM7  []NonGSM7Char // the first MaxNonGSM7 characters that force UCS-2
}

// NonGSM7Char is a character that is not in GSM-7 and so forces a text into UCS-2.
type NonGSM7Char struct {
	Char       rune
	Start, End int // byte offsets of the character in the text
	At         int // the position of the character among the characters of the text, from 1
}

// GSM7 is the GSM 7-bit default alphabet (TS 23.038, section 6.2.1). GSM7Extension holds the characters of its
// extension table (6.2.1.1), which take two septets each.
const (
	GSM7 = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ " +
		"!\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
	GSM7Extension = "\f^{}\\[~]|€"
)

// MaxNonGSM7 is the maximum number of characters that CountSMS reports in NonGSM7.
const MaxNonGSM7 = 20

// CountSMS counts the messages in which a text is sent. In GSM-7 a single message has 160 septets, and each of several
// messages 153. In UCS-2 these limits are 70 and 67 code units. A surrogate pair and an escaped septet are never cut,
// so a message may be one unit shorter.
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
		case strings.ContainsRune(GSM7Extension, r):
			septets = append(septets, 2)
		default:
			s.UCS2 = true
			if len(s.NonGSM7) < MaxNonGSM7 {
				s.NonGSM7 = append(s.NonGSM7, NonGSM7Char{Char: r, Start: i, End: i + len(string(r)), At: at})
			}
		}
	}
	if s.UCS2 {
		s.Units, s.Segments = countParts(units, 70, 67)
	} else {
		s.Units, s.Segments = countParts(septets, 160, 153)
	}
	return s
}

// countParts returns the sum of sizes and the number of messages that a text of these characters needs. A single
// message has room for single units, and each of several messages for each units. A character is never cut.
func countParts(sizes []int, single, each int) (total, messages int) {
	for _, n := range sizes {
		total += n
	}
	if total <= single {
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
