// Words: what a role may find, as a sentence.

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

// Words says for people which records of each kind of a source a role with row
// rules may find, in the spec's order of kinds, as lines like "calls: younger
// than 30 days"; nil: the role has no row rules there.
func (g *Gate) Words(role, source string) []string {
	r := g.roles[role][source]
	if r == nil || r.rows == nil {
		return nil
	}
	var all []string
	for _, k := range g.specs[source].Kinds {
		f := r.rows[k.Name]
		switch {
		case f == nil && r.kinds[k.Name].sees():
			all = append(all, k.Name+": all")
		case f == nil, f.never:
			all = append(all, k.Name+": none")
		default:
			all = append(all, k.Name+": "+f.words())
		}
	}
	return all
}

// words is the rule in words.
func (f *rowFilter) words() string {
	var parts []string
	if f.age > 0 {
		parts = append(parts, "younger than "+span(f.age))
	}
	if len(f.phones) > 0 {
		parts = append(parts, f.phoneWords())
	}
	for _, c := range f.where {
		parts = append(parts, f.whereWords(c))
	}
	switch over := f.overWords(); {
	case over == "":
	case f.need:
		parts = append(parts, "under "+over+" it may find")
	default:
		parts = append(parts, "under no "+over+" it may not find")
	}
	return strings.Join(parts, ", ")
}

func (f *rowFilter) phoneWords() string {
	return "with " + f.numberWords() + " as " + f.names(f.phones)
}

func (f *rowFilter) whereWords(c condition) string {
	if c.match.Prefix != "" {
		return fmt.Sprintf("%s begins with %q", f.fields[c.field].Name, understudy.Clip(c.match.Prefix))
	}
	values := make([]string, len(c.match.In))
	for i, v := range c.match.In {
		values[i] = understudy.Clip(v)
	}
	return f.fields[c.field].Name + " is " + strings.Join(values, " or ")
}

func (f *rowFilter) numberWords() string {
	var all []string
	if f.own {
		all = append(all, "a number of our own")
	}
	return strings.Join(append(all, slices.Sorted(maps.Keys(f.nums))...), " or ")
}

func (f *rowFilter) names(of []int) string {
	var all []string
	for _, i := range of {
		all = append(all, f.fields[i].Name)
	}
	return strings.Join(all, " or ")
}

// overWords are the kinds the record may lie under.
func (f *rowFilter) overWords() string {
	var all []string
	add := func(word string) {
		if !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	for _, a := range f.above {
		if a.kind == nil {
			add("record of any kind")
		} else {
			add(oneOf(a.kind))
		}
	}
	if len(f.kind.ID) == 0 {
		for _, k := range pathsAbove(f.gate.specs[f.source], f.kind) {
			add(oneOf(k))
		}
	}
	return strings.Join(all, " or ")
}

// span is a length of time in days where it is whole days.
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

// oneOf is the word for one record of a kind.
func oneOf(k *spec.Kind) string { return cmp.Or(k.Singular, "record of "+k.Name) }
