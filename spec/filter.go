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

// Filter is one query parameter by which a list selects records.
type Filter struct {
	Name  string `yaml:"name"`  // as upstream spells it, operator included: StartTime>
	Field string `yaml:"field"` // what it looks at; "" when no field shows it
	Op    string `yaml:"op"`    // one of FilterOps; default is
	Type  string `yaml:"type"`  // input type: text, rfc2822, date, bool, select, int
	// Values are the choices of a select.
	Values []string `yaml:"values"`
	Title  string   `yaml:"title"`
	// Whole: with op until a day, month or year counts up to its end, not to
	// its beginning.
	Whole bool `yaml:"whole"`
	// Open: with op since or until the edge itself is excluded.
	Open bool `yaml:"open"`
	// Back is how many days back from now a time may lie. Longest, with op since, is how
	// many days may lie between it and the list's until on the same field, or now without
	// that. More is refused. 0 = any.
	Back    int `yaml:"back"`
	Longest int `yaml:"longest"`

	Meaning `yaml:",inline"`
}

// Meaning is what values of a filter mean to the API.
type Meaning struct {
	// Default is the value that it takes when the parameter is absent; "": it narrows nothing.
	// "!x": then all but x.
	Default string `yaml:"default"`
	// None are the values that narrow nothing: all, *.
	None []string `yaml:"none"`
	// Special are the values that mean something else than a value of the field: none.
	Special []string `yaml:"special"`
	// Fold, with op is: upper and lower case are the same.
	Fold bool `yaml:"fold"`
	// Newest, with op order, is the value with which the newest records come first, where
	// they do not without the parameter.
	Newest string `yaml:"newest"`
	// Many, with op is, says that a value is a list with commas in it: of which the field
	// has "one", or "all".
	Many string `yaml:"many"`
	// Required: upstream refuses the list without the parameter.
	Required bool `yaml:"required"`
}

// Plain reports whether a value of the filter is left out when upstream is asked, as it
// means the same. A default that no value of None takes away may be a mistake of the API's
// document: the request says what the caller wrote.
func (f *Filter) Plain(value string) bool {
	known := len(f.None) > 0 || !f.selects()
	return known && value == f.Default && f.AllBut() == ""
}

// AllBut is the value of which a list without the parameter shows no record; "": there is
// none.
func (f *Filter) AllBut() string {
	but, _ := strings.CutPrefix(f.Default, "!")
	if but == f.Default {
		return ""
	}
	return but
}

// Narrows reports whether a value selects fewer records than there are.
func (f *Filter) Narrows(value string) bool {
	return f.selects() && value != "" && !slices.Contains(f.None, value)
}

// The ops of parameters that select nothing: one says in which order records come, the other
// changes what stands beside them, such as their number.
const (
	opOrder = "order"
	opAside = "aside"
)

// selects reports whether the parameter decides which records a list has.
func (f *Filter) selects() bool { return f.Op != opOrder && f.Op != opAside }

// Everything are the parameters with which upstream leaves out no record of the list: of
// each filter with a default, a value that narrows nothing. The newest records come first,
// where the list can show them so. ok is false when a filter has no such value, or is
// required.
func (l *List) Everything() (q understudy.Query, ok bool) {
	for _, f := range l.Filters {
		switch {
		case f.Required:
			return nil, false
		case f.Op == opOrder && f.Newest != "":
			q = append(q, understudy.Param{Name: f.Name, Value: f.Newest})
		case f.Default == "" || !f.selects():
		case len(f.None) == 0:
			return nil, false
		default:
			q = append(q, understudy.Param{Name: f.Name, Value: f.None[0]})
		}
	}
	return q, true
}

// Demands reports whether upstream refuses the list without one of its filters: it is not
// asked for by itself.
func (l *List) Demands() bool {
	return slices.ContainsFunc(l.Filters, func(f *Filter) bool { return f.Required })
}

// Reordered reports whether a list is asked for in another order than its usual one and
// than the newest first.
func (t *Target) Reordered() bool {
	return t.List != nil && !t.NewestFirst() && slices.ContainsFunc(t.Query, func(p understudy.Param) bool {
		f := t.List.Filter(p.Name)
		return f != nil && f.Op == opOrder && p.Value != f.Default
	})
}

// NewestFirst reports whether the rows of a list come newest first, as records are kept.
func (t *Target) NewestFirst() bool {
	return t.List != nil && !t.List.Unordered && !slices.ContainsFunc(t.List.Filters, func(f *Filter) bool {
		value, there := t.Query.Get(f.Name)
		if !there {
			value = f.Default
		}
		return f.Op == opOrder && value != cmp.Or(f.Newest, f.Default)
	})
}

// FilterOps are the ways in which a filter tests its field. The field is the value. Its
// time lies within the day (month, year, second) given, at its beginning or later, up
// to it, or before it. Its text contains the value, also with a star for any digit.
// With widen, true makes the list show what it otherwise leaves out. With order and aside, the
// parameter selects nothing: it says in which order records come, or what stands beside them.
func FilterOps() []string {
	return []string{"is", "day", "since", "until", "before", "contains", "digits", "widen", opOrder, opAside}
}

// check makes sure that a filter has a known operator and a fitting type.
func (f *Filter) check() error {
	switch edge := f.Op == "since" || f.Op == "until"; {
	case !slices.Contains(FilterOps(), f.Op):
		return in(fmt.Errorf("filter %s: op %q: want one of %v%s", f.Name, f.Op, FilterOps(), suggest.Hint(f.Op, FilterOps())), "op")
	case f.Open && !edge:
		return fmt.Errorf("filter %s: open: the op must be since or until", f.Name)
	case f.Back < 0 || f.Longest < 0:
		return fmt.Errorf("filter %s: back and longest are days, 0 or more", f.Name)
	case f.Longest > 0 && f.Op != "since":
		return fmt.Errorf("filter %s: longest: the op must be since", f.Name)
	case !f.selects() && (f.Default == "" || f.Field != "" || len(f.None) > 0):
		return fmt.Errorf("filter %s: with %s it wants its default, the usual value, and looks at no field", f.Name, f.Op)
	case f.Fold && (f.Op != "is" || f.Type == TypeBool), len(f.Special) > 0 && f.Op != "is":
		return fmt.Errorf("filter %s: fold and special: the op must be is, of a text", f.Name)
	case f.Newest != "" && (f.Op != opOrder || f.Newest == f.Default):
		return fmt.Errorf("filter %s: newest: the op must be order, and the value another than the default", f.Name)
	case f.Required && (f.Default != "" || !f.selects()):
		return fmt.Errorf("filter %s: required: it has no default then, and selects records", f.Name)
	case f.Many != "" && (f.Op != "is" || f.Many != "one" && f.Many != "all"):
		return fmt.Errorf("filter %s: many: want one or all, and the op is", f.Name)
	case slices.Contains(f.None, "") || f.Default != "" && slices.Contains(f.None, f.Default):
		return fmt.Errorf("filter %s: none: want values other than the default, none empty", f.Name)
	}
	return nil
}
