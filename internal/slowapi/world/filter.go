// Filters: what each means, which dates it takes, and how a list echoes them.
package world

import (
	"math"
	"strings"

	"understudy/internal/slowapi/format"
)

// Filter is one parameter that narrows a list.
type Filter struct {
	Key  string
	Read func(x *Search, value string) (Condition, *format.Refusal)
}

// Condition is what a filter with its value asks for. lo and hi bound the
// indexes that may meet it, so that a window of time costs no scan; the late
// ones of a sequence are looked at all the same.
type Condition struct {
	Test   func(Row) bool
	Lo, Hi int64
}

// Everywhere is a condition that any index may meet.
func Everywhere(test func(Row) bool) Condition {
	return Condition{Test: test, Lo: 0, Hi: math.MaxInt64}
}

// TextFilter asks for exactly this text.
func TextFilter[R Row](key string, get func(R) string) Filter {
	return Filter{key, func(_ *Search, value string) (Condition, *format.Refusal) {
		return Everywhere(func(r Row) bool { return get(r.(R)) == value }), nil
	}}
}

// TruthFilter asks for true or false.
func TruthFilter[R Row](key string, get func(R) bool) Filter {
	return Filter{key, func(_ *Search, value string) (Condition, *format.Refusal) {
		asked, r := ReadTruth(value)
		return Everywhere(func(r Row) bool { return get(r.(R)) == asked }), r
	}}
}

// ReadTruth reads the value of a filter that takes true or false.
func ReadTruth(value string) (asked bool, r *format.Refusal) {
	asked = strings.EqualFold(value, "true")
	if !asked && !strings.EqualFold(value, "false") {
		return false, format.Invalid("Invalid boolean value.")
	}
	return asked, nil
}

// PatternFilter asks for numbers that contain the value; a star is any digit.
func PatternFilter[R Row](key string, get func(R) string) Filter {
	return Filter{key, func(_ *Search, value string) (Condition, *format.Refusal) {
		return Everywhere(func(r Row) bool { return ContainsPattern(get(r.(R)), value) }), nil
	}}
}

// ContainsPattern reports whether a number contains a pattern.
func ContainsPattern(number, pattern string) bool {
	for at := 0; at+len(pattern) <= len(number); at++ {
		if MatchesHere(number[at:], pattern) {
			return true
		}
	}
	return false
}

// MatchesHere reports whether a number begins with a pattern.
func MatchesHere(number, pattern string) bool {
	for i := range len(pattern) {
		digit := number[i] >= '0' && number[i] <= '9'
		if pattern[i] != number[i] && !(pattern[i] == '*' && digit) {
			return false
		}
	}
	return true
}

// ClockFilters are the three filters on a time: on it, up to it, from it on.
// Twilio words the edges of X< differently by list: for calls "before this
// date", for messages "on and before". A time equal to the edge is included;
// the quirks edge-exclusive, before-whole-day and before-midnight change that.
func ClockFilters[R Row](name string, wholeDay bool, of func(R) int64) []Filter {
	get := func(r Row) int64 { return of(r.(R)) }
	return []Filter{
		{Key: name, Read: func(x *Search, value string) (Condition, *format.Refusal) {
			return timeCondition(x, value, get, func(d format.Span) (int64, int64) { return d.From, d.Until - 1 })
		}},
		{Key: name + "<", Read: func(x *Search, value string) (Condition, *format.Refusal) {
			whole := (wholeDay || x.Quirks.On(BeforeWholeDay)) && !x.Quirks.On(BeforeMidnight)
			return timeCondition(x, value, get, func(d format.Span) (int64, int64) {
				switch {
				case x.Quirks.On(EdgeExclusive):
					return math.MinInt64, d.From - 1
				case whole:
					return math.MinInt64, d.Until - 1
				}
				return math.MinInt64, d.From
			})
		}},
		{Key: name + ">", Read: func(x *Search, value string) (Condition, *format.Refusal) {
			return timeCondition(x, value, get, func(d format.Span) (int64, int64) {
				first := d.From
				if x.Quirks.On(EdgeExclusive) {
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
func timeCondition(x *Search, value string, get func(Row) int64, edges func(format.Span) (int64, int64)) (Condition, *format.Refusal) {
	if strings.HasPrefix(value, ">") || strings.HasPrefix(value, "<") {
		if x.Quirks.On(OperatorRefused) {
			return Condition{}, format.Invalid("Invalid date value.")
		}
		return Everywhere(func(Row) bool { return true }), nil
	}
	asked, ok := format.ParseDate(value)
	if !ok {
		return Condition{}, format.Invalid("Invalid date value.")
	}
	if x.Quirks.On(Retention) && x.S.Kind.Retained && asked.From < x.W.Now().Unix()-400*86400 {
		return Condition{}, format.Refuse(400, 20004, "Date range specified in query is partially or entirely outside of retention window "+
			"of 400 days")
	}
	first, last := edges(asked)
	c := Condition{
		Test: func(r Row) bool { t := get(r); return t != 0 && t >= first && t <= last },
		Hi:   math.MaxInt64,
	}
	if first != math.MinInt64 {
		c.Lo = x.S.FirstSince(first - slack)
	}
	if last != math.MaxInt64 {
		c.Hi = x.S.FirstSince(last+1) - 1
	}
	return c, nil
}

// KeysOf are the names of some filters.
func KeysOf(filters []Filter) []string {
	keys := make([]string, len(filters))
	for i, f := range filters {
		keys[i] = f.Key
	}
	return keys
}
