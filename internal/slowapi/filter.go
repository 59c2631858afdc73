// Filters: what each means, which dates it takes, and how a list echoes them.
package slowapi

import (
	"math"
	"net/url"
	"strings"
	"time"
)

// filter is one parameter that narrows a list.
type filter struct {
	key  string
	read func(x *search, value string) (condition, *refusal)
}

// condition is what a filter with its value asks for. lo and hi bound the
// indexes that may meet it, so that a window of time costs no scan; the late
// ones of a sequence are looked at all the same.
type condition struct {
	test   func(row) bool
	lo, hi int64
}

// everywhere is a condition that any index may meet.
func everywhere(test func(row) bool) condition {
	return condition{test, 0, math.MaxInt64}
}

// textFilter asks for exactly this text.
func textFilter(get func(row) string) func(*search, string) (condition, *refusal) {
	return func(_ *search, value string) (condition, *refusal) {
		return everywhere(func(r row) bool { return get(r) == value }), nil
	}
}

// truthFilter asks for true or false.
func truthFilter(get func(row) bool) func(*search, string) (condition, *refusal) {
	return func(_ *search, value string) (condition, *refusal) {
		asked := strings.EqualFold(value, "true")
		if !asked && !strings.EqualFold(value, "false") {
			return condition{}, invalid("Invalid boolean value.")
		}
		return everywhere(func(r row) bool { return get(r) == asked }), nil
	}
}

// partyFilter asks for one side of a call or message.
func partyFilter(get func(row) *party) func(*search, string) (condition, *refusal) {
	return func(x *search, value string) (condition, *refusal) {
		w := x.w
		return everywhere(func(r row) bool { return get(r).is(w, value) }), nil
	}
}

// patternFilter asks for numbers that contain the value; a star is any digit.
func patternFilter(get func(row) string) func(*search, string) (condition, *refusal) {
	return func(_ *search, value string) (condition, *refusal) {
		return everywhere(func(r row) bool { return containsPattern(get(r), value) }), nil
	}
}

func containsPattern(number, pattern string) bool {
	for at := 0; at+len(pattern) <= len(number); at++ {
		if matchesHere(number[at:], pattern) {
			return true
		}
	}
	return false
}

func matchesHere(number, pattern string) bool {
	for i := range len(pattern) {
		digit := number[i] >= '0' && number[i] <= '9'
		if pattern[i] != number[i] && !(pattern[i] == '*' && digit) {
			return false
		}
	}
	return true
}

// parentFilter asks for the children of a call; they stand within five of it.
func parentFilter(x *search, value string) (condition, *refusal) {
	index, ok := x.w.find(x.s, value)
	if !ok {
		return condition{test: func(row) bool { return false }, hi: -1}, nil
	}
	test := func(r row) bool { c := r.(*call); return c.parent && c.i-1 == index }
	return condition{test, index, index + 5}, nil
}

// clockFilters are the three filters on a time: on it, up to it, from it on.
// Twilio words the edges of X< differently by list: for calls "before this
// date", for messages "on and before". A time equal to the edge is included;
// the quirks edge-exclusive, before-whole-day and before-midnight change that.
func clockFilters(name string, wholeDay bool, get func(row) int64) []filter {
	return []filter{
		{name, func(x *search, value string) (condition, *refusal) {
			return timeCondition(x, value, get, func(d span) (int64, int64) { return d.from, d.until - 1 })
		}},
		{name + "<", func(x *search, value string) (condition, *refusal) {
			whole := (wholeDay || x.quirks.on(beforeWholeDay)) && !x.quirks.on(beforeMidnight)
			return timeCondition(x, value, get, func(d span) (int64, int64) {
				switch {
				case x.quirks.on(edgeExclusive):
					return math.MinInt64, d.from - 1
				case whole:
					return math.MinInt64, d.until - 1
				}
				return math.MinInt64, d.from
			})
		}},
		{name + ">", func(x *search, value string) (condition, *refusal) {
			return timeCondition(x, value, get, func(d span) (int64, int64) {
				first := d.from
				if x.quirks.on(edgeExclusive) {
					first++
				}
				return first, math.MaxInt64
			})
		}},
	}
}

