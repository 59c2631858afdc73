// Dates: how the viewer parses them as upstream or a browser writes them, and how it shows them in words.

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

// ParseDate parses a value of one of the spec's date types. A date without a time becomes midnight in UTC, and
// dateOnly is then true.
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
	Text  string // the moment in words, such as "Today 12:03"
	Stamp string // the moment in RFC 3339, for the datetime attribute
	Exact string // such as "Mon, 1 Jun 2026 12:03:10 CEST (UTC+02:00), 10:03:10 UTC"
}

// FormatMoment writes a moment in words in the reader's zone. Exact always has the seconds and the zone. Text has the seconds
// only if seconds is true.
func (c *Clock) FormatMoment(t time.Time, seconds bool) When {
	l := t.In(c.Zone)
	clock := "15:04"
	if seconds {
		clock = "15:04:05"
	}
	return When{
		Text:  FormatDay(l, c.Start.In(c.Zone)) + " " + l.Format(clock),
		Stamp: l.Format(time.RFC3339),
		Exact: l.Format("Mon, 2 Jan 2006 15:04:05 ") + zoneName(l) + utcSuffix(l),
	}
}

// utcSuffix returns the moment in UTC as an addition to a text, or "" if the zone itself is UTC.
func utcSuffix(l time.Time) string {
	u := l.UTC()
	switch _, offset := l.Zone(); {
	case offset == 0:
		return ""
	case u.YearDay() != l.YearDay():
		return u.Format(", 2 Jan 15:04:05 UTC")
	}
	return u.Format(", 15:04:05 UTC")
}

// formatShort writes a moment in words for a narrow column. It writes only the time for a moment of today. On another
// day of this year it writes seconds only if seconds is true.
func (c *Clock) formatShort(t time.Time, seconds bool) When {
	w := c.FormatMoment(t, true)
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

// formatDate writes a plain date, which has no time zone, in words.
func formatDate(t, now time.Time, zone *time.Location) When {
	today := now.In(zone)
	// the current day in the reader's zone, as midnight in UTC, because dates without a time are in UTC too
	day := time.Date(today.Year(), today.Month(), today.Day(), 0, 0, 0, 0, time.UTC)
	return When{Text: FormatDay(t, day), Stamp: t.Format(time.DateOnly), Exact: t.Format("Monday, 2 January 2006")}
}

// FormatDay returns the day of a moment in words, such as "Today".
func FormatDay(l, now time.Time) string {
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

// zoneName returns the zone of a moment, such as "CEST (UTC+02:00)", or "UTC".
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

// localForms are the layouts in which browsers send datetime-local and date inputs.
var localForms = []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05"}

// ParseLocal parses the value of a datetime-local input in a zone. A time that the zone skips or repeats is treated
// as time.Date treats it.
func ParseLocal(text string, zone *time.Location) (time.Time, bool) {
	t, err := understudy.ParseTime(text, zone, localForms...)
	return t, err == nil
}

// ParseRelative parses a moment relative to now: "today" is the start of the day in zone, "-7d" the start of the day seven
// days before, and "-1h" the minute that began an hour ago. The same words mean the same moment for some time, so
// that lists filtered by it can be cached.
func ParseRelative(text string, now time.Time, zone *time.Location) (time.Time, bool) {
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

// WriteDate returns a moment in the form of a filter's type: RFC 3339 in UTC, the day in UTC, or Unix seconds or milliseconds.
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

// FormatDuration returns a duration in the largest suitable unit, such as "12 s" or "3 min".
func FormatDuration(d time.Duration) string {
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

// FormatMillis returns a short duration such as "0.41 ms", "12 ms" or "1.02 s".
func FormatMillis(d time.Duration) string {
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

// ShownTime returns the field and the time that a row shows. It prefers the kind's clock field, then the field that
// orders its lists, then any field of a time. f is nil if the caller may see none of them.
func ShownTime(k *plan.Kind, row access.Row) (f *spec.Field, t time.Time) {
	first := [...]*spec.Field{k.Spec.Field(k.Spec.Clock), k.Spec.Field(k.Spec.Order)}
	for _, fields := range [...][]*spec.Field{first[:], k.Spec.Fields} {
		for _, f := range fields {
			if f == nil || !spec.IsTimeType(f.Type) || row.Field(f.Name).State != access.Seen {
				continue
			}
			if t, _, ok := ParseDate(f.Type, row.Field(f.Name).Text); ok {
				return f, t
			}
		}
	}
	return nil, time.Time{}
}

// ClockTime returns the time in a record's clock field. ok is false if the field is null or the caller may not see it.
func ClockTime(k *plan.Kind, row access.Row) (t time.Time, ok bool) {
	if f, t := ShownTime(k, row); f != nil && f.Name == k.Spec.Clock {
		return t, true
	}
	return time.Time{}, false
}

// Moment writes a moment in words, but leaves out the word "Today". It returns nil for the zero time.
func (c *Clock) Moment(t time.Time) *When {
	if t.IsZero() {
		return nil
	}
	w := c.FormatMoment(t, true)
	w.Text = strings.TrimPrefix(w.Text, "Today ")
	return &w
}
