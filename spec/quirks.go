// Quirks: what an API does with list requests that are not quite right.

package spec

import (
	"fmt"
	"slices"
)

// Quirks says what an API does with list requests that are not quite right. Upstream's
// text for a refusal is in the errors' messages; a refusal without a text there is not
// known.
type Quirks struct {
	Operator string `yaml:"operator"`   // a time that begins with < or >: ignored (default), refused
	Size     string `yaml:"size"`       // a page size that is no number above 0: refused (default), default
	Above    string `yaml:"size_above"` // a page size above the largest: largest (default), refused
	Alone    string `yaml:"page_alone"` // a page number without a token: counts (default), ignored
}

// The values of Quirks.
const (
	QuirkIgnored = "ignored"
	QuirkRefused = "refused"
	QuirkDefault = "default"
	QuirkLargest = "largest"
	QuirkCounts  = "counts"
)

// FilterOps are the ways in which a filter tests its field. The field is the value. Its
// time lies within the day (month, year, second) given, at its beginning or later, up
// to it, or before it. Its text contains the value, also with a star for any digit.
// With widen, true makes the list show what it otherwise leaves out.
func FilterOps() []string {
	return []string{"is", "day", "since", "until", "before", "contains", "digits", "widen"}
}

// check fills in defaults and refuses unknown values.
func (o *Quirks) check() error {
	for _, one := range []struct {
		name  string
		value *string
		ways  []string
	}{
		{"operator", &o.Operator, []string{QuirkIgnored, QuirkRefused}},
		{"size", &o.Size, []string{QuirkRefused, QuirkDefault}},
		{"size_above", &o.Above, []string{QuirkLargest, QuirkRefused}},
		{"page_alone", &o.Alone, []string{QuirkCounts, QuirkIgnored}},
	} {
		if *one.value == "" {
			*one.value = one.ways[0]
		}
		if !slices.Contains(one.ways, *one.value) {
			return fmt.Errorf("odd.%s %q: want %s or %s", one.name, *one.value, one.ways[0], one.ways[1])
		}
	}
	return nil
}

// check makes sure that a filter has a known operator and a fitting type.
func (f *Filter) check() error {
	switch edge := f.Op == "since" || f.Op == "until"; {
	case !slices.Contains(FilterOps(), f.Op):
		return fmt.Errorf("filter %s: op %q: want one of %v", f.Name, f.Op, FilterOps())
	case f.Open && !edge:
		return fmt.Errorf("filter %s: open: the op must be since or until", f.Name)
	case f.Back < 0 || f.Longest < 0:
		return fmt.Errorf("filter %s: back and longest are days, 0 or more", f.Name)
	case f.Longest > 0 && f.Op != "since":
		return fmt.Errorf("filter %s: longest: the op must be since", f.Name)
	}
	return nil
}
