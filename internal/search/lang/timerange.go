// This file parses times as people type them, and binds conditions on times.

package lang

import (
	"math"
	"strings"
	"time"

	"understudy"
	"understudy/internal/query"
)

// timeRange is the range [from, to) in Unix seconds. 2026-05 is a whole month, and -7d is one second.
type timeRange struct {
	from, to int64
	relative bool // whether the time was counted from now; after ":" such a time means everything since then
}

// timeForms are the layouts of a time, with the length of the range that each one means.
var timeForms = []struct {
	layout string
	years  int
	months int
	length time.Duration
}{
	{"2006", 1, 0, 0}, {"2006-01", 0, 1, 0}, {"2006-01-02", 0, 0, 24 * time.Hour},
	{"2006-01-02T15", 0, 0, time.Hour}, {"2006-01-02T15:04", 0, 0, time.Minute}, {"2006-01-02T15:04:05", 0, 0, time.Second},
	{"2006-01-02T15:04Z07:00", 0, 0, time.Minute}, {"2006-01-02T15:04:05Z07:00", 0, 0, time.Second},
	{"2006-01-02 15:04", 0, 0, time.Minute}, {"2006-01-02 15:04:05", 0, 0, time.Second},
}

// parseTimeRange parses a time. A time without a zone is in UTC.
func parseTimeRange(text string, now time.Time) (timeRange, bool) {
	now = now.UTC()
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	switch strings.ToLower(text) {
	case "now":
		return timeRange{now.Unix(), now.Unix() + 1, false}, true
	case "today":
		return timeRange{day.Unix(), day.AddDate(0, 0, 1).Unix(), false}, true
	case "yesterday":
		return timeRange{day.AddDate(0, 0, -1).Unix(), day.Unix(), false}, true
	}
	if back, ok := strings.CutPrefix(text, "-"); ok {
		length, ok := parseDuration(back)
		at := now.Unix() - length
		return timeRange{at, at + 1, true}, ok
	}
	if len(text) > len(time.RFC3339) {
		return timeRange{}, false
	}
	for _, f := range timeForms {
		if t, err := understudy.ParseTime(text, time.UTC, f.layout); err == nil && t.Year() > 0 {
			return timeRange{t.Unix(), t.AddDate(f.years, f.months, 0).Add(f.length).Unix(), false}, true
		}
	}
	return timeRange{}, false
}

// parseDuration parses a length of time in the notation of settings and flags, in whole seconds.
func parseDuration(text string) (seconds int64, ok bool) {
	d, err := understudy.ParseDuration(text)
	ok = err == nil && d >= 0 && d%time.Second == 0 && isDigit(text[0]) && !isDigit(text[len(text)-1])
	return int64(d / time.Second), ok
}

const (
	timeHelp     = "a time is 2026, 2026-05, 2026-05-01, 2026-05-01T10:30, -7d, today or yesterday"
	durationHelp = "a length of time is a number and s, m, h, d, w or y: 2h, 7d, 1d12h, 1.5d"
)

// timeRanges returns the ranges of a condition on a time. The time must lie in at least one of them. math.MinInt64
// and math.MaxInt64 mean a range without a beginning or an end.
func (b *Binder) timeRanges(n *Node) (ranges []timeRange, ok bool) {
	read := make([]timeRange, len(n.Values))
	for i, v := range n.Values {
		if n.Rel == relRange && v.Text == "" {
			continue
		}
		if read[i], ok = parseTimeRange(v.Text, b.Now); !ok || v.prefix {
			b.fail(syntaxError(b.Text, v.at, v.end, "%s is not a time; %s", understudy.Clip(v.Text), timeHelp))
			return nil, false
		}
		b.relative = b.relative || !isAbsolute(v.Text)
	}
	switch n.Rel {
	case relLess:
		return []timeRange{{from: math.MinInt64, to: read[0].from}}, true
	case relAtMost:
		return []timeRange{{from: math.MinInt64, to: read[0].to}}, true
	case relMore:
		return []timeRange{{from: read[0].to, to: math.MaxInt64}}, true
	case relAtLeast:
		return []timeRange{{from: read[0].from, to: math.MaxInt64}}, true
	case relRange:
		s := timeRange{from: math.MinInt64, to: math.MaxInt64}
		if n.Values[0].Text != "" {
			s.from = read[0].from
		}
		if n.Values[1].Text != "" {
			s.to = read[1].to
		}
		// If one end is relative, the range may be empty today but not on another day, so it is allowed.
		if n.isClosed() && s.from >= s.to && isAbsolute(n.Values[0].Text) == isAbsolute(n.Values[1].Text) {
			b.refuseRange(n)
			return nil, false
		}
		return []timeRange{s}, true
	}
	for i := range read {
		if read[i].relative && n.Rel == RelIs {
			read[i].to = b.Now.Unix() + 1
		}
	}
	return read, true
}

// isAbsolute reports whether a time does not depend on now.
func isAbsolute(text string) bool { return text != "" && isDigit(text[0]) }

