// This file makes ids and choices match in any letter case.

package lang

import (
	"slices"
	"strings"

	"understudy"
	"understudy/spec"
)

// foldID returns an id in the letter case that records use. It returns any other text unchanged.
func (b *Binder) foldID(typed string) string {
	if len(typed) < understudy.AnyIDText {
		return typed
	}
	parts := strings.Split(typed, spec.IDSeparator)
	for i, part := range parts {
		for k := range b.AllKinds {
			if id, ok := k.NormalizeID(part); ok {
				parts[i] = id
				break
			}
		}
	}
	return strings.Join(parts, spec.IDSeparator)
}

// spellings returns the values of a condition in the spellings that records may use: ids in the letter case of
// their kind, and choices also in lower and upper case. After "=" the value is compared exactly as typed.
func (b *Binder) spellings(l *predicate) []Value {
	n := l.Node
	if n.Rel != RelIs {
		return n.Values
	}
	choice := false // whether the field is a choice in at least one kind
	for s, name := range l.Fields {
		choice = choice || s.Kind.Field(name).Type == spec.TypeSelect
	}
	var all []Value
	for _, v := range n.Values {
		spellings := []string{b.foldID(v.Text)}
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
