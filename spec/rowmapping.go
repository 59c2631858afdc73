// Row mapping: how a list's rows are made from records seen in another shape.

package spec

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// RowMapping says how the rows of a list below one record are made. They come from the
// same records in the shape From, that of a list of all records. So the list can be
// composed before a reader ever asks for it.
type RowMapping struct {
	From string `yaml:"from"` // a shape of the kind, that of a list which shows every record
	// Without are members of the body that these rows do not have. With are texts in place
	// of a member's value, with {Variable} of the path and {field} of the record in them.
	Without []string          `yaml:"without"`
	With    map[string]string `yaml:"with"`
	// Own: a row has values that From does not show. From says which records the list has,
	// and each comes as this list itself last showed it. The list is made only when that is
	// known of all.
	Own bool `yaml:"own"`
}

// Fill puts values into one of With's texts; ok is false when one is not known.
func (f *RowMapping) Fill(text string, value func(name string) (string, bool)) (filled string, ok bool) {
	return fillBraces(text, value)
}

// checkRows makes sure that row mappings name shapes, fields and variables that exist.
func (k *Kind) checkRows() error {
	for i, l := range k.Lists {
		if l.Rows == nil {
			continue
		}
		if err := k.checkRow(l); err != nil {
			return in(fmt.Errorf("list %s: rows: %w", l.Path, err), "lists", i, "rows")
		}
	}
	return nil
}

func (k *Kind) checkRow(l *List) error {
	f := l.Rows
	whole := func(other *List) bool {
		fewer := len(other.template.Vars()) < len(l.template.Vars())
		return other.Shape == f.From && other.Rows == nil && len(other.Only) == 0 && fewer
	}
	switch {
	case f.From == l.Shape:
		return fmt.Errorf("from %q: it is the list's own shape", f.From)
	case !slices.ContainsFunc(k.Lists, whole):
		return fmt.Errorf("from %q: no list with fewer variables shows records in that shape", f.From)
	case f.Own && len(f.Without)+len(f.With) > 0:
		return errors.New("own: the rows are given as they were seen, so nothing is left out or put in")
	}
	for _, name := range slices.Concat(f.Without, slices.Sorted(maps.Keys(f.With))) {
		if k.fields[name] == nil || strings.Contains(name, ".") || slices.Contains(k.ID, name) {
			return fmt.Errorf("%q: want a field of the body itself that is no part of the id", name)
		}
		if slices.ContainsFunc(l.Filters, func(one *Filter) bool { return one.Field == name }) {
			return fmt.Errorf("%q: a filter looks at it", name)
		}
	}
	for name, text := range f.With {
		_, ok := f.Fill(text, func(word string) (string, bool) {
			return "", k.fields[word] != nil || l.template.Has(word)
		})
		if !ok || strings.Count(text, "{") != strings.Count(text, "}") {
			return fmt.Errorf("with %s: %q: want names of fields and of the path's variables in braces", name, text)
		}
	}
	return nil
}
