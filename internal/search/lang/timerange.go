// TimeRange: times as people type them, and conditions on them.

package lang

import (
	"math"
	"strings"
	"time"

	"understudy"
	"understudy/internal/query"
)

// timeRange is the time [from, to) in Unix seconds: what 2026-05 means is a month, what -7d means a second.
type timeRange struct {
	from, to int64
	since    bool // relative: with ":" everything since then is meant
}

// forms of a time, each with the length of the range that it stands for.
var forms = []struct {
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

// parseTimeRange reads a moment; times without a zone are UTC.
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
	for _, f := range forms {
		if t, err := understudy.ParseTime(text, time.UTC, f.layout); err == nil && t.Year() > 0 {
			return timeRange{t.Unix(), t.AddDate(f.years, f.months, 0).Add(f.length).Unix(), false}, true
		}
	}
	return timeRange{}, false
}

// parseDuration reads a length of time as settings and flags do, in whole seconds.
func parseDuration(text string) (seconds int64, ok bool) {
	d, err := understudy.ParseDuration(text)
	ok = err == nil && d >= 0 && d%time.Second == 0 && digit(text[0]) && !digit(text[len(text)-1])
	return int64(d / time.Second), ok
}

const (
	timeHelp     = "a time is 2026, 2026-05, 2026-05-01, 2026-05-01T10:30, -7d, today or yesterday"
	durationHelp = "a length of time is a number and s, m, h, d, w or y: 2h, 7d, 1d12h, 1.5d"
)

// timeRanges are what a condition on a time asks for: one of the ranges. 0 is open.
func (b *Binder) timeRanges(n *Node) (ranges []timeRange, ok bool) {
	read := make([]timeRange, len(n.Values))
	for i, v := range n.Values {
		if n.Rel == relRange && v.Text == "" {
			continue
		}
		if read[i], ok = parseTimeRange(v.Text, b.Now); !ok || v.prefix {
			b.fail(syntaxError(b.Text, v.at, v.end, "%s is no time; %s", understudy.Clip(v.Text), timeHelp))
			return nil, false
		}
		b.relative = b.relative || !steady(v.Text)
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
		// What is counted from now on one side alone is right one day and not the next.
		if n.closed() && s.from >= s.to && steady(n.Values[0].Text) == steady(n.Values[1].Text) {
			b.backwards(n)
			return nil, false
		}
		return []timeRange{s}, true
	}
	for i := range read {
		if read[i].since && n.Rel == RelIs {
			read[i].to = b.Now.Unix() + 1
		}
	}
	return read, true
}

// steady says whether a time is the same whenever it is read.
func steady(text string) bool { return text != "" && digit(text[0]) }

// ageRanges is timeRanges for age, which counts backwards from now.
func (b *Binder) ageRanges(n *Node) (ranges []timeRange, ok bool) {
	b.relative = true
	at := make([]int64, len(n.Values))
	for i, v := range n.Values {
		if n.Rel == relRange && v.Text == "" {
			continue
		}
		length, ok := parseDuration(v.Text)
		if !ok || v.prefix {
			b.fail(syntaxError(b.Text, v.at, v.end, "%s is no length of time; %s", understudy.Clip(v.Text), durationHelp))
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
		if n.closed() && s.from >= s.to {
			b.backwards(n)
			return nil, false
		}
		return []timeRange{s}, true
	}
	b.fail(syntaxError(b.Text, n.at, n.end, "an age is compared: age<2h, age>7d, age:2h..7d"))
	return nil, false
}

// times is the test for one of some ranges.
func times(ranges []timeRange) (t query.Times) {
	for _, s := range ranges {
		t = append(t, query.Span{From: s.from, To: s.to})
	}
	return t
}

// timed binds a condition on a field that holds a time.
func (b *Binder) timed(l *predicate) {
	ranges, ok := b.timeRanges(l.Node)
	if !ok {
		return
	}
	l.test = times(ranges)
	l.Term = around(ranges)
}

// around is what a store can be asked of a time: the range around all ranges; nil: nothing.
func around(ranges []timeRange) *query.Predicate {
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

// date binds date and age: the time of a record's clock or, while it has none, of its order.
func (b *Binder) date(n *Node, scope []*KindView) *predicate {
	ranges, ok := []timeRange(nil), false
	if n.Name == ageName {
		ranges, ok = b.ageRanges(n)
	} else {
		ranges, ok = b.timeRanges(n)
	}
	if !ok {
		return nil
	}
	l := &predicate{Node: n, In: map[*KindView]string{}}
	for _, s := range scope {
		for _, name := range []string{s.Kind.Clock, s.Kind.Order} {
			if name == "" {
				continue
			}
			if _, ok := s.Fields[name]; !ok {
				b.fail(refused(b.Text, n.at, n.at+len(n.Name), "your role does not fully see %s of %s, by which its date is told; take %s out", name,
					s.Kind.Name, n.Name))
				return nil
			}
			l.In[s] = name
		}
	}
	if len(l.In) == 0 {
		b.fail(syntaxError(b.Text, n.at, n.at+len(n.Name), "what is looked in has no date"))
		return nil
	}
	spans := times(ranges)
	l.whole = func(c *Candidate) bool { return spans.Has(c.Clock()) }
	l.rows = func(s *KindView, of RowTests) func(int32) bool {
		at := Clock(s.Kind, of)
		if at == nil {
			return nil
		}
		return func(row int32) bool { return spans.Has(at(row)) }
	}
	l.Term, l.every = around(ranges), true
	return l
}

// ShowsTime reports whether the caller sees the fields by which a date finds records of the kind.
func (s *KindView) ShowsTime() bool {
	own := query.TimeFields(s.Kind)
	for _, f := range own {
		if _, ok := s.Fields[f.Name]; !ok {
			return false
		}
	}
	return len(own) > 0
}

// Clock is the time by which a date finds a record: of its clock or, while it has none, of its order.
func (c *Candidate) Clock() int64 {
	for _, name := range []string{c.View.Kind.Clock, c.View.Kind.Order} {
		if name == "" {
			continue
		}
		if v, ok := c.value(name); ok {
			if t := v.Unix(); t != 0 {
				return t
			}
		}
	}
	return 0
}

// ClockAlone is the time of a record's clock, 0 while it has none.
func (c *Candidate) ClockAlone() int64 {
	v, _ := c.value(c.View.Kind.Clock)
	return v.Unix()
}
