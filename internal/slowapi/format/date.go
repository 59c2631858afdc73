// Date: how dates in queries are parsed.
package format

import (
	"strings"
	"time"
)

// Span is the time that a date covers (a second, a day, a month or a year), in Unix seconds.
type Span struct{ From, Until int64 }

// zones are the accepted abbreviations of time zones, in seconds east of UTC.
var zones = map[string]int{
	"UTC": 0, "GMT": 0, "Z": 0,
	"EST": -5 * 3600, "EDT": -4 * 3600, "CST": -6 * 3600, "CDT": -5 * 3600,
	"MST": -7 * 3600, "MDT": -6 * 3600, "PST": -8 * 3600, "PDT": -7 * 3600,
}

// instants are the layouts of times to the second. A fraction after the seconds is accepted and ignored.
var instants = []string{
	"2006-01-02T15:04:05Z07:00",
	"2006-01-02T15:04:05Z0700",
	"2006-01-02T15:04:05",
	"2006-01-02 15:04:05",
	"01/02/2006 15:04:05",
}

// ParseDate parses a date in any layout that Twilio is known to accept (in twilio-go, twilio-python, twilio-node or its
// documentation). A date without a time means the whole day in UTC. A month or a year means the whole month or year.
func ParseDate(value string) (Span, bool) {
	for n, form := range []string{"2006-01-02", "2006-01", "2006"} {
		if t, err := time.Parse(form, value); err == nil {
			until := []time.Time{t.AddDate(0, 0, 1), t.AddDate(0, 1, 0), t.AddDate(1, 0, 0)}
			return Span{From: t.Unix(), Until: until[n].Unix()}, true
		}
	}
	east := 0
	if at := strings.LastIndexByte(value, ' '); at > 0 {
		if offset, known := zones[value[at+1:]]; known {
			value, east = value[:at], offset
		}
	}
	for _, form := range instants {
		if t, err := time.ParseInLocation(form, value, time.FixedZone("", east)); err == nil {
			return Span{From: t.Unix(), Until: t.Unix() + 1}, true
		}
	}
	return Span{}, false
}
