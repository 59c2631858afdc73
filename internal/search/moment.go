// Moment: times as people type them, and conditions on them.

package search

import (
	"math"
	"strconv"
	"strings"
	"time"

	"understudy/internal/query"
	"understudy/spec"
)

// span is a stretch of time, [from, to) in Unix seconds: what 2026-05 means is
// a month, what -7d means a second.
type span struct {
	from, to int64
	since    bool // relative: with ":" everything since then is meant
}

// forms of a moment, each with how long a stretch it stands for.
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

// readMoment reads a moment; times without a zone are UTC.
func readMoment(text string, now time.Time) (span, bool) {
	now = now.UTC()
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	switch strings.ToLower(text) {
	case "now":
		return span{now.Unix(), now.Unix() + 1, false}, true
	case "today":
		return span{day.Unix(), day.AddDate(0, 0, 1).Unix(), false}, true
	case "yesterday":
		return span{day.AddDate(0, 0, -1).Unix(), day.Unix(), false}, true
	}
	if back, ok := strings.CutPrefix(text, "-"); ok {
		length, ok := readLength(back)
		at := now.Unix() - length
		return span{at, at + 1, true}, ok
	}
	if len(text) > len(time.RFC3339) {
		return span{}, false
	}
	for _, f := range forms {
		if t, err := time.Parse(f.layout, text); err == nil && t.Year() > 0 {
			return span{t.Unix(), t.AddDate(f.years, f.months, 0).Add(f.length).Unix(), false}, true
		}
	}
	return span{}, false
}

