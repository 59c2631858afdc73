// Fold: letter case that makes no difference, in ids and choices.

package search

import (
	"slices"
	"strings"

	"understudy"
	"understudy/spec"
)

// fold returns an id as records spell it, when the letter case is all that differs;
// any other text stays.
func (b *binder) fold(typed string) string {
	if len(typed) < understudy.AnyIDText {
		return typed
	}
	parts := strings.Split(typed, spec.IDSeparator)
	for i, part := range parts {
		for k := range b.every {
			if id, ok := k.SpellID(part); ok {
				parts[i] = id
				break
			}
		}
	}
	return strings.Join(parts, spec.IDSeparator)
}

// folded are the values of a condition as records may spell them: ids as their
// kind does, choices in small letters and in capitals, too. Behind "=" a value is
// just what was typed.
func (b *binder) folded(l *predicate) []value {
	n := l.node
	if n.rel != relIs {
		return n.values
	}
	choice := false // in one of the kinds at least
	for s, name := range l.in {
		choice = choice || s.kind.Field(name).Type == spec.TypeSelect
	}
	var all []value
	for _, v := range n.values {
		spellings := []string{b.fold(v.text)}
		if choice {
			spellings = []string{v.text, strings.ToLower(v.text), strings.ToUpper(v.text)}
		}
		slices.Sort(spellings)
		for _, v.text = range slices.Compact(spellings) {
			all = append(all, v)
		}
	}
	return all
}
