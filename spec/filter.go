// Filter: a query parameter by which a list selects or orders its records.

package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"understudy"
	"understudy/kit/suggest"
)

// Filter is a query parameter by which a list selects or orders records.
type Filter struct {
	Name  string `yaml:"name"`  // the name of the parameter in the upstream's spelling, with the operator, such as StartTime>
	Field string `yaml:"field"` // the field that the parameter tests, or "" if no field contains the value
	Op    string `yaml:"op"`    // how the field is compared with the value: one of FilterOps; default is
	Type  string `yaml:"type"`  // the type of the input field: text, rfc2822, date, bool, select, int
	// Values are the choices of a parameter of type select.
	Values []string `yaml:"values"`
	Title  string   `yaml:"title"`
	// WholePeriod is for op until: if the value is a day, month or year, its end counts instead of its beginning.
	WholePeriod bool `yaml:"whole"`
	// Exclusive is for the ops since and until: the given time itself is excluded.
	Exclusive bool `yaml:"open"`
	// MaxDaysBack is how many days a time may lie in the past. MaxDays, for op since, limits the number of days to the
	// list's parameter with op until for the same field, or to now. A value beyond a limit is refused. 0 means no limit.
	MaxDaysBack int `yaml:"back"`
	MaxDays     int `yaml:"longest"`

	Meaning `yaml:",inline"`
}

// Meaning says what a filter's values mean to the API.
type Meaning struct {
	// Default is the value that applies if the parameter is absent. "" means that the filter then selects
	// everything, "!x" that it selects everything except x.
	Default string `yaml:"default"`
	// SelectAll are the values that select everything: all, *.
	SelectAll []string `yaml:"none"`
	// Special are the values that do not stand for a value of the field, such as none.
	Special []string `yaml:"special"`
	// FoldCase is for op is: letter case does not matter.
	FoldCase bool `yaml:"fold"`
	// NewestFirst is for op order: the value that returns the newest records first, if that is not the default order.
	NewestFirst string `yaml:"newest"`
	// ListMatch is for op is: the value is a list separated by commas. With "one" the field must have one of its elements,
	// with "all" it must have all of them.
	ListMatch string `yaml:"many"`
	// Required means that the upstream refuses the list without the parameter.
	Required bool `yaml:"required"`
}

// CanOmit reports whether the value can be left out of the upstream request because it is the default. If no SelectAll
// value overrides the default, it may be a mistake in the API's document. Then the request keeps what the caller wrote.
func (f *Filter) CanOmit(value string) bool {
	known := len(f.SelectAll) > 0 || !f.isSelecting()
	return known && value == f.Default && f.ExcludedValue() == ""
}

// ExcludedValue returns the value of the field whose records a list leaves out if the parameter is absent, or "".
func (f *Filter) ExcludedValue() string {
	but, _ := strings.CutPrefix(f.Default, "!")
	if but == f.Default {
		return ""
	}
	return but
}

// IsNarrowing reports whether a value selects fewer records than exist.
func (f *Filter) IsNarrowing(value string) bool {
	return f.isSelecting() && value != "" && !slices.Contains(f.SelectAll, value)
}

// Ops of parameters that select no records. opOrder sets the order of records. opAside changes what the answer contains
// in addition to the records, such as their number.
const (
	opOrder = "order"
	opAside = "aside"
)

// isSelecting reports whether the parameter decides which records a list contains.
func (f *Filter) isSelecting() bool { return f.Op != opOrder && f.Op != opAside }

// UnfilteredQuery returns the parameters with which the upstream leaves out no record: a SelectAll value for
// each filter with a default. Where the list allows it, the newest records come first. ok is false if a filter
// has no such value or is required.
func (l *List) UnfilteredQuery() (q understudy.Query, ok bool) {
	for _, f := range l.Filters {
		switch {
		case f.Required:
			return nil, false
		case f.Op == opOrder && f.NewestFirst != "":
			q = append(q, understudy.Param{Name: f.Name, Value: f.NewestFirst})
		case f.Default == "" || !f.isSelecting():
		case len(f.SelectAll) == 0:
			return nil, false
		default:
			q = append(q, understudy.Param{Name: f.Name, Value: f.SelectAll[0]})
		}
	}
	return q, true
}

