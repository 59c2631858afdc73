// Clock: the time that a field's text means.

package spec

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"understudy"
)

// How the types write time, the usual form first.
var (
	rfc2822Forms = []string{"Mon, 02 Jan 2006 15:04:05 -0700", "Mon, 2 Jan 2006 15:04:05 -0700", "2 Jan 2006 15:04:05 -0700", time.RFC1123}
	isoForms     = []string{time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02 15:04:05", time.DateOnly}
	dateForms    = []string{time.DateOnly}
)

// ParseInstant reads a point in time from a parameter: RFC 3339, the same without a
// zone (UTC) or without the time of day (the day's beginning). Anything else is
// ErrInvalid.
func ParseInstant(text string) (time.Time, error) {
	for _, form := range []string{
		time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, "2006-01-02 15:04", time.DateOnly,
	} {
		if t, err := time.Parse(form, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%w: %q is no time; write 2006-01-02T15:04:05Z or 2006-01-02", understudy.ErrInvalid, understudy.Clip(text))
}

// IsTime reports whether fields of a type tell a moment or a day.
func IsTime(typ string) bool {
	switch typ {
	case TypeRFC2822, TypeISO, TypeEpoch, TypeMillis, TypeDate:
		return true
	}
	return false
}

// InNumbers reports whether a type writes times as numbers.
func InNumbers(typ string) bool { return typ == TypeEpoch || typ == TypeMillis }

// maxClock bounds a text that may be a time, in bytes.
const maxClock = 64

// Unix is the time that a text means as a field of that type, in Unix seconds. It is 0
// for a type or a text that is no time.
func Unix(typ string, text []byte) int64 {
	if len(text) > maxClock {
		return 0
	}
	switch typ {
	case TypeRFC2822:
		return parseTime(text, rfc2822Forms)
	case TypeISO:
		return parseTime(text, isoForms)
	case TypeDate:
		return parseTime(text, dateForms)
	case TypeEpoch, TypeMillis:
		whole, _, _ := bytes.Cut(text, []byte("."))
		n, err := strconv.ParseInt(string(whole), 10, 64)
		if err != nil {
			return 0
		}
		if typ == TypeMillis {
			n /= 1000
		}
		return n
	}
	return 0
}

func parseTime(text []byte, forms []string) int64 {
	for _, form := range forms {
		if t, err := time.Parse(form, string(text)); err == nil {
			return t.Unix()
		}
	}
	return 0
}
