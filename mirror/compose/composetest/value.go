// Value: what filters are asked with.

package composetest

import (
	"strings"
	"time"

	"understudy"
	"understudy/spec"
)

// filter draws a filter with its value: mostly one that some record has, or has
// nearly.
func (g *Generator) filter(l *list, f *spec.Filter) understudy.Param {
	if g.oneIn(15) {
		return g.param(f.Name, "")
	}
	return g.param(f.Name, g.value(l, f))
}

func (g *Generator) value(l *list, f *spec.Filter) string {
	some := ""
	if n := len(l.rows); n > 0 {
		some = Text(l.rows[g.rng.IntN(n)].Body, f.Field)
	}
	switch f.Op {
	case "day", "since", "until", "before":
		return g.date(l, f, some)
	case "digits", "contains":
		return g.pattern(some)
	}
	if f.Type == spec.TypeBool {
		return pick(g, "true", "false", "true", "false", "TRUE", "False", "tRuE", "1", "yes", " true", "falſe")
	}
	if len(f.Values) > 0 && g.oneIn(2) {
		return pick(g, f.Values...)
	}
	switch {
	case some == "" || g.oneIn(12):
		return pick(g, "nobody", "+15005550006", "%", "\"", "\\", "a b+c&d=e", "日本", "\x00", "<&>", "null", "x\ny")
	case g.oneIn(12):
		return pick(g, strings.ToUpper(some), strings.ToLower(some), some+" ", some[1:], " "+some)
	}
	return some
}

// pattern is a part of a text with some digits as stars.
func (g *Generator) pattern(some string) string {
	if some == "" || g.oneIn(10) {
		return pick(g, "55", "+1", "*", "***", "1**", "x", "+", "99999999", "5*5")
	}
	from := g.rng.IntN(len(some))
	out := []byte(some[from : from+1+g.rng.IntN(len(some)-from)])
	for i := range out {
		if g.oneIn(4) {
			out[i] = '*'
		}
	}
	return string(out)
}

// date draws a time near that of a record, in any form.
func (g *Generator) date(l *list, f *spec.Filter, some string) string {
	at := time.Date(2026, 5, 20, 11, 30, 0, 0, time.UTC)
	if unix := spec.Unix(l.kind.Field(f.Field).Type, []byte(some)); unix != 0 {
		at = time.Unix(unix, 0).UTC()
	}
	switch g.rng.IntN(8) {
	case 0:
		at = at.Add(time.Second)
	case 1:
		at = at.Add(-time.Second)
	case 2:
		at = at.AddDate(0, 0, g.rng.IntN(61)-30)
	case 3:
		at = at.Truncate(24 * time.Hour)
	case 4:
		at = at.AddDate(-1, 0, -g.rng.IntN(100))
	}
	if g.oneIn(15) {
		return pick(g, "soon", "2026-13-01", "2026-02-30", "2026-5-1", "2026-05-20T25:00:00Z", "-30days", "2026-05-20 ", " 2026-05-20",
			"2026-05-20T10:00", "05/20/2026", "2026-05-20 EST", "1779271200", "2026-05-20T10:00:00 CET", "Wed, 20 May 2026 10:00:00 +0000", "0000",
			"9999-12-31")
	}
	if g.oneIn(15) {
		return pick(g, ">", "<", ">=", "<=") + at.Format(time.DateOnly)
	}
	zone := time.FixedZone("", pick(g, 0, 2, -7, 5, 13)*3600+pick(g, 0, 1800))
	abbreviated := pick(g, "UTC", "GMT", "Z", "EST", "EDT", "CST", "CDT", "MST", "MDT", "PST", "PDT")
	switch g.rng.IntN(14) {
	case 0:
		return at.Format("2006")
	case 1:
		return at.Format("2006-01")
	case 2:
		return at.In(zone).Format(time.RFC3339)
	case 3:
		return at.In(zone).Format("2006-01-02T15:04:05.000Z0700")
	case 4:
		return at.Format("2006-01-02T15:04:05")
	case 5:
		return at.Format("2006-01-02 15:04:05.000")
	case 6:
		return at.Format("01/02/2006 15:04:05 ") + abbreviated
	case 7:
		return at.Format("2006-01-02T15:04:05,25 ") + abbreviated
	case 8, 9, 10:
		return at.Format("2006-01-02T15:04:05Z")
	}
	return at.Format(time.DateOnly)
}