// HasRequiredFilter reports whether the upstream refuses the list without one of its filters. Such a list is
// not fetched on its own.
func (l *List) HasRequiredFilter() bool {
	return slices.ContainsFunc(l.Filters, func(f *Filter) bool { return f.Required })
}

// IsReordered reports whether the request asks for an order other than the usual one and other than newest first.
func (t *Target) IsReordered() bool {
	return t.List != nil && !t.IsNewestFirst() && slices.ContainsFunc(t.Query, func(p understudy.Param) bool {
		f := t.List.Filter(p.Name)
		return f != nil && f.Op == opOrder && p.Value != f.Default
	})
}

// IsNewestFirst reports whether the list returns its newest rows first, the order in which records are stored.
func (t *Target) IsNewestFirst() bool {
	return t.List != nil && !t.List.Unordered && !slices.ContainsFunc(t.List.Filters, func(f *Filter) bool {
		value, there := t.Query.Get(f.Name)
		if !there {
			value = f.Default
		}
		return f.Op == opOrder && value != cmp.Or(f.NewestFirst, f.Default)
	})
}

// FilterOps returns the ways in which a filter tests its field. is: the field has the value. day: its time is within
// the given day (month, year, second). since: its time is at the given time or later. until: at the given time or
// earlier. before: earlier than the given time. contains: its text contains the value. digits: the same, but a star
// stands for any digit. widen: the value true makes the list return records that it otherwise leaves out. order and
// aside select nothing: they set the order of records, or what the answer contains in addition to them.
func FilterOps() []string {
	return []string{"is", "day", "since", "until", "before", "contains", "digits", "widen", opOrder, opAside}
}

// check checks that a filter has a known operator and fitting options.
func (f *Filter) check() error {
	switch edge := f.Op == "since" || f.Op == "until"; {
	case !slices.Contains(FilterOps(), f.Op):
		return addPath(fmt.Errorf("filter %s: op %q is not one of %v%s", f.Name, f.Op, FilterOps(), suggest.Hint(f.Op, FilterOps())), "op")
	case f.Exclusive && !edge:
		return fmt.Errorf("filter %s: open is only for op: since and until", f.Name)
	case f.MaxDaysBack < 0 || f.MaxDays < 0:
		return fmt.Errorf("filter %s: back or longest is negative; write a number of days", f.Name)
	case f.MaxDays > 0 && f.Op != "since":
		return fmt.Errorf("filter %s: longest is only for op: since", f.Name)
	case !f.isSelecting() && (f.Default == "" || f.Field != "" || len(f.SelectAll) > 0):
		return fmt.Errorf("filter %s: op: %s selects no records, so the filter needs a default, and can have neither field nor none", f.Name,
			f.Op)
	case f.FoldCase && (f.Op != "is" || f.Type == TypeBool), len(f.Special) > 0 && f.Op != "is":
		return fmt.Errorf("filter %s: fold and special are only for op: is, and fold only for texts", f.Name)
	case f.NewestFirst != "" && (f.Op != opOrder || f.NewestFirst == f.Default):
		return fmt.Errorf("filter %s: newest is only for op: order, and its value differs from the default", f.Name)
	case f.Required && (f.Default != "" || !f.isSelecting()):
		return fmt.Errorf("filter %s: a required filter has no default, and its op selects records", f.Name)
	case f.ListMatch != "" && (f.Op != "is" || f.ListMatch != "one" && f.ListMatch != "all"):
		return fmt.Errorf("filter %s: many is only for op: is; write one or all", f.Name)
	case slices.Contains(f.SelectAll, "") || f.Default != "" && slices.Contains(f.SelectAll, f.Default):
		return fmt.Errorf("filter %s: none has an empty value or the default; write other values", f.Name)
	}
	return nil
}
