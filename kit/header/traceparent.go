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
	for i, c := range []byte(text[:end]) {
		isHex, isDash := '0' <= c && c <= '9' || 'a' <= c && c <= 'f', i == 2 || i == 35 || i == 52
		if isHex == isDash || isDash && c != '-' {
			return t, false
		}
	}
	if text[:2] == "ff" || text[3:35] == zeros || text[36:52] == zeros[:16] {
		return t, false
	}
	flags, _ := strconv.ParseUint(text[53:end], 16, 8)
	return Traceparent{text[3:35], text[36:52], flags & 3}, true
}
