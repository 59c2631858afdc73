// Row mapping: how to make a list's rows from records stored in another shape.

package spec

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// RowMapping says how to make the rows of a list under one record from the same records in another shape, that
// of a list of all records. So the list can be composed before anyone requests it.
type RowMapping struct {
	From string `yaml:"from"` // the shape of a list of the kind that contains every record
	// Omit are members of the body that the rows of this list lack. Replace are texts that replace the values of members.
	// They may contain {Variable} of the path and {field} of the record.
	Omit    []string          `yaml:"without"`
	Replace map[string]string `yaml:"with"`
	// AsSeen means that a row has values which the shape From lacks. From then only tells which records the list contains,
	// and each row is used as this list last returned it. The list is composed only if every row is known.
	AsSeen bool `yaml:"own"`
}

// Fill fills values into one of Replace's texts. ok is false if a value is not known.
func (f *RowMapping) Fill(text string, value func(name string) (string, bool)) (filled string, ok bool) {
	return fillBraces(text, value)
}

// checkRows checks that row mappings name existing shapes, fields and variables.
func (k *Kind) checkRows() error {
	for i, l := range k.Lists {
		if l.Rows == nil {
			continue
		}
		if err := k.checkRow(l); err != nil {
			return addPath(fmt.Errorf("list %s: rows: %w", l.Path, err), "lists", i, "rows")
		}
	}
	return nil
}

// checkRow checks the row mapping of one list.
func (k *Kind) checkRow(l *List) error {
	f := l.Rows
	whole := func(other *List) bool {
		fewer := len(other.template.Vars()) < len(l.template.Vars())
		return other.Shape == f.From && other.Rows == nil && len(other.FixedValues) == 0 && fewer
	}
	switch {
	case f.From == l.Shape:
		return fmt.Errorf("from: %q is the list's own shape; name another shape", f.From)
	case !slices.ContainsFunc(k.Lists, whole):
		return fmt.Errorf("from: no list with fewer path variables shows records in the shape %q", f.From)
	case f.AsSeen && len(f.Omit)+len(f.Replace) > 0:
		return errors.New("own: the rows are returned as they were seen, so remove without and with")
	}
	for _, name := range slices.Concat(f.Omit, slices.Sorted(maps.Keys(f.Replace))) {
		if k.fields[name] == nil || strings.Contains(name, ".") || slices.Contains(k.ID, name) {
			return fmt.Errorf("%q is not a field at the top of the body, or it is part of the id", name)
		}
		if slices.ContainsFunc(l.Filters, func(one *Filter) bool { return one.Field == name }) {
			return fmt.Errorf("%q cannot be changed, because a filter of the list tests it", name)
		}
	}
	for name, text := range f.Replace {
		_, ok := f.Fill(text, func(word string) (string, bool) {
			return "", k.fields[word] != nil || l.template.Has(word)
		})
		if !ok || strings.Count(text, "{") != strings.Count(text, "}") {
			return fmt.Errorf("with %s: %q: write names of fields or path variables in braces", name, text)
		}
	}
	return nil
}
