// Dates: the formats in which filters accept a time.

package compose

import (
	"cmp"
	"strings"
	"time"

	"understudy"
	"understudy/spec"
)

// span is the time that a date covers, in Unix seconds: a second, a day, a month or a year.
type span struct{ from, until int64 }

// parseSpan parses a date in one of the formats that APIs accept: a day, a month, a year, or a second in RFC 3339,
// similar formats or the American format. It drops fractions of a second. A time without a zone is UTC. After a
// second it accepts common abbreviations of zones.
func parseSpan(value string) (span, bool) {
	switch len(value) {
	case len("2006"):
		return parseWide(value, "2006", 1, 0, 0)
	case len("2006-01"):
		return parseWide(value, "2006-01", 0, 1, 0)
	case len(time.DateOnly):
		return parseWide(value, time.DateOnly, 0, 0, 1)
	}
	east := int64(0)
	if text, zone, ok := cutZone(value); ok {
		value, east = text, zone
	}
	if t, err := understudy.ParseTime(value, time.UTC, time.RFC3339, "2006-01-02T15:04:05Z0700"); err == nil {
		return oneSecond(t.Unix())
	}
	t, err := understudy.ParseTime(value, time.UTC, "2006-01-02T15:04:05", time.DateTime, "01/02/2006 15:04:05")
	at := t.Unix() - east
	return span{at, at + 1}, err == nil
}

// parseWide parses a date with a layout, and returns the span of the given number of years, months and days that
// begins with it.
func parseWide(value, form string, years, months, days int) (span, bool) {
	t, err := understudy.ParseTime(value, time.UTC, form)
	return span{t.Unix(), t.AddDate(years, months, days).Unix()}, err == nil
}

func oneSecond(at int64) (span, bool) { return span{at, at + 1}, true }

// cutZone removes the abbreviation of a zone from the end of a date. east is the zone's offset from UTC in seconds.
func cutZone(value string) (rest string, east int64, ok bool) {
	at := strings.LastIndexByte(value, ' ')
	if at < 1 {
		return value, 0, false
	}
	hours := int64(0)
	switch value[at+1:] {
	case "UTC", "GMT", "Z":
	case "EDT":
		hours = -4
	case "EST", "CDT":
		hours = -5
	case "CST", "MDT":
		hours = -6
	case "MST", "PDT":
		hours = -7
	case "PST":
		hours = -8
	default:
		return value, 0, false
	}
	return value[:at], hours * 3600, true
}

// Place returns the time, in Unix seconds, that decides a record's position in lists until a page has shown the
// record. It is the kind's clock field, or if that has no value, the kind's order field. It is 0 if neither has a value.
func Place(k *spec.Kind, body []byte) int64 {
	return cmp.Or(timeOf(k, k.Clock, body), timeOf(k, k.Order, body))
}

func timeOf(k *spec.Kind, name string, body []byte) int64 {
	if k.Field(name) == nil {
		return 0
	}
	return find(k, body, name).Unix()
}
