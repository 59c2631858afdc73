// This file groups rows by hour, day, week or month in a time zone.

package aggregate

import (
	"math"
	"slices"
	"time"

	"understudy"
)

// Spans returns the names of the time spans by which rows can be grouped.
func Spans() []string { return []string{"hour", "day", "week", "month"} }

// IsSpan reports whether a name is in Spans.
func IsSpan(name string) bool { return slices.Contains(Spans(), name) }

// noTime is the group key of rows without a time.
const noTime = math.MinInt64

// Calendar returns a dimension that groups rows by hour, day, week or month in a zone. at returns the time of a row
// in Unix seconds, or 0 if it has none. The text of a key is 2006-01-02T15:00 (with the zone's offset), 2006-01-02,
// the Monday of a week, or 2006-01.
func Calendar(span string, zone *time.Location, at func(row int32) int64) Dimension {
	var begin, end int64 // the time span of the previous row, kept because neighbouring rows often share it
	return Dimension{
		Key: func(row int32) int64 {
			t := at(row)
			if t == 0 {
				return noTime
			}
			if t < begin || t >= end {
				from, to := spanBounds(span, time.Unix(t, 0).In(zone))
				begin, end = from.Unix(), to.Unix()
			}
			return begin
		},
		Text: func(key int64) string {
			if key == noTime {
				return ""
			}
			return time.Unix(key, 0).In(zone).Format(layout(span))
		},
	}
}

func layout(span string) string {
	switch span {
	case "hour":
		return "2006-01-02T15:04Z07:00"
	case "month":
		return "2006-01"
	}
	return time.DateOnly
}

// spanBounds returns the beginning and the end of the hour, day, week or month that contains t.
func spanBounds(span string, t time.Time) (from, to time.Time) {
	day := func(n int) time.Time { return time.Date(t.Year(), t.Month(), t.Day()+n, 0, 0, 0, 0, t.Location()) }
	switch span {
	case "hour":
		from = t.Add(-time.Duration(t.Minute())*time.Minute - time.Duration(t.Second())*time.Second)
		return from, from.Add(time.Hour)
	case "week":
		monday := -(int(t.Weekday()) + 6) % 7
		return day(monday), day(monday + 7)
	case "month":
		month := func(n int) time.Time {
			return time.Date(t.Year(), t.Month()+time.Month(n), 1, 0, 0, 0, 0, t.Location())
		}
		return month(0), month(1)
	}
	return day(0), day(1)
}

// ParseSpan returns the first and the last minute, in UTC, of the hour, day, week or month that a text names. ok is
// false for any other text.
func ParseSpan(span, text string, zone *time.Location) (from, to time.Time, ok bool) {
	t, err := understudy.ParseTime(text, zone, layout(span))
	if err != nil {
		return from, to, false
	}
	from, to = spanBounds(span, t.In(zone))
	return from.UTC(), to.Add(-time.Minute).UTC(), true
}