// timeCondition asks for times in the range that edges makes of the value. No
// time of a record lies before its creation, nor more than slack after it
// unless the record is a late one.
func timeCondition(x *search, value string, get func(row) int64, edges func(span) (int64, int64)) (condition, *refusal) {
	if strings.HasPrefix(value, ">") || strings.HasPrefix(value, "<") {
		if x.quirks.on(operatorRefused) {
			return condition{}, invalid("Invalid date value.")
		}
		return everywhere(func(row) bool { return true }), nil
	}
	asked, ok := parseDate(value)
	if !ok {
		return condition{}, invalid("Invalid date value.")
	}
	if x.quirks.on(retention) && x.s.kind.retained && asked.from < x.w.now().Unix()-400*86400 {
		return condition{}, refuse(400, 20004, "Date range specified in query is partially or entirely outside of retention window of 400 days")
	}
	first, last := edges(asked)
	c := condition{
		test: func(r row) bool { t := get(r); return t != 0 && t >= first && t <= last },
		hi:   math.MaxInt64,
	}
	if first != math.MinInt64 {
		c.lo = x.s.firstSince(first - slack)
	}
	if last != math.MaxInt64 {
		c.hi = x.s.firstSince(last+1) - 1
	}
	return c, nil
}

// query is what stands behind the question mark, read once.
type query struct {
	given map[string]given
}

// given is how a parameter was given; bare is `To` where `To=` is empty.
type given struct {
	value string
	bare  bool
}

// readQuery reads a raw query. Only the first = splits, so that `DateSent>=X`
// has the key `DateSent>`. The last of several of one name counts. What is not
// validly encoded is taken as it stands.
func readQuery(raw string) query {
	q := query{map[string]given{}}
	for part := range strings.SplitSeq(raw, "&") {
		name, value, split := strings.Cut(part, "=")
		q.given[decode(name)] = given{decode(value), !split}
	}
	return q
}

func decode(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}

// encode is the one spelling lists echo a value in: as url.QueryEscape, but a
// space is %20.
func encode(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}

// echo appends the filters of a kind that were given, in the order of its
// table, each followed by &. Given empty, bare or not at all stay three things.
func (q query) echo(dst []byte, filters []filter) []byte {
	for _, f := range filters {
		g, there := q.given[f.key]
		if !there {
			continue
		}
		dst = append(dst, encode(f.key)...)
		if !g.bare {
			dst = append(dst, '=')
			dst = append(dst, encode(g.value)...)
		}
		dst = append(dst, '&')
	}
	return dst
}

// span is the time a date covers, in Unix seconds: a day, a month, a second.
type span struct{ from, until int64 }

// zones are the abbreviations accepted behind a date, in seconds east.
var zones = map[string]int{
	"UTC": 0, "GMT": 0, "Z": 0,
	"EST": -5 * 3600, "EDT": -4 * 3600, "CST": -6 * 3600, "CDT": -5 * 3600,
	"MST": -7 * 3600, "MDT": -6 * 3600, "PST": -8 * 3600, "PDT": -7 * 3600,
}

// instants are the forms that name a second. A fraction may follow the seconds
// in each of them and is dropped.
var instants = []string{
	"2006-01-02T15:04:05Z07:00",
	"2006-01-02T15:04:05Z0700",
	"2006-01-02T15:04:05",
	"2006-01-02 15:04:05",
	"01/02/2006 15:04:05",
}

// parseDate reads a date in any of the forms seen accepted (twilio-go,
// twilio-python, twilio-node, the examples of the published documents). A bare
// date is that whole UTC day, and so for months and years.
func parseDate(value string) (span, bool) {
	if t, err := time.Parse("2006-01-02", value); err == nil {
		return spanTo(t, t.AddDate(0, 0, 1))
	}
	if t, err := time.Parse("2006-01", value); err == nil {
		return spanTo(t, t.AddDate(0, 1, 0))
	}
	if t, err := time.Parse("2006", value); err == nil {
		return spanTo(t, t.AddDate(1, 0, 0))
	}
	east := 0
	if at := strings.LastIndexByte(value, ' '); at > 0 {
		if offset, known := zones[value[at+1:]]; known {
			value, east = value[:at], offset
		}
	}
	for _, form := range instants {
		if t, err := time.ParseInLocation(form, value, time.FixedZone("", east)); err == nil {
			t = t.Truncate(time.Second)
			return spanTo(t, t.Add(time.Second))
		}
	}
	return span{}, false
}

func spanTo(from, until time.Time) (span, bool) {
	return span{from.Unix(), until.Unix()}, true
}
