// Filters: which records belong to a list.

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

// addFilter adds the condition of one filter if the request uses the filter. A filter with an empty value has no effect.
func (l *List) addFilter(f *spec.Filter) error {
	p, there := l.req.param(f.Name)
	switch {
	case there && p.Value == "" && f.Default != "":
		return fmt.Errorf("%w: upstream's answer to an empty %s is not known", understudy.ErrInvalid, f.Name)
	case !there && f.ExcludedValue() != "":
		l.addTest(f.Field, query.Not{Test: equalTest(f.ExcludedValue())})
		return nil
	case !there:
		p.Value = f.Default
	}
	if f.Op == "aside" && p.Value != f.Default {
		return fmt.Errorf("%w: the data that %s adds to the records is not stored", understudy.ErrInvalid, f.Name)
	}
	if p.Value == "" || !f.IsNarrowing(p.Value) {
		return nil
	}
	if f.Op == "widen" {
		return l.req.refuseWidening(f, p.Value)
	}
	if local := l.req.options.Local; local != nil && local.Conditions[f.Name].Test != nil {
		e := local.Conditions[f.Name] // its value stands for another value, such as a hash
		if e.Predicate != nil && !l.req.isScanned(f.Field) {
			l.seek.Predicates = append(l.seek.Predicates, *e.Predicate)
		}
		l.addTest(f.Field, e.Test)
		return nil
	}
	if slices.Contains(f.Special, p.Value) {
		return fmt.Errorf("%w: the meaning of %s %s is not a single stored value", understudy.ErrInvalid, f.Name, p.Value)
	}
	if f.Field == "" {
		return fmt.Errorf("%w: no field of a record has the value that %s filters by", understudy.ErrInvalid, f.Name)
	}
	switch f.Op {
	case "is":
		return l.addEqualFilter(f, p.Value)
	case "day", "since", "until", "before":
		return l.addTimeFilter(f, p.Value)
	case "contains":
		l.addTest(f.Field, query.Contains(p.Value))
	case "digits":
		l.addTest(f.Field, query.Digits(p.Value))
	default:
		return fmt.Errorf("%w: stored records cannot be filtered by %s", understudy.ErrInvalid, f.Name)
	}
	return nil
}

// addEqual adds the condition that a field has one value.
func (l *List) addEqual(name, value string) {
	l.seek.Predicates = append(l.seek.Predicates, query.Predicate{Field: name, Any: []string{value}})
	l.addTest(name, equalTest(value))
}

// isScanned reports whether the filter must be tested on every record and not by an index (LocalQuery.Scan). The
// kind's clock field is an exception, because it decides where reading begins.
func (l *listRequest) isScanned(field string) bool {
	return l.options.Local != nil && l.options.Local.NoIndex && field != l.target.Kind.Clock
}

// addEqualFilter adds a filter that accepts one value, or several values separated by commas.
func (l *List) addEqualFilter(f *spec.Filter, value string) error {
	if f.Type == spec.TypeBool {
		asked, ok := parseBool(value)
		if !ok {
			return l.req.refuse("bool")
		}
		value = strconv.FormatBool(asked)
	}
	if f.ListMatch != "" {
		values := strings.Split(value, ",") // a record must have one of them, or all
		if f.ListMatch == "one" && l.req.target.Kind.Field(f.Field) != nil && !strings.Contains(f.Field, ".") &&
			!l.req.isScanned(f.Field) && !f.FoldCase {
			l.seek.Predicates = append(l.seek.Predicates, query.Predicate{Field: f.Field, Any: values})
		}
		head, rest, _ := strings.Cut(f.Field, ".")
		l.addTest(head, query.Elements{Member: rest, Texts: values, All: f.ListMatch == "all", FoldCase: f.FoldCase})
		return nil
	}
	if f.FoldCase {
		l.addTest(f.Field, query.Elements{Texts: []string{value}, FoldCase: true})
		return nil
	}
	if l.req.isScanned(f.Field) {
		l.addTest(f.Field, equalTest(value))
		return nil
	}
	l.addEqual(f.Field, value)
	return nil
}

func parseBool(value string) (is, ok bool) {
	is = strings.EqualFold(value, "true")
	return is, is || strings.EqualFold(value, "false")
}

// refuseWidening returns an error for a filter value that makes upstream show additional records. Such records are not
// in other lists, so they are not stored.
func (l *listRequest) refuseWidening(f *spec.Filter, value string) error {
	asked, ok := parseBool(value)
	switch {
	case !ok:
		return l.refuse("bool")
	case asked:
		return fmt.Errorf("%w: the records that %s adds are not stored", understudy.ErrInvalid, f.Name)
	}
	return nil
}

