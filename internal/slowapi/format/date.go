// Date: parses the dates of queries.
package format

import (
	"strings"
	"time"
)

// Span is the period that a date covers, in Unix seconds: a day, a month or a second.
type Span struct{ From, Until int64 }

// zones are the accepted abbreviations of time zones, in seconds east of UTC.
var zones = map[string]int{
	"UTC": 0, "GMT": 0, "Z": 0,
	"EST": -5 * 3600, "EDT": -4 * 3600, "CST": -6 * 3600, "CDT": -5 * 3600,
	"MST": -7 * 3600, "MDT": -6 * 3600, "PST": -8 * 3600, "PDT": -7 * 3600,
}

// instants are the layouts that name a second. In each of them a fraction may follow the seconds; it is ignored.
var instants = []string{
	"2006-01-02T15:04:05Z07:00",
	"2006-01-02T15:04:05Z0700",
	"2006-01-02T15:04:05",
	"2006-01-02 15:04:05",
	"01/02/2006 15:04:05",
}

// ParseDate parses a date in any layout that Twilio is known to accept (twilio-go, twilio-python, twilio-node,
// the examples of the published documents). A date without a time means that whole UTC day; a month or a year
// means the whole month or year.
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
