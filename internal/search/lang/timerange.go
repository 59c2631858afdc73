// This file parses times as people type them, and binds conditions on times.

package lang

import (
	"math"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/spec"
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
		if read[i] = allTimes; n.Rel == relRange && v.Text == "" {
			continue
		}
		if read[i], ok = parseTimeRange(v.Text, b.Now); !ok || v.prefix {
			b.refuse(v.at, v.end, "%s is not a time; %s", understudy.Clip(v.Text), timeHelp)
			return nil, false
		}
		b.relative = b.relative || !isAbsolute(v.Text)
		if read[i].relative && n.Rel == RelIs {
			read[i].to = b.Now.Unix() + 1
		}
	}
	ranges = compareTimes(n.Rel, read)
	// If one end is relative, the range may be empty today but not on another day, so it is allowed.
	if n.Rel == relRange && n.isClosed() && ranges[0].from >= ranges[0].to && isAbsolute(n.Values[0].Text) == isAbsolute(n.Values[1].Text) {
		b.refuseRange(n)
		return nil, false
	}
	return ranges, true
}

// allTimes is a range without a beginning and an end.
var allTimes = timeRange{from: math.MinInt64, to: math.MaxInt64}

// compareTimes returns the times that compare with the given times as rel says.
func compareTimes(rel relation, given []timeRange) []timeRange {
	one := given[0]
	switch rel {
	case relLess:
		one.from, one.to = allTimes.from, one.from
	case relAtMost:
		one.from = allTimes.from
	case relMore:
		one.from, one.to = one.to, allTimes.to
	case relAtLeast:
		one.to = allTimes.to
	case relRange:
		one.to = given[1].to
	default:
		return given
	}
	return []timeRange{one}
}

// isAbsolute reports whether a time does not depend on now.
func isAbsolute(text string) bool { return text != "" && isDigit(text[0]) }

// earlier has the comparison of times for each comparison of ages, because a time is earlier if its age is larger.
var earlier = map[relation]relation{relLess: relMore, relAtMost: relAtLeast, relMore: relLess, relAtLeast: relAtMost, relRange: relRange}

// ageRanges does what timeRanges does for the condition age, which counts back from now.
func (b *Binder) ageRanges(n *Node) (ranges []timeRange, ok bool) {
	b.relative = true
	read := make([]timeRange, len(n.Values))
	for i, v := range n.Values {
		if read[i] = allTimes; n.Rel == relRange && v.Text == "" {
			continue
		}
		length, ok := parseDuration(v.Text)
		if !ok || v.prefix {
			b.refuse(v.at, v.end, "%s is not a length of time; %s", understudy.Clip(v.Text), durationHelp)
			return nil, false
		}
		read[i] = timeRange{from: b.Now.Unix() - length, to: b.Now.Unix() - length + 1}
	}
	rel, ok := earlier[n.Rel]
	if !ok {
		b.refuse(n.at, n.end, "an age is compared: age<2h, age>7d, age:2h..7d")
		return nil, false
	}
	slices.Reverse(read)
	ranges = compareTimes(rel, read)
	if n.Rel == relRange && n.isClosed() && ranges[0].from >= ranges[0].to {
		b.refuseRange(n)
		return nil, false
	}
	return ranges, true
}

func newTimesTest(ranges []timeRange) (t query.Times) {
	for _, s := range ranges {
		t = append(t, query.Span{From: s.from, To: s.to})
	}
	return t
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
func (b *Binder) bindDate(n *Node, scope []*KindView) *Cond {
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
				return b.forbid(n.at, n.at+len(n.Name), "your role can't see %s of %s in full, which its date comes from; remove %s",
					name, s.Kind.Name, n.Name)
			}
			l.Fields[s] = name
		}
	}
	if len(l.Fields) == 0 {
		return b.refuse(n.at, n.at+len(n.Name), "these records have no date")
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
	return fieldCond(l)
}

// CanSeeTime reports whether the caller sees the fields that date: compares in the kind.
func (s *KindView) CanSeeTime() bool { return len(query.TimeFields(s.Kind)) > 0 && !s.HasHiddenTime() }

// HasHiddenTime reports whether the caller does not see one of the fields that hold the date of the kind's records.
func (s *KindView) HasHiddenTime() bool {
	return slices.ContainsFunc(query.TimeFields(s.Kind), func(f *spec.Field) bool { return !s.CanSee(f.Name) })
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
