// Filter: which records belong to a list.

package compose

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"understudy"
	"understudy/internal/query"
	"understudy/spec"
)

// filter takes one of the list's filters in, if it was given. One that is bare
// or empty narrows nothing.
func (l *List) filter(f *spec.Filter) error {
	p, there := l.req.given(f.Name)
	switch {
	case there && p.Value == "" && f.Default != "":
		return fmt.Errorf("%w: what upstream makes of an empty %s nobody knows", understudy.ErrInvalid, f.Name)
	case !there && f.AllBut() != "":
		l.test(f.Field, query.Not{Test: same(f.AllBut())})
		return nil
	case !there:
		p.Value = f.Default
	}
	if f.Op == "aside" && p.Value != f.Default {
		return fmt.Errorf("%w: what %s adds beside the records is not held", understudy.ErrInvalid, f.Name)
	}
	if p.Value == "" || !f.Narrows(p.Value) {
		return nil
	}
	if f.Op == "widen" {
		return l.req.widen(f, p.Value)
	}
	if l.req.o.Local != nil && l.req.o.Local.Equal[f.Name].Test != nil {
		l.equal(f, l.req.o.Local.Equal[f.Name])
		return nil
	}
	if slices.Contains(f.Special, p.Value) {
		return fmt.Errorf("%w: what upstream shows of %s %s is not told by one value", understudy.ErrInvalid, f.Name, p.Value)
	}
	if f.Field == "" {
		return fmt.Errorf("%w: no field of a record shows what %s looks at", understudy.ErrInvalid, f.Name)
	}
	switch f.Op {
	case "is":
		return l.filterIs(f, p.Value)
	case "day", "since", "until", "before":
		return l.clock(f, p.Value)
	case "contains":
		l.test(f.Field, query.Contains(p.Value))
	case "digits":
		l.test(f.Field, query.Digits(p.Value))
	default:
		return fmt.Errorf("%w: %s cannot be asked of records", understudy.ErrInvalid, f.Name)
	}
	return nil
}

// is asks for one value of a field.
func (l *List) is(name, value string) {
	l.seek.Predicates = append(l.seek.Predicates, query.Predicate{Field: name, Any: []string{value}})
	l.test(name, same(value))
}

// scanned reports whether no index is asked for a filter on a field (Wish.Scan). A
// time of the kind's clock says where to read.
func (l *listRequest) scanned(field string) bool {
	return l.o.Local != nil && l.o.Local.Scan && field != l.target.Kind.Clock
}

func (l *List) filterIs(f *spec.Filter, value string) error {
	if f.Type == spec.TypeBool {
		asked, ok := truth(value)
		if !ok {
			return l.req.refuse("bool")
		}
		value = strconv.FormatBool(asked)
	}
	if f.Many != "" {
		l.many(f, strings.Split(value, ","))
		return nil
	}
	if f.Fold {
		l.test(f.Field, query.Elements{Texts: []string{value}, Fold: true})
		return nil
	}
	if l.req.scanned(f.Field) {
		l.test(f.Field, same(value))
		return nil
	}
	l.is(f.Field, value)
	return nil
}

// many asks for one, or for all, of several values.
func (l *List) many(f *spec.Filter, values []string) {
	if f.Many == "one" && l.req.target.Kind.Field(f.Field) != nil && !strings.Contains(f.Field, ".") && !l.req.scanned(f.Field) && !f.Fold {
		l.seek.Predicates = append(l.seek.Predicates, query.Predicate{Field: f.Field, Any: values})
	}
	head, rest, _ := strings.Cut(f.Field, ".")
	l.test(head, query.Elements{Inside: rest, Texts: values, All: f.Many == "all", Fold: f.Fold})
}

// equal takes in a filter whose value stands for another one (LocalQuery.Equal).
func (l *List) equal(f *spec.Filter, e query.Equality) {
	if e.Predicate != nil && !l.req.scanned(f.Field) {
		l.seek.Predicates = append(l.seek.Predicates, *e.Predicate)
	}
	l.test(f.Field, e.Test)
}

func truth(value string) (is, ok bool) {
	is = strings.EqualFold(value, "true")
	return is, is || strings.EqualFold(value, "false")
}

// widen is a filter that makes upstream show what its lists leave out. Nobody
// holds that.
func (l *listRequest) widen(f *spec.Filter, value string) error {
	asked, ok := truth(value)
	switch {
	case !ok:
		return l.refuse("bool")
	case asked:
		return fmt.Errorf("%w: what %s adds is not held", understudy.ErrInvalid, f.Name)
	}
	return nil
}

