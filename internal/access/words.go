// This file describes in sentences which records a role may find.

package access

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/spec"
)

// DescribeRules returns for people which records of each kind of a source a role may find. The lines are like "calls:
// younger than 30 days", in the spec's order of kinds. It returns nil if the role has no row rules there.
func (g *Gate) DescribeRules(role, source string) []string {
	r := g.roles[role][source]
	if r == nil || r.rows == nil {
		return nil
	}
	var all []string
	for _, k := range g.specs[source].Kinds {
		f := r.rows[k.Name]
		switch {
		case f == nil && r.kinds[k.Name].isVisible():
			all = append(all, k.Name+": all")
		case f == nil, f.findsNone:
			all = append(all, k.Name+": none")
		default:
			all = append(all, k.Name+": "+f.describe())
		}
	}
	return all
}

// describe returns the rule as a text.
func (f *rowFilter) describe() string {
	var parts []string
	if f.age > 0 {
		parts = append(parts, "younger than "+span(f.age))
	}
	if len(f.phones) > 0 {
		parts = append(parts, f.phoneWords())
	}
	for _, c := range f.where {
		parts = append(parts, f.conditionWords(c))
	}
	switch over := f.parentWords(); {
	case over == "":
	case f.needsParent:
		parts = append(parts, "below a visible "+over)
	default:
		parts = append(parts, "not below a hidden "+over)
	}
	return strings.Join(parts, ", ")
}

// phoneWords returns the rule's condition on phone numbers as a text.
func (f *rowFilter) phoneWords() string {
	return "with " + f.numberWords() + " as " + f.fieldWords(f.phones)
}

// conditionWords returns the rule's condition on a field as a text.
func (f *rowFilter) conditionWords(c condition) string {
	if c.match.Prefix != "" {
		return fmt.Sprintf("%s begins with %q", f.fields[c.field].Name, understudy.Clip(c.match.Prefix))
	}
	values := make([]string, len(c.match.In))
	for i, v := range c.match.In {
		values[i] = understudy.Clip(v)
	}
	return f.fields[c.field].Name + " is " + strings.Join(values, " or ")
}

// numberWords returns the required phone numbers as a text.
func (f *rowFilter) numberWords() string {
	var all []string
	if f.ownNumbers {
		all = append(all, "one of our own numbers")
	}
	return strings.Join(append(all, slices.Sorted(maps.Keys(f.wanted))...), " or ")
}

// fieldWords returns the names of fields as a text.
func (f *rowFilter) fieldWords(of []int) string {
	var all []string
	for _, i := range of {
		all = append(all, f.fields[i].Name)
	}
	return strings.Join(all, " or ")
}

// parentWords returns the kinds of the parent records as a text.
func (f *rowFilter) parentWords() string {
	var all []string
	add := func(word string) {
		if !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	for _, a := range f.parents {
		if a.kind == nil {
			add("record of any kind")
		} else {
			add(singular(a.kind))
		}
	}
	if len(f.kind.ID) == 0 {
		for _, k := range parentKinds(f.gate.specs[f.source], f.kind) {
			add(singular(k))
		}
	}
	return strings.Join(all, " or ")
}

// span returns a duration as a text, in days or hours if it is a whole number of them.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d == day:
		return "1 day"
	case d%day == 0:
		return fmt.Sprintf("%d days", d/day)
	case d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return d.String()
}

// singular returns the word for one record of a kind.
func singular(k *spec.Kind) string { return cmp.Or(k.Singular, "record of "+k.Name) }
