// Fold: letter case that makes no difference, in ids and choices.

package lang

import (
	"slices"
	"strings"

	"understudy"
	"understudy/spec"
)

// fold returns an id as records spell it, when the letter case is all that differs; any other text stays.
func (b *Binder) fold(typed string) string {
	if len(typed) < understudy.AnyIDText {
		return typed
	}
	parts := strings.Split(typed, spec.IDSeparator)
	for i, part := range parts {
		for k := range b.Every {
			if id, ok := k.NormalizeID(part); ok {
				parts[i] = id
				break
			}
		}
	}
	return strings.Join(parts, spec.IDSeparator)
}

// folded are the values of a condition as records may spell them: ids as their kind does, choices in small letters
// and in capitals, too. Behind "=" a value is just what was typed.
func (b *Binder) folded(l *predicate) []Value {
	n := l.Node
	if n.Rel != RelIs {
		return n.Values
	}
	choice := false // in one of the kinds at least
	for s, name := range l.In {
		choice = choice || s.Kind.Field(name).Type == spec.TypeSelect
	}
	var all []Value
	for _, v := range n.Values {
		spellings := []string{b.fold(v.Text)}
		if choice {
			spellings = []string{v.Text, strings.ToLower(v.Text), strings.ToUpper(v.Text)}
		}
		slices.Sort(spellings)
		for _, v.Text = range slices.Compact(spellings) {
			all = append(all, v)
		}
	}
	return all
}