const day = 86400

// clock adds the test of a time.
func (l *List) clock(f *spec.Filter, value string) error {
	if err := l.req.longest(f, value); err != nil {
		return err
	}
	if value[0] == '<' || value[0] == '>' {
		if l.req.target.Spec.Quirks.Operator == spec.QuirkIgnored {
			return nil
		}
		return l.req.refuse("date")
	}
	if f.Type == spec.TypeMillis {
		return fmt.Errorf("%w: times of records are known to the second, and %s takes milliseconds", understudy.ErrInvalid, f.Name)
	}
	asked, ok := spanOf(f, value)
	switch _, err := strconv.ParseFloat(value, 64); {
	case ok:
	case err == nil && inSeconds(f):
		return fmt.Errorf("%w: what upstream makes of %s nobody knows", understudy.ErrInvalid, understudy.Clip(value))
	default:
		return l.req.refuse("date")
	}
	if f.Back > 0 {
		now, err := l.req.now(f)
		if err != nil {
			return err
		}
		if asked.from < now-int64(f.Back)*day {
			return l.req.refuse("retention")
		}
	}
	l.between(f.Field, edges(f, asked))
	return nil
}

// longest refuses a stretch of time that is longer than upstream allows.
func (l *listRequest) longest(f *spec.Filter, value string) error {
	if f.Longest == 0 {
		return nil
	}
	asked, ok := spanOf(f, value)
	if !ok {
		return nil
	}
	for _, other := range l.target.List.Filters {
		if other.Field != f.Field || other.Op != "until" && other.Op != "before" {
			continue
		}
		p, _ := l.given(other.Name)
		if end, ok := spanOf(other, p.Value); ok {
			return l.notLonger(f, asked.from, end.from)
		}
	}
	now, err := l.now(f)
	if err != nil {
		return err
	}
	return l.notLonger(f, asked.from, now)
}

func (l *listRequest) notLonger(f *spec.Filter, from, to int64) error {
	if to/day-from/day > int64(f.Longest) {
		return l.refuse("range")
	}
	return nil
}

// spanOf is the time that a filter is given: in seconds where it takes a number.
func spanOf(f *spec.Filter, value string) (span, bool) {
	if !inSeconds(f) {
		return parseSpan(value)
	}
	at, err := strconv.ParseInt(value, 10, 64)
	if err != nil || at < 0 || at > mostSeconds {
		return span{}, false
	}
	return second(at)
}

// inSeconds reports whether a filter on a time takes a number.
func inSeconds(f *spec.Filter) bool {
	return f.Type == spec.TypeEpoch || f.Type == spec.TypeInt
}

// mostSeconds is far beyond every time there is.
const mostSeconds = 1 << 40

func (l *listRequest) now(f *spec.Filter) (int64, error) {
	if l.o.Now == nil {
		return 0, fmt.Errorf("%w: what upstream says to %s depends on the time", understudy.ErrInvalid, f.Name)
	}
	return l.o.Now().Unix(), nil
}

// edges are the first and the last second that a filter means.
func edges(f *spec.Filter, asked span) (e [2]int64) {
	first, last := int64(math.MinInt64), int64(math.MaxInt64)
	switch {
	case f.Op == "day":
		first, last = asked.from, asked.until-1
	case f.Op == "since" && f.Open:
		first = asked.from + 1
	case f.Op == "since":
		first = asked.from
	case f.Op == "before" || f.Open:
		last = asked.from - 1
	case f.Whole:
		last = asked.until - 1
	default:
		last = asked.from
	}
	return [2]int64{first, last}
}

// between asks for a time of a field. Places are of no use here: a record keeps
// its own while its clock may still move.
func (l *List) between(name string, e [2]int64) {
	term := query.Predicate{Field: name}
	if e[0] > 0 {
		term.From = e[0]
	}
	if e[1] != math.MaxInt64 {
		term.To = max(e[1]+1, 1)
	}
	if (term.From != 0 || term.To != 0) && !l.req.scanned(name) {
		l.seek.Predicates = append(l.seek.Predicates, term)
	}
	until := int64(math.MaxInt64)
	if e[1] < until {
		until = e[1] + 1
	}
	l.test(name, query.Times{{From: e[0], To: until}})
}
