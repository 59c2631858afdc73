// Filters: what each means, which dates it takes, and how a list echoes them.
package world

import (
	"math"
	"regexp"
	"strings"

	"understudy/internal/slowapi/format"
)

// Filter is one parameter that narrows a list.
type Filter struct {
	Key  string
	Read func(x *Request, value string) (Condition, *format.Answer)
}

// Condition is what a filter with its value asks for. Lo and Hi bound the
// indexes that may meet it, so that a window of time costs no scan; the late
// ones of a sequence are looked at all the same. Without Test it is met by all between.
type Condition struct {
	Test   func(*Row) bool
	Lo, Hi int64
}

// Always is met by every record.
var Always = Condition{Hi: math.MaxInt64}

// Everywhere is a condition that any index may meet.
func Everywhere(test func(*Row) bool) Condition {
	return Condition{Test: test, Hi: math.MaxInt64}
}

// Meets reports whether a record meets the condition.
func (c *Condition) Meets(r *Row) bool {
	if c.Test == nil {
		return r.I >= c.Lo && r.I <= c.Hi
	}
	return c.Test(r)
}

// TextFilter asks for exactly this text in a value.
func TextFilter(key, name string) Filter {
	return Filter{key, func(_ *Request, value string) (Condition, *format.Answer) {
		return Everywhere(func(r *Row) bool { return r.Value(name) == value }), nil
	}}
}

// TruthFilter asks for true or false in a value.
func TruthFilter(key, name string) Filter {
	return Filter{key, func(_ *Request, value string) (Condition, *format.Answer) {
		asked, r := ReadTruth(value)
		return Everywhere(func(r *Row) bool { v := r.Value(name); return (v == true || v == "true") == asked }), r
	}}
}

// ReadTruth reads the value of a filter that takes true or false.
func ReadTruth(value string) (asked bool, r *format.Answer) {
	asked = strings.EqualFold(value, "true")
	if !asked && !strings.EqualFold(value, "false") {
		return false, format.NewInvalid("Invalid boolean value.")
	}
	return asked, nil
}

// PatternFilter asks for numbers that contain the value; a star is any digit.
func PatternFilter(key, name string) Filter {
	return Filter{key, func(_ *Request, value string) (Condition, *format.Answer) {
		contains := Pattern("", value, "")
		return Everywhere(func(r *Row) bool {
			number, _ := r.Value(name).(string)
			return contains(number)
		}), nil
	}}
}

// Pattern returns the test that a number contains a pattern, in which a star is any digit. The
// pattern stands behind the expression before and in front of the expression after.
func Pattern(before, pattern, after string) func(number string) bool {
	contains, err := regexp.Compile(before + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, "[0-9]") + after)
	if err != nil { // the pattern is not UTF-8, as no number is
		return func(string) bool { return false }
	}
	return contains.MatchString
}

// ClockFilters are the three filters on a time: on it, up to it, from it on.
// Twilio words the edges of X< differently by list: for calls "before this
// date", for messages "on and before". A time equal to the edge is included;
// the quirks edge-exclusive, before-whole-day and before-midnight change that.
func ClockFilters(key string, wholeDay bool, name string) (all []Filter) {
	for _, edge := range []string{"", "<", ">"} {
		all = append(all, Filter{Key: key + edge, Read: func(x *Request, value string) (Condition, *format.Answer) {
			return timeCondition(x, value, name, func(d format.Span) (first, last int64) {
				switch first, last = math.MinInt64, math.MaxInt64; {
				case edge == "":
					return d.From, d.Until - 1
				case edge == ">" && x.Quirks[EdgeExclusive]:
					first = d.From + 1
				case edge == ">":
					first = d.From
				case x.Quirks[EdgeExclusive]:
					last = d.From - 1
				case (wholeDay || x.Quirks[BeforeWholeDay]) && !x.Quirks[BeforeMidnight]:
					last = d.Until - 1
				default:
					last = d.From
				}
				return first, last
			})
		}})
	}
	return all
}

// timeCondition asks for times in the range that edges makes of the value. No
// time of a record lies before its creation, nor more than slack after it
// unless the record is a late one.
func timeCondition(x *Request, value, name string, edges func(format.Span) (int64, int64)) (Condition, *format.Answer) {
	if strings.HasPrefix(value, ">") || strings.HasPrefix(value, "<") {
		if x.Quirks[OperatorRefused] {
			return Condition{}, format.NewInvalid("Invalid date value.")
		}
		return Always, nil
	}
	asked, ok := format.ParseDate(value)
	if !ok {
		return Condition{}, format.NewInvalid("Invalid date value.")
	}
	if x.Quirks[Retention] && x.S.Kind.Retained && asked.From < x.W.Now().Unix()-400*86400 {
		return Condition{}, format.Refuse(400, 20004, "Date range specified in query is partially or entirely outside of retention window "+
			"of 400 days")
	}
	first, last := edges(asked)
	c := Condition{
		Test: func(r *Row) bool { t := r.Value(name).(int64); return t != 0 && t >= first && t <= last },
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
