package header

import (
	"strconv"
	"strings"
)

// Traceparent is the value of a traceparent field, which says to which trace a request belongs (W3C Trace Context, 3.2).
type Traceparent struct {
	Trace, Span string // ids in hexadecimal: the trace, and the sender's part of it, which is also called parent-id
	Flags       uint64 // 1: the sender may have recorded its part (sampled); 2: the id of the trace is random
}

// ParseTraceparent parses a traceparent field. It ignores what later versions add. ok is false if the field is invalid.
func ParseTraceparent(text string) (t Traceparent, ok bool) {
	const end = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	isHex := func(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
	if len(text) < end || text[2] != '-' || text[35] != '-' || text[52] != '-' || text[:2] == "ff" ||
		len(text) > end && (text[:2] == "00" || text[end] != '-') ||
		!isHex(text[:2]) || !isHex(text[3:35]) || !isHex(text[36:52]) || !isHex(text[53:end]) ||
		strings.Trim(text[3:35], "0") == "" || strings.Trim(text[36:52], "0") == "" {
		return t, false
	}
	flags, _ := strconv.ParseUint(text[53:end], 16, 8)
	return Traceparent{text[3:35], text[36:52], flags & 3}, true
}
