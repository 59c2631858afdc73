// Clock: converts the text of a time field to a time.

package spec

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"understudy"
)

// The layouts of times for each type. The usual layout is the first.
var (
	rfc2822Forms = []string{"Mon, 02 Jan 2006 15:04:05 -0700", "Mon, 2 Jan 2006 15:04:05 -0700", "2 Jan 2006 15:04:05 -0700",
		"Mon, 2 Jan 2006 15:04 -0700", "2 Jan 2006 15:04 -0700"}
	isoForms = []string{time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07", "2006-01-02T15:04:05", time.DateOnly,
		"2006-01-02T15:04Z07:00", "2006-01-02T15:04Z0700", "2006-01-02T15:04Z07", "2006-01-02T15:04",
		"20060102T150405Z0700", "20060102T150405Z07", "20060102T150405", "20060102T1504Z0700", "20060102T1504", "20060102"}
	dateForms = []string{time.DateOnly}
)

// ParseInstant parses a time given as a parameter: RFC 3339, also without a zone (UTC) or without the time of
// day (start of the day). Anything else is ErrInvalid.
func ParseInstant(text string) (time.Time, error) {
	t, err := understudy.ParseTime(text, time.UTC, time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime,
		"2006-01-02 15:04", time.DateOnly)
	if err != nil {
		return t, fmt.Errorf("%w: %q is not a time; write 2006-01-02T15:04:05Z or 2006-01-02", understudy.ErrInvalid, understudy.Clip(text))
	}
	return t.UTC(), nil
}

// IsTimeType reports whether fields of a type contain a time or a day.
func IsTimeType(typ string) bool {
	switch typ {
	case TypeRFC2822, TypeISO, TypeEpoch, TypeMillis, TypeDate:
		return true
	}
	return false
}

// IsNumericTime reports whether a type writes times as numbers.
func IsNumericTime(typ string) bool { return typ == TypeEpoch || typ == TypeMillis }

// maxTimeText is the maximum length in bytes of a text that is parsed as a time.
const maxTimeText = 64

// Unix converts the text of a field with that type to Unix seconds. It returns 0 if the type or the text is not a time.
func Unix(typ string, text []byte) int64 {
	if len(text) > maxTimeText {
		return 0
	}
	switch typ {
	case TypeRFC2822, TypeISO, TypeDate:
		if t, ok := Time(typ, string(text)); ok {
			return t.Unix()
		}
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

// Time converts the text of a field with that type to a time, with all its digits. It returns false if the type is not one
// of times as texts, or if the text is not a time.
func Time(typ, text string) (time.Time, bool) {
	switch {
	case len(text) > maxTimeText:
	case typ == TypeRFC2822:
		return parseTime(text, rfc2822Forms, numericZone)
	case typ == TypeISO:
		return parseTime(text, isoForms, normalizeISO)
	case typ == TypeDate:
		return parseTime(text, dateForms, nil)
	}
	return time.Time{}, false
}

// parseTime parses a text by one of the layouts. If no layout fits and rewrite is not nil, it tries again with the text
// that rewrite returns.
func parseTime(text string, forms []string, rewrite func(string) string) (time.Time, bool) {
	t, err := understudy.ParseTime(text, time.UTC, forms...)
	if err != nil && rewrite != nil {
		return parseTime(rewrite(strings.Clone(text)), forms, nil) // a clone, so that text itself need not be on the heap
	}
	return t, err == nil
}

// zones maps the zone names of RFC 2822, 4.3, to offsets.
var zones = map[string]string{"UT": "+0000", "GMT": "+0000", "UTC": "+0000", "Z": "+0000", "EST": "-0500", "EDT": "-0400", "CST": "-0600",
	"CDT": "-0500", "MST": "-0700", "MDT": "-0600", "PST": "-0800", "PDT": "-0700"}

// numericZone replaces a zone name by its offset and removes a comment after it.
func numericZone(text string) string {
	text, _, _ = strings.Cut(text, " (")
	i := strings.LastIndexByte(text, ' ')
	if offset, ok := zones[strings.ToUpper(text[i+1:])]; ok && i >= 0 {
		return text[:i+1] + offset
	}
	return text
}

// normalizeISO returns an ISO 8601 time with capital T and Z, a T between date and time, and no space before the zone.
func normalizeISO(text string) string {
	text = strings.ToUpper(strings.TrimSpace(text))
	if i := strings.IndexByte(text, ' '); i == len(time.DateOnly) {
		text = text[:i] + "T" + text[i+1:]
	}
	for _, name := range []string{"UTC", "GMT"} {
		if utc, ok := strings.CutSuffix(text, name); ok {
			text = utc + "Z"
		}
	}
	return strings.ReplaceAll(text, " ", "")
}
