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
