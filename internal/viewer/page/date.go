// Dates: read as upstream writes them, shown as people say them, and turned
// from a browser's local time into UTC before a key is made.

package page

import (
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// ParseDate reads a value of one of the date types. A plain date is that day's
// midnight in UTC, dateOnly then is true.
func ParseDate(kind, text string) (t time.Time, dateOnly, ok bool) {
	layouts := []string{time.RFC3339}
	switch kind {
	case spec.TypeRFC2822:
		layouts = []string{time.RFC1123Z, "Mon, 2 Jan 2006 15:04:05 -0700", time.RFC3339}
	case spec.TypeEpoch, spec.TypeMillis:
		sec := spec.Unix(kind, []byte(text))
		if (sec == 0 && text != "0") || sec < -1<<40 || sec > 1<<40 {
			return time.Time{}, false, false
		}
		return time.Unix(sec, 0).UTC(), false, true
	}
	if t, err := understudy.ParseTime(text, time.UTC, layouts...); err == nil {
		return t, false, true
	}
	t, err := understudy.ParseTime(text, time.UTC, time.DateOnly)
	return t, err == nil, err == nil
}

// When is a moment as a page shows it.
type When struct {
	Text  string // "Today 12:03"
	Stamp string // for the datetime attribute: RFC 3339
	Exact string // "Mon, 1 Jun 2026 12:03:10 CEST (UTC+02:00), 10:03:10 UTC"
}

// Say puts a moment into words for the reader. Exact text has the
// seconds and the zone; seconds asks for them in the words too.
func (c *Clock) Say(t time.Time, seconds bool) When {
	l := t.In(c.Zone)
	clock := "15:04"
	if seconds {
		clock = "15:04:05"
	}
	return When{
		Text:  SayDay(l, c.Start.In(c.Zone)) + " " + l.Format(clock),
		Stamp: l.Format(time.RFC3339),
		Exact: l.Format("Mon, 2 Jan 2006 15:04:05 ") + zoneName(l) + alsoUTC(l),
	}
}

// alsoUTC is the same moment in UTC, "" where that is the zone itself.
func alsoUTC(l time.Time) string {
	u := l.UTC()
	switch _, offset := l.Zone(); {
	case offset == 0:
		return ""
	case u.YearDay() != l.YearDay():
		return u.Format(", 2 Jan 15:04:05 UTC")
	}
	return u.Format(", 15:04:05 UTC")
}

// sayShort puts a moment into words for a narrow column: of today the time alone. Of another day
// it has seconds only where they are asked for.
func (c *Clock) sayShort(t time.Time, seconds bool) When {
	w := c.Say(t, true)
	l, today := t.In(c.Zone), c.Start.In(c.Zone)
	switch {
	case l.Format(time.DateOnly) == today.Format(time.DateOnly):
		w.Text = l.Format("15:04:05")
	case l.Year() == today.Year() && seconds:
		w.Text = l.Format("2 Jan 15:04:05")
	case l.Year() == today.Year():
		w.Text = l.Format("2 Jan 15:04")
	default:
		w.Text = l.Format("2 Jan 2006")
	}
	return w
}

// sayDate is say for a plain date, which has no zone.
func sayDate(t, now time.Time, zone *time.Location) When {
	today := now.In(zone)
	// the reader's calendar day, in the zone plain dates are written in
	day := time.Date(today.Year(), today.Month(), today.Day(), 0, 0, 0, 0, time.UTC)
	return When{Text: SayDay(t, day), Stamp: t.Format(time.DateOnly), Exact: t.Format("Monday, 2 January 2006")}
}

// SayDay is the day of a moment in words.
func SayDay(l, now time.Time) string {
	ly, lm, ld := l.Date()
	y, m, d := now.Date()
	if ly == y && lm == m && ld == d {
		return "Today"
	}
	if py, pm, pd := now.AddDate(0, 0, -1).Date(); ly == py && lm == pm && ld == pd {
		return "Yesterday"
	}
	if ly == y {
		return l.Format("Mon 2 Jan")
	}
	return l.Format("2 Jan 2006")
}

// zoneName is "CEST (UTC+02:00)", "UTC" for UTC itself.
func zoneName(t time.Time) string {
	name, offset := t.Zone()
	if name == "UTC" && offset == 0 {
		return "UTC"
	}
	if strings.HasPrefix(name, "+") || strings.HasPrefix(name, "-") {
		return "UTC" + t.Format("-07:00")
	}
	return name + " (UTC" + t.Format("-07:00") + ")"
}

// The forms browsers give datetime-local and date inputs.
var localForms = []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05"}

// ParseLocal reads what a datetime-local input gives, in zone. A time that a
// zone skips or has twice is taken as time.Date takes it.
func ParseLocal(text string, zone *time.Location) (time.Time, bool) {
	t, err := understudy.ParseTime(text, zone, localForms...)
	return t, err == nil
}

// ParseAgo reads a moment before now as people ask for it: "today", the beginning of the day in zone; "-7d", the
// beginning of the day seven days before; "-1h", an hour ago, to the minute. So the same words mean the same moment for a
// while, and lists since then are the same list.
func ParseAgo(text string, now time.Time, zone *time.Location) (time.Time, bool) {
	const day = 24 * time.Hour
	ago := time.Duration(0)
	if text != "today" {
		length, ok := strings.CutPrefix(text, "-")
		d, err := understudy.ParseDuration(length)
		if !ok || err != nil || d < 0 {
			return time.Time{}, false
		}
		if ago = d; d < day {
			return now.Add(-d).Truncate(time.Minute), true
		}
	}
	l := now.In(zone)
	return time.Date(l.Year(), l.Month(), l.Day()-int(ago/day), 0, 0, 0, 0, zone), true
}

// WriteDate is a moment as a filter of that type takes it: RFC 3339 in UTC,
// the UTC day for plain dates, Unix seconds.
func WriteDate(kind string, t time.Time) string {
	switch kind {
	case spec.TypeDate:
		return t.UTC().Format(time.DateOnly)
	case spec.TypeEpoch:
		return strconv.FormatInt(t.Unix(), 10)
	case spec.TypeMillis:
		return strconv.FormatInt(t.UnixMilli(), 10)
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}

// LongAgo is a length of time in the largest unit that fits: "12 s", "3 min".
func LongAgo(d time.Duration) string {
	switch {
	case d < time.Second:
		return "less than 1 s"
	case d < 2*time.Minute:
		return strconv.Itoa(int(d/time.Second)) + " s"
	case d < 2*time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + " min"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + " h"
	}
	return strconv.Itoa(int(d/(24*time.Hour))) + " days"
}

// Millis is a length of time for footers: "0.41 ms", "12 ms", "1.02 s".
func Millis(d time.Duration) string {
	ms := float64(d) / 1e6
	switch {
	case d >= time.Second:
		return strconv.FormatFloat(ms/1000, 'f', 2, 64) + " s"
	case ms >= 10:
		return strconv.FormatFloat(ms, 'f', 0, 64) + " ms"
	case ms >= 1:
		return strconv.FormatFloat(ms, 'f', 1, 64) + " ms"
	}
	return strconv.FormatFloat(ms, 'f', 2, 64) + " ms"
}

// ShownTime returns the field and the time that a row shows: its clock, else the one by which lists order it, or the first it has.
// f is nil when the caller sees none.
func ShownTime(k *plan.Kind, row access.Row) (f *spec.Field, t time.Time) {
	first := [...]*spec.Field{k.Spec.Field(k.Spec.Clock), k.Spec.Field(k.Spec.Order)}
	for _, fields := range [...][]*spec.Field{first[:], k.Spec.Fields} {
		for _, f := range fields {
			if f == nil || !spec.IsTime(f.Type) || row.Field(f.Name).State != access.Seen {
				continue
			}
			if t, _, ok := ParseDate(f.Type, row.Field(f.Name).Text); ok {
				return f, t
			}
		}
	}
	return nil, time.Time{}
}

// TimeOf is the time of a record by its clock field; ok is false when the
// caller does not see it, or it is null.
func TimeOf(k *plan.Kind, row access.Row) (t time.Time, ok bool) {
	if f, t := ShownTime(k, row); f != nil && f.Name == k.Spec.Clock {
		return t, true
	}
	return time.Time{}, false
}

// Earlier is the first of two moments.
func Earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Later is the last of two moments.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Moment is a moment in words for the reader, without the word today; nil for the zero time.
func (c *Clock) Moment(t time.Time) *When {
	if t.IsZero() {
		return nil
	}
	w := c.Say(t, true)
	w.Text = strings.TrimPrefix(w.Text, "Today ")
	return &w
}
