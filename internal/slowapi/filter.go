// Filters: what each means, which dates it takes, and how a list echoes them.
package slowapi

import (
	"math"
	"strings"
	"understudy/internal/slowapi/format"
)

// filter is one parameter that narrows a list.
type filter struct {
	key  string
	read func(x *search, value string) (condition, *format.Refusal)
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
	return condition{test: test, lo: 0, hi: math.MaxInt64}
}

// textFilter asks for exactly this text.
func textFilter(get func(row) string) func(*search, string) (condition, *format.Refusal) {
	return func(_ *search, value string) (condition, *format.Refusal) {
		return everywhere(func(r row) bool { return get(r) == value }), nil
	}
}

// truthFilter asks for true or false.
func truthFilter(get func(row) bool) func(*search, string) (condition, *format.Refusal) {
	return func(_ *search, value string) (condition, *format.Refusal) {
		asked := strings.EqualFold(value, "true")
		if !asked && !strings.EqualFold(value, "false") {
			return condition{}, format.Invalid("Invalid boolean value.")
		}
		return everywhere(func(r row) bool { return get(r) == asked }), nil
	}
}

// patternFilter asks for numbers that contain the value; a star is any digit.
func patternFilter(get func(row) string) func(*search, string) (condition, *format.Refusal) {
	return func(_ *search, value string) (condition, *format.Refusal) {
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

// clockFilters are the three filters on a time: on it, up to it, from it on.
// Twilio words the edges of X< differently by list: for calls "before this
// date", for messages "on and before". A time equal to the edge is included;
// the quirks edge-exclusive, before-whole-day and before-midnight change that.
func clockFilters(name string, wholeDay bool, get func(row) int64) []filter {
	return []filter{
		{key: name, read: func(x *search, value string) (condition, *format.Refusal) {
			return timeCondition(x, value, get, func(d format.Span) (int64, int64) { return d.From, d.Until - 1 })
		}},
		{key: name + "<", read: func(x *search, value string) (condition, *format.Refusal) {
			whole := (wholeDay || x.quirks.on(beforeWholeDay)) && !x.quirks.on(beforeMidnight)
			return timeCondition(x, value, get, func(d format.Span) (int64, int64) {
				switch {
				case x.quirks.on(edgeExclusive):
					return math.MinInt64, d.From - 1
				case whole:
					return math.MinInt64, d.Until - 1
				}
				return math.MinInt64, d.From
			})
		}},
		{key: name + ">", read: func(x *search, value string) (condition, *format.Refusal) {
			return timeCondition(x, value, get, func(d format.Span) (int64, int64) {
				first := d.From
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
func timeCondition(x *search, value string, get func(row) int64, edges func(format.Span) (int64, int64)) (condition, *format.Refusal) {
	if strings.HasPrefix(value, ">") || strings.HasPrefix(value, "<") {
		if x.quirks.on(operatorRefused) {
			return condition{}, format.Invalid("Invalid date value.")
		}
		return everywhere(func(row) bool { return true }), nil
	}
	asked, ok := format.ParseDate(value)
	if !ok {
		return condition{}, format.Invalid("Invalid date value.")
	}
	if x.quirks.on(retention) && x.s.kind.retained && asked.From < x.w.now().Unix()-400*86400 {
		return condition{}, format.Refuse(400, 20004, "Date range specified in query is partially or entirely outside of retention window of 400 days")
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

// keysOf are the names of some filters.
func keysOf(filters []filter) []string {
	keys := make([]string, len(filters))
	for i, f := range filters {
		keys[i] = f.key
	}
	return keys
}
