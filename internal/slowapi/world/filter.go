// Filters: the parameters that restrict a list.
package world

import (
	"math"
	"regexp"
	"strings"

	"understudy/internal/slowapi/format"
)

// Filter is a query parameter that restricts a list.
type Filter struct {
	Key  string // the name of the parameter; if it ends with < or >, so does the name
	Read func(x *Request, value string) (Condition, *format.Answer)
}

// Condition is a filter with its value. Only records with an index from Lo to Hi, and late records, can meet it. So a
// range of time needs no search. Without Test, every record from Lo to Hi meets it.
type Condition struct {
	Test   func(*Row) bool
	Lo, Hi int64
}

// MatchAll is a condition that every record meets.
var MatchAll = Condition{Hi: math.MaxInt64}

// NewCondition returns a condition that must be tested for every record.
func NewCondition(test func(*Row) bool) Condition {
	return Condition{Test: test, Hi: math.MaxInt64}
}

// Match reports whether a record meets the condition.
func (c *Condition) Match(r *Row) bool {
	if c.Test == nil {
		return r.Index >= c.Lo && r.Index <= c.Hi
	}
	return c.Test(r)
}

// TextFilter returns a filter for records that have exactly the given text as a value.
func TextFilter(key, name string) Filter {
	return Filter{key, func(_ *Request, value string) (Condition, *format.Answer) {
		return NewCondition(func(r *Row) bool { return r.Value(name) == value }), nil
	}}
}

// BoolFilter returns a filter for records that have true, or false, as a value.
func BoolFilter(key, name string) Filter {
	return Filter{key, func(_ *Request, value string) (Condition, *format.Answer) {
		wanted, r := ReadBool(value)
		return NewCondition(func(r *Row) bool { v := r.Value(name); return (v == true || v == "true") == wanted }), r
	}}
}

// ReadBool parses the value of a filter, which must be true or false.
func ReadBool(value string) (wanted bool, r *format.Answer) {
	wanted = strings.EqualFold(value, "true")
	if !wanted && !strings.EqualFold(value, "false") {
		return false, format.NewInvalid("Invalid boolean value.")
	}
	return wanted, nil
}

// PatternFilter returns a filter for phone numbers that contain a pattern. A star in the pattern stands for any digit.
func PatternFilter(key, name string) Filter {
	return Filter{key, func(_ *Request, value string) (Condition, *format.Answer) {
		contains := Pattern("", value, "")
		return NewCondition(func(r *Row) bool {
			number, _ := r.Value(name).(string)
			return contains(number)
		}), nil
	}}
}

// Pattern returns a function that reports whether a phone number contains a pattern, in which a star stands for any
// digit. before and after are regular expressions that must match directly before and after the pattern.
func Pattern(before, pattern, after string) func(number string) bool {
	contains, err := regexp.Compile(before + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, "[0-9]") + after)
	if err != nil { // a pattern that is not valid UTF-8 is in no phone number
		return func(string) bool { return false }
	}
	return contains.MatchString
}

// TimeFilters returns three filters for a time: at a date, until a date (X<) and since a date (X>). Twilio documents
// X< in different ways: for calls as "before this date", for messages as "on and before". Here a time equal to the
// limit is included. The quirks edge-exclusive, before-whole-day and before-midnight change that.
func TimeFilters(key string, wholeDay bool, name string) (all []Filter) {
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

// timeCondition returns the condition that a time is in the range that edges returns for the value of a filter. No
// time in a record is earlier than its creation, and only late records have times more than maxFinalDelay after it.
func timeCondition(x *Request, value, name string, edges func(format.Span) (int64, int64)) (Condition, *format.Answer) {
	if strings.HasPrefix(value, ">") || strings.HasPrefix(value, "<") {
		if x.Quirks[OperatorRefused] {
			return Condition{}, format.NewInvalid("Invalid date value.")
		}
		return MatchAll, nil
	}
	span, ok := format.ParseDate(value)
	if !ok {
		return Condition{}, format.NewInvalid("Invalid date value.")
	}
	if x.Quirks[Retention] && x.Sequence.Kind.Retained && span.From < x.World.Now().Unix()-400*86400 {
		return Condition{}, format.Refuse(400, 20004, "Date range specified in query is partially or entirely outside of retention window "+
			"of 400 days")
	}
	first, last := edges(span)
	c := Condition{
		Test: func(r *Row) bool { t := r.Value(name).(int64); return t != 0 && t >= first && t <= last },
		Hi:   math.MaxInt64,
	}
	if first != math.MinInt64 {
		c.Lo = x.Sequence.FirstSince(first - maxFinalDelay)
	}
	if last != math.MaxInt64 {
		c.Hi = x.Sequence.FirstSince(last+1) - 1
	}
	return c, nil
}

// KeysOf returns the names of the parameters of filters.
func KeysOf(filters []Filter) []string {
	keys := make([]string, len(filters))
	for i, f := range filters {
		keys[i] = f.Key
	}
	return keys
}
