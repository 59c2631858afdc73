// Annotations: conditions on what people wrote on records: note, noted, handled.

package lang

import (
	"slices"
	"strings"

	"understudy"
	"understudy/kit/tokenizer"
)

// Annotations are what people wrote on the records of one kind.
type Annotations struct {
	Of  func(id string) *understudy.Annotation // nil: nothing
	All func() []*understudy.Annotation
}

// mostNamed is how many records a condition asks for by their ids. Of more every record is looked at.
const mostNamed = 500

// The two values of noted: and handled: that are no name.
const (
	yes = "yes"
	no  = "no"
)

// isAnnotation says whether a name is one of these conditions.
func isAnnotation(name string) bool {
	return name == noteName || name == notedName || name == handledName
}

// annotated binds note:WORDS, and noted: and handled: with yes, no or a name.
func (b *Binder) annotated(n *Node, scope []*KindView) *predicate {
	if n.Rel != RelIs && n.Rel != RelSame {
		b.fail(syntaxError(b.Text, n.at, n.end, "%s has no order; write %s:%s", n.Name, n.Name, map[bool]string{true: "WORDS",
			false: "yes, no or a name"}[n.Name == noteName]))
		return nil
	}
	var any []func(*understudy.Annotation) bool
	for _, v := range n.Values {
		test := writtenBy(n.Name, v)
		if n.Name == noteName {
			words := tokenizer.Phrase(v.prefix, v.Text)
			if words.IsEmpty() {
				b.fail(syntaxError(b.Text, v.at, v.end, "there is no word in %q; a word has letters, digits or an emoji", understudy.Clip(v.Text)))
				return nil
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
	l := &predicate{Node: n, In: map[*KindView]string{}}
	l.whole = func(c *Candidate) bool {
		a := c.View.Annotations.Of(c.Record.ID)
		if a == nil {
			a = &understudy.Annotation{}
		}
		return holds(a)
	}
	if !b.annotatedIn(l, scope, holds) {
		b.fail(refused(b.Text, n.at, n.end, "your role does not see what people wrote on records; take it out"))
		return nil
	}
	b.annotations = true
	return l
}

// annotatedIn says of which kinds something may fulfil the predicate, and which records
// those are when they are few. It reports whether the caller sees annotations of any kind.
func (b *Binder) annotatedIn(l *predicate, scope []*KindView, holds func(*understudy.Annotation) bool) (seen bool) {
	others := holds(&understudy.Annotation{}) // records on which nothing is written fulfil it
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
			l.In[s] = l.Node.Name
		}
	}
	if len(l.ids) > mostNamed {
		l.ids = nil
	}
	return seen
}

// writtenBy is the test that something is written by somebody of a name, by anybody, or by nobody.
func writtenBy(name string, v Value) func(*understudy.Annotation) bool {
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
	case v.Text == yes && !v.prefix:
		return some
	case v.Text == no && !v.prefix:
		return func(a *understudy.Annotation) bool { return !some(a) }
	}
	return by
}
