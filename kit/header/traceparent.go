package header

import "strconv"

// Traceparent is the value of a traceparent field, which says to which trace a request belongs (W3C Trace Context, 3.2).
type Traceparent struct {
	Trace, Span string // ids in hexadecimal: the trace, and the sender's part of it, which is also called parent-id
	Flags       uint64 // 1: the sender may have recorded its part (sampled); 2: the id of the trace is random
}

// ParseTraceparent parses a traceparent field. It ignores what later versions add. ok is false if the field is invalid.
func ParseTraceparent(text string) (t Traceparent, ok bool) {
	const end, zeros = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), "00000000000000000000000000000000"
	if len(text) < end || len(text) > end && (text[:2] == "00" || text[end] != '-') {
		return t, false
	}
	digits := uint8(0)
	for i := range end {
		digits += isHex[text[i]]
	}
	if digits != uint8(end-3) || text[2] != '-' || text[35] != '-' || text[52] != '-' {
		return t, false
	}
	if text[:2] == "ff" || text[3:35] == zeros || text[36:52] == zeros[:16] {
		return t, false
	}
	flags, _ := strconv.ParseUint(text[53:end], 16, 8)
	return Traceparent{text[3:35], text[36:52], flags & 3}, true
}

// isHex is 1 for hexadecimal digits in lower case.
var isHex = [256]uint8{'0': 1, '1': 1, '2': 1, '3': 1, '4': 1, '5': 1, '6': 1, '7': 1, '8': 1, '9': 1,
	'a': 1, 'b': 1, 'c': 1, 'd': 1, 'e': 1, 'f': 1}
