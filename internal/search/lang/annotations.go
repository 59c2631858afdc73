// This file binds the conditions note, noted and handled, which test what people wrote on records.

package lang

import (
	"slices"
	"strings"

	"understudy"
	"understudy/kit/tokenizer"
)

// Annotations are the notes and marks that people put on the records of one kind.
type Annotations struct {
	Find func(id string) *understudy.Annotation // the annotation of a record, or nil
	All  func() []*understudy.Annotation
}

// maxListedIDs is the maximum number of annotated records that are listed by id in a query to the store. If there
// are more, every record is tested.
const maxListedIDs = 500

// The values of noted: and handled: that are not names of people.
const (
	anybody = "yes"
	nobody  = "no"
)

func isAnnotation(name string) bool {
	return name == noteName || name == notedName || name == handledName
}

// bindAnnotation binds note:WORDS, and noted: and handled: with yes, no or a name.
func (b *Binder) bindAnnotation(n *Node, scope []*KindView) *Cond {
	if n.Rel != RelIs && n.Rel != RelSame {
		return b.refuse(n.at, n.end, "%s has no order; write %s:%s", n.Name, n.Name, map[bool]string{true: "WORDS",
			false: "yes, no or a name"}[n.Name == noteName])
	}
	var any []func(*understudy.Annotation) bool
	for _, v := range n.Values {
		test := authorTest(n.Name, v)
		if n.Name == noteName {
			words := tokenizer.Phrase(v.prefix, v.Text)
			if words.IsEmpty() {
				return b.refuse(v.at, v.end, "there is no word in %q; a word has letters, digits or an emoji", understudy.Clip(v.Text))
			}
			test = func(a *understudy.Annotation) bool {
				return slices.ContainsFunc(a.Notes, func(n understudy.Note) bool { return words.MatchText(n.Text) })
			}
		}
		any = append(any, test)
	}
	holds := func(a *understudy.Annotation) bool {
		return slices.ContainsFunc(any, func(test func(*understudy.Annotation) bool) bool { return test(a) })
	}
	l := &predicate{Node: n, Fields: map[*KindView]string{}}
	l.recordTest = func(c *Candidate) bool {
		a := c.View.Annotations.Find(c.Record.ID)
		if a == nil {
			a = &understudy.Annotation{}
		}
		return holds(a)
	}
	if !b.addAnnotated(l, scope, holds) {
		return b.forbid(n.at, n.end, "your role can't see notes on records; remove it")
	}
	b.annotations = true
	return fieldCond(l)
}

// addAnnotated adds to the predicate the kinds whose records may match, and the ids of the matches if there are
// few. It returns true if the caller sees annotations of any kind.
func (b *Binder) addAnnotated(l *predicate, scope []*KindView, holds func(*understudy.Annotation) bool) (seen bool) {
	others := holds(&understudy.Annotation{}) // whether a record without an annotation matches
	for _, s := range scope {
		if s.Annotations == nil {
			continue
		}
		seen = true
		before := len(l.ids)
		if !others {
			for _, a := range s.Annotations.All() {
				if holds(a) {
					l.ids = append(l.ids, a.ID)
				}
			}
		}
		if others || len(l.ids) > before {
			l.Fields[s] = l.Node.Name
		}
	}
	if len(l.ids) > maxListedIDs {
		l.ids = nil
	}
	return seen
}

// authorTest returns the test of noted: or handled: for a person, for any person, or for no person.
func authorTest(name string, v Value) func(*understudy.Annotation) bool {
	is := func(by string) bool {
		return strings.EqualFold(by, v.Text) || v.prefix && len(by) >= len(v.Text) && strings.EqualFold(by[:len(v.Text)], v.Text)
	}
	some := func(a *understudy.Annotation) bool { return len(a.Notes) > 0 }
	by := func(a *understudy.Annotation) bool {
		return slices.ContainsFunc(a.Notes, func(n understudy.Note) bool { return is(n.By) })
	}
	if name == handledName {
		some = func(a *understudy.Annotation) bool { return a.Handled != nil }
		by = func(a *understudy.Annotation) bool { return a.Handled != nil && is(a.Handled.By) }
	}
	switch {
	case v.Text == anybody && !v.prefix:
		return some
	case v.Text == nobody && !v.prefix:
		return func(a *understudy.Annotation) bool { return !some(a) }
	}
	return by
}