// ageRanges does what timeRanges does for the condition age, which counts back from now.
func (b *Binder) ageRanges(n *Node) (ranges []timeRange, ok bool) {
	b.relative = true
	at := make([]int64, len(n.Values))
	for i, v := range n.Values {
		if n.Rel == relRange && v.Text == "" {
			continue
		}
		length, ok := parseDuration(v.Text)
		if !ok || v.prefix {
			b.fail(syntaxError(b.Text, v.at, v.end, "%s is not a length of time; %s", understudy.Clip(v.Text), durationHelp))
			return nil, false
		}
		at[i] = b.Now.Unix() - length
	}
	switch n.Rel {
	case relLess:
		return []timeRange{{from: at[0] + 1, to: math.MaxInt64}}, true
	case relAtMost:
		return []timeRange{{from: at[0], to: math.MaxInt64}}, true
	case relMore:
		return []timeRange{{from: math.MinInt64, to: at[0]}}, true
	case relAtLeast:
		return []timeRange{{from: math.MinInt64, to: at[0] + 1}}, true
	case relRange:
		s := timeRange{from: math.MinInt64, to: math.MaxInt64}
		if n.Values[0].Text != "" {
			s.to = at[0] + 1
		}
		if n.Values[1].Text != "" {
			s.from = at[1]
		}
		if n.isClosed() && s.from >= s.to {
			b.refuseRange(n)
			return nil, false
		}
		return []timeRange{s}, true
	}
	b.fail(syntaxError(b.Text, n.at, n.end, "an age is compared: age<2h, age>7d, age:2h..7d"))
	return nil, false
}

func newTimesTest(ranges []timeRange) (t query.Times) {
	for _, s := range ranges {
		t = append(t, query.Span{From: s.from, To: s.to})
	}
	return t
}

func (b *Binder) bindTime(l *predicate) {
	ranges, ok := b.timeRanges(l.Node)
	if !ok {
		return
	}
	l.test = newTimesTest(ranges)
	l.Term = storeTimeRange(ranges)
}

// storeTimeRange returns the store's condition for the smallest range that contains all ranges, or nil if that
// range has no beginning and no end.
func storeTimeRange(ranges []timeRange) *query.Predicate {
	from, to := int64(math.MaxInt64), int64(math.MinInt64)
	for _, s := range ranges {
		from, to = min(from, s.from), max(to, s.to)
	}
	if from == math.MinInt64 || from < 0 {
		from = 0
	}
	if to == math.MaxInt64 || to < 0 {
		to = 0
	}
	if from == 0 && to == 0 {
		return nil
	}
	return &query.Predicate{From: from, To: to}
}

// bindDate binds date and age: the time of a record's clock field, or of its order field while the clock is empty.
func (b *Binder) bindDate(n *Node, scope []*KindView) *predicate {
	ranges, ok := []timeRange(nil), false
	if n.Name == ageName {
		ranges, ok = b.ageRanges(n)
	} else {
		ranges, ok = b.timeRanges(n)
	}
	if !ok {
		return nil
	}
	l := &predicate{Node: n, Fields: map[*KindView]string{}}
	for _, s := range scope {
		for _, name := range []string{s.Kind.Clock, s.Kind.Order} {
			if name == "" {
				continue
			}
			if _, ok := s.Fields[name]; !ok {
				b.fail(forbiddenError(b.Text, n.at, n.at+len(n.Name), "your role can't see %s of %s in full, which its date comes from; remove %s",
					name, s.Kind.Name, n.Name))
				return nil
			}
			l.Fields[s] = name
		}
	}
	if len(l.Fields) == 0 {
		b.fail(syntaxError(b.Text, n.at, n.at+len(n.Name), "these records have no date"))
		return nil
	}
	spans := newTimesTest(ranges)
	l.recordTest = func(c *Candidate) bool { return spans.Has(c.Clock()) }
	l.rowTest = func(s *KindView, of RowTests) func(int32) bool {
		at := RowClock(s.Kind, of)
		if at == nil {
			return nil
		}
		return func(row int32) bool { return spans.Has(at(row)) }
	}
	l.Term, l.allKinds = storeTimeRange(ranges), true
	return l
}

// CanSeeTime reports whether the caller sees the fields that date: compares in the kind.
func (s *KindView) CanSeeTime() bool {
	own := query.TimeFields(s.Kind)
	for _, f := range own {
		if _, ok := s.Fields[f.Name]; !ok {
			return false
		}
	}
	return len(own) > 0
}

// Clock returns the time that the condition date: compares: the clock field, or the order field if the clock is empty.
func (c *Candidate) Clock() int64 {
	for _, name := range []string{c.View.Kind.Clock, c.View.Kind.Order} {
		if name == "" {
			continue
		}
		if v, ok := c.visibleValue(name); ok {
			if t := v.Unix(); t != 0 {
				return t
			}
		}
	}
	return 0
}

// ClockField returns the time in the clock field, or 0 if it is empty.
func (c *Candidate) ClockField() int64 {
	v, _ := c.visibleValue(c.View.Kind.Clock)
	return v.Unix()
}
