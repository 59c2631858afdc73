// Tests: which records belong to a list.

package compose

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/kit/jsonspan"
)

// test says whether a record belongs to the list.
type test func(body []byte) bool

// mentions asks for records in which a value stands as a string: what lies
// under one account names it.
func mentions(value string) test {
	quoted := jsonspan.Quote(nil, value)
	return func(body []byte) bool { return bytes.Contains(body, quoted) }
}

// field finds a record's field; its text is "" when it is null or absent.
func field(body []byte, name string) (text string, there bool) {
	v, ok := jsonspan.Find(body, jsonspan.Value{Kind: jsonspan.Object, End: len(body)}, name)
	if !ok || v.Kind == jsonspan.Null {
		return "", false
	}
	return jsonspan.Text(body, v), true
}

// only asks for one value of a field.
func only(_ *understudy.Field, name, value string) test {
	return func(body []byte) bool {
		text, _ := field(body, name)
		return text == value
	}
}

// filter adds the test of one filter with its value.
func (l *List) filter(f *understudy.Filter, value string) error {
	if f.Field == "" {
		return fmt.Errorf("%w: no field of a record shows what %s looks at", understudy.ErrInvalid, f.Name)
	}
	switch f.Op {
	case "is":
		return l.is(f, value)
	case "day", "since", "until":
		return l.clock(f, value)
	case "contains":
		l.tests = append(l.tests, func(body []byte) bool {
			text, _ := field(body, f.Field)
			return strings.Contains(text, value)
		})
	case "digits":
		l.tests = append(l.tests, func(body []byte) bool {
			text, _ := field(body, f.Field)
			return containsPattern(text, value)
		})
	default:
		return fmt.Errorf("%w: %s cannot be asked of records", understudy.ErrInvalid, f.Name)
	}
	return nil
}

func (l *List) is(f *understudy.Filter, value string) error {
	if f.Type != "bool" {
		l.tests = append(l.tests, only(nil, f.Field, value))
		return nil
	}
	asked, err := strconv.ParseBool(strings.ToLower(value))
	if err != nil || len(value) < 4 {
		return fmt.Errorf("%w: %s must be true or false", understudy.ErrInvalid, f.Name)
	}
	l.tests = append(l.tests, only(nil, f.Field, strconv.FormatBool(asked)))
	return nil
}

// clock adds the test of a time. One on the kind's own clock narrows the
// window as well.
func (l *List) clock(f *understudy.Filter, value string) error {
	asked, ok := parseSpan(value)
	if !ok {
		return fmt.Errorf("%w: %s: %q is no date; write 2006-01-02 or 2006-01-02T15:04:05Z", understudy.ErrInvalid, f.Name, clip(value))
	}
	first, last := int64(math.MinInt64), int64(math.MaxInt64)
	switch {
	case f.Op == "day":
		first, last = asked.from, asked.until-1
	case f.Op == "since":
		first = asked.from
	case f.Whole:
		last = asked.until - 1
	default:
		last = asked.from
	}
	if f.Field == l.target.Kind.Clock {
		l.narrow(first, last)
	}
	typ := understudy.TypeText
	if known := l.target.Kind.Field(f.Field); known != nil {
		typ = known.Type
	}
	l.tests = append(l.tests, func(body []byte) bool {
		text, there := field(body, f.Field)
		at := understudy.Unix(typ, []byte(text))
		return there && at != 0 && at >= first && at <= last
	})
	return nil
}

// narrow makes the window no wider than [first, last].
func (l *List) narrow(first, last int64) {
	w := &l.window
	if first != math.MinInt64 && (w.From == 0 || first > w.From) {
		w.From = max(first, 1)
	}
	if last != math.MaxInt64 && (w.To == 0 || last+1 < w.To) {
		w.To = max(last+1, 1)
	}
}

// containsPattern reports whether pattern stands in text; a star is any digit.
func containsPattern(text, pattern string) bool {
	for at := 0; at+len(pattern) <= len(text); at++ {
		if matchesHere(text[at:], pattern) {
			return true
		}
	}
	return false
}

func matchesHere(text, pattern string) bool {
	for i := range len(pattern) {
		if c := text[i]; pattern[i] != c && (pattern[i] != '*' || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// span is the time a date covers, in Unix seconds: a second, a day, a month or
// a year.
type span struct{ from, until int64 }

// The forms in which an instant is asked for; a fraction of a second is read
// and dropped.
var instants = []string{
	time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", time.DateTime, "01/02/2006 15:04:05 MST", "01/02/2006 15:04:05",
}

func parseSpan(value string) (span, bool) {
	for form, years := range map[string][3]int{time.DateOnly: {0, 0, 1}, "2006-01": {0, 1, 0}, "2006": {1, 0, 0}} {
		if t, err := time.Parse(form, value); err == nil {
			return span{t.Unix(), t.AddDate(years[0], years[1], years[2]).Unix()}, true
		}
	}
	for _, form := range instants {
		if t, err := time.Parse(form, value); err == nil {
			return span{t.Unix(), t.Unix() + 1}, true
		}
	}
	return span{}, false
}

func clip(s string) string {
	const most = 40
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// Place is the time by which a record stands in lists, in Unix seconds: that of
// its kind's clock or, while it has none, of its kind's order; 0 when it has
// neither. clocked says which.
func Place(k *understudy.Kind, body []byte) (at int64, clocked bool) {
	if at = timeOf(k, k.Clock, body); at != 0 {
		return at, true
	}
	return timeOf(k, k.Order, body), false
}

func timeOf(k *understudy.Kind, name string, body []byte) int64 {
	f := k.Field(name)
	if f == nil {
		return 0
	}
	text, _ := field(body, name)
	return understudy.Unix(f.Type, []byte(text))
}