const secondsPerDay = 86400

// addTimeFilter adds a filter for a time.
func (l *List) addTimeFilter(f *spec.Filter, value string) error {
	if err := l.req.checkLongest(f, value); err != nil {
		return err
	}
	if value[0] == '<' || value[0] == '>' {
		if l.req.target.Spec.Quirks.Operator == spec.QuirkIgnored {
			return nil
		}
		return l.req.refuse("date")
	}
	if f.Type == spec.TypeMillis {
		return fmt.Errorf("%w: stored times are in whole seconds, and %s takes milliseconds", understudy.ErrInvalid, f.Name)
	}
	asked, ok := parseFilterTime(f, value)
	switch _, err := strconv.ParseFloat(value, 64); {
	case ok:
	case err == nil && isInSeconds(f):
		return fmt.Errorf("%w: upstream's answer to %s is not known", understudy.ErrInvalid, understudy.Clip(value))
	default:
		return l.req.refuse("date")
	}
	if f.MaxDaysBack > 0 {
		now, err := l.req.readClock(f)
		if err != nil {
			return err
		}
		if asked.from < now-int64(f.MaxDaysBack)*secondsPerDay {
			return l.req.refuse("retention")
		}
	}
	l.addTimeRange(f.Field, timeEdges(f, asked))
	return nil
}

// checkLongest returns upstream's refusal if the time range of the request is longer than upstream allows.
func (l *listRequest) checkLongest(f *spec.Filter, value string) error {
	if f.MaxDays == 0 {
		return nil
	}
	asked, ok := parseFilterTime(f, value)
	if !ok {
		return nil
	}
	for _, other := range l.target.List.Filters {
		if other.Field != f.Field || other.Op != "until" && other.Op != "before" {
			continue
		}
		p, _ := l.param(other.Name)
		if end, ok := parseFilterTime(other, p.Value); ok {
			return l.checkRange(f, asked.from, end.from)
		}
	}
	now, err := l.readClock(f)
	if err != nil {
		return err
	}
	return l.checkRange(f, asked.from, now)
}

func (l *listRequest) checkRange(f *spec.Filter, from, to int64) error {
	if to/secondsPerDay-from/secondsPerDay > int64(f.MaxDays) {
		return l.refuse("range")
	}
	return nil
}

// parseFilterTime parses the time in a filter. If the filter takes a number, the number is in seconds.
func parseFilterTime(f *spec.Filter, value string) (span, bool) {
	if !isInSeconds(f) {
		return parseSpan(value)
	}
	at, err := strconv.ParseInt(value, 10, 64)
	if err != nil || at < 0 || at > maxSeconds {
		return span{}, false
	}
	return oneSecond(at)
}

// isInSeconds reports whether a filter for a time takes a number.
func isInSeconds(f *spec.Filter) bool {
	return f.Type == spec.TypeEpoch || f.Type == spec.TypeInt
}

// maxSeconds is a number of seconds that is later than any time in a record.
const maxSeconds = 1 << 40

func (l *listRequest) readClock(f *spec.Filter) (int64, error) {
	if l.options.Now == nil {
		return 0, fmt.Errorf("%w: upstream's answer to %s depends on the current time", understudy.ErrInvalid, f.Name)
	}
	return l.options.Now().Unix(), nil
}

// timeEdges returns the first and the last second that a filter for a time accepts.
func timeEdges(f *spec.Filter, asked span) (e [2]int64) {
	first, last := int64(math.MinInt64), int64(math.MaxInt64)
	switch {
	case f.Op == "day":
		first, last = asked.from, asked.until-1
	case f.Op == "since" && f.Exclusive:
		first = asked.from + 1
	case f.Op == "since":
		first = asked.from
	case f.Op == "before" || f.Exclusive:
		last = asked.from - 1
	case f.WholePeriod:
		last = asked.until - 1
	default:
		last = asked.from
	}
	return [2]int64{first, last}
}

// addTimeRange adds the condition that the time in a field is in a range. It cannot use the places of records,
// because a record keeps its place even if its clock field changes.
func (l *List) addTimeRange(name string, e [2]int64) {
	term := query.Predicate{Field: name}
	if e[0] > 0 {
		term.From = e[0]
	}
	if e[1] != math.MaxInt64 {
		term.To = max(e[1]+1, 1)
	}
	if (term.From != 0 || term.To != 0) && !l.req.isScanned(name) {
		l.seek.Predicates = append(l.seek.Predicates, term)
	}
	until := int64(math.MaxInt64)
	if e[1] < until {
		until = e[1] + 1
	}
	l.addTest(name, query.Times{{From: e[0], To: until}})
}