// units of a length of time, in seconds.
var units = map[string]int64{"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "y": 365 * 86400}

// maxLength bounds a length of time, in seconds.
const maxLength = 1000 * 365 * 86400

// readLength reads 90s, 15m, 2h, 7d, 4w, 1y, in seconds.
func readLength(text string) (int64, bool) {
	if len(text) < 2 || len(text) > 12 {
		return 0, false
	}
	unit, ok := units[text[len(text)-1:]]
	n, err := strconv.ParseInt(text[:len(text)-1], 10, 64)
	if !ok || err != nil || !digit(text[0]) || n > maxLength/unit {
		return 0, false
	}
	return n * unit, true
}

const (
	momentHelp = "a time is 2026, 2026-05, 2026-05-01, 2026-05-01T10:30, -7d, today or yesterday"
	lengthHelp = "a length of time is a number and s, m, h, d, w or y: 2h, 7d"
)

// stretch is what a condition on a time asks for: in one of the spans. 0 is
// open.
func (b *binder) stretch(n *node) (spans []span, ok bool) {
	read := make([]span, len(n.values))
	for i, v := range n.values {
		if n.rel == relRange && v.text == "" {
			continue
		}
		if read[i], ok = readMoment(v.text, b.now); !ok || v.prefix {
			b.fail(syntaxError(b.text, v.at, v.end, "%s is no time; %s", clip(v.text), momentHelp))
			return nil, false
		}
		b.relative = b.relative || !steady(v.text)
	}
	switch n.rel {
	case relLess:
		return []span{{from: math.MinInt64, to: read[0].from}}, true
	case relAtMost:
		return []span{{from: math.MinInt64, to: read[0].to}}, true
	case relMore:
		return []span{{from: read[0].to, to: math.MaxInt64}}, true
	case relAtLeast:
		return []span{{from: read[0].from, to: math.MaxInt64}}, true
	case relRange:
		s := span{from: math.MinInt64, to: math.MaxInt64}
		if n.values[0].text != "" {
			s.from = read[0].from
		}
		if n.values[1].text != "" {
			s.to = read[1].to
		}
		// What is counted from now on one side alone is right one day and not the next.
		if n.closed() && s.from >= s.to && steady(n.values[0].text) == steady(n.values[1].text) {
			b.backwards(n)
			return nil, false
		}
		return []span{s}, true
	}
	for i := range read {
		if read[i].since && n.rel == relIs {
			read[i].to = b.now.Unix() + 1
		}
	}
	return read, true
}

// steady says whether a moment is the same whenever it is read.
func steady(text string) bool { return text != "" && digit(text[0]) }

// ages is stretch for age, which counts backwards from now.
func (b *binder) ages(n *node) (spans []span, ok bool) {
	b.relative = true
	at := make([]int64, len(n.values))
	for i, v := range n.values {
		if n.rel == relRange && v.text == "" {
			continue
		}
		length, ok := readLength(v.text)
		if !ok || v.prefix {
			b.fail(syntaxError(b.text, v.at, v.end, "%s is no length of time; %s", clip(v.text), lengthHelp))
			return nil, false
		}
		at[i] = b.now.Unix() - length
	}
	switch n.rel {
	case relLess:
		return []span{{from: at[0] + 1, to: math.MaxInt64}}, true
	case relAtMost:
		return []span{{from: at[0], to: math.MaxInt64}}, true
	case relMore:
		return []span{{from: math.MinInt64, to: at[0]}}, true
	case relAtLeast:
		return []span{{from: math.MinInt64, to: at[0] + 1}}, true
	case relRange:
		s := span{from: math.MinInt64, to: math.MaxInt64}
		if n.values[0].text != "" {
			s.to = at[0] + 1
		}
		if n.values[1].text != "" {
			s.from = at[1]
		}
		if n.closed() && s.from >= s.to {
			b.backwards(n)
			return nil, false
		}
		return []span{s}, true
	}
	b.fail(syntaxError(b.text, n.at, n.end, "an age is compared: age<2h, age>7d, age:2h..7d"))
	return nil, false
}

func within(t int64, spans []span) bool {
	for _, s := range spans {
		if t >= s.from && t < s.to {
			return true
		}
	}
	return false
}

// timed binds a condition on a field that holds a time.
func (b *binder) timed(l *leaf, in map[*kindView]string) {
	spans, ok := b.stretch(l.node)
	if !ok {
		return
	}
	types := make(map[*kindView]string, len(in))
	for s, name := range in {
		types[s] = s.kind.Field(name).Type
	}
	l.test = func(c *candidate, field string) bool {
		text, ok := c.value(field)
		if !ok {
			return false
		}
		t := spec.Unix(types[c.sight], []byte(text))
		return t != 0 && within(t, spans)
	}
	l.term = around(spans)
}

// around is what a store can be asked of a time: the span around all spans; nil:
// nothing.
func around(spans []span) *query.Predicate {
	from, to := int64(math.MaxInt64), int64(math.MinInt64)
	for _, s := range spans {
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

// date binds date and age: the time of a record's clock or, while it has none,
// of its order.
func (b *binder) date(n *node, scope []*kindView) *leaf {
	spans, ok := []span(nil), false
	if n.name == ageName {
		spans, ok = b.ages(n)
	} else {
		spans, ok = b.stretch(n)
	}
	if !ok {
		return nil
	}
	l := &leaf{node: n, in: map[*kindView]string{}}
	for _, s := range scope {
		for _, name := range []string{s.kind.Clock, s.kind.Order} {
			if name == "" {
				continue
			}
			if _, ok := s.fields[name]; !ok {
				b.fail(refused(b.text, n.at, n.at+len(n.name), "your role does not fully see %s of %s, by which its date is told; take %s out", name, s.kind.Name, n.name))
				return nil
			}
			l.in[s] = name
		}
	}
	if len(l.in) == 0 {
		b.fail(syntaxError(b.text, n.at, n.at+len(n.name), "what is looked in has no date"))
		return nil
	}
	l.test = func(c *candidate, _ string) bool {
		t := c.clock()
		return t != 0 && within(t, spans)
	}
	l.term, l.every = around(spans), true
	return l
}

// clock is the time of a record's clock or, while it has none, of its order.
func (c *candidate) clock() int64 {
	for _, name := range []string{c.sight.kind.Clock, c.sight.kind.Order} {
		if name == "" {
			continue
		}
		if text, ok := c.value(name); ok {
			if t := spec.Unix(c.sight.kind.Field(name).Type, []byte(text)); t != 0 {
				return t
			}
		}
	}
	return 0
}
