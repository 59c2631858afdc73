// Pseudo-fields: conditions whose names are no fields: kind, has, no, number, id.

package search

import (
	"maps"
	"slices"
	"strings"

	"understudy/internal/query"
)

// kind binds kind: and in:.
func (b *binder) kind(n *node) *predicate {
	if n.rel != relIs && n.rel != relSame {
		b.fail(syntaxError(b.text, n.at, n.end, "a kind has no order; write kind:calls, or several with commas"))
		return nil
	}
	l := &predicate{node: n, in: map[*kindView]string{}, whole: func(*candidate) bool { return true }}
	for _, v := range n.values {
		found := false
		for _, s := range b.views {
			if called(s.kind, v.text) && !v.prefix {
				l.in[s], found = s.kind.Name, true
			}
		}
		if !found {
			b.fail(b.unknownKind(v))
			return nil
		}
	}
	return l
}

func (b *binder) unknownKind(v value) *query.SyntaxError {
	for k, seen := range b.every {
		switch {
		case called(k, v.text) && seen:
			return syntaxError(b.text, v.at, v.end, "%s is not looked in, as other kinds were asked for; take one of both out", clip(v.text))
		case called(k, v.text):
			return refused(b.text, v.at, v.end, "your role does not see %s; take it out", clip(v.text))
		}
	}
	var known []string
	for _, s := range b.views {
		known = append(known, s.kind.Name)
	}
	slices.Sort(known)
	known = slices.Compact(known)
	return syntaxError(b.text, v.at, v.end, "there is no kind %s%s There is %s", clip(v.text), stopped(hint(v.text, known)), strings.Join(known, ", "))
}

// presence binds has: and no:.
func (b *binder) presence(n *node, scope []*kindView) *predicate {
	if n.rel != relIs {
		b.fail(syntaxError(b.text, n.at, n.end, "write %s:FIELD", n.name))
		return nil
	}
	l := &predicate{node: n, in: map[*kindView]string{}}
	var each []map[*kindView]string
	for _, v := range n.values {
		if v.prefix {
			b.fail(syntaxError(b.text, v.at, v.end, "a field's name takes no star; write it in full"))
			return nil
		}
		in, _ := b.fields(v.text, v.at, v.end, scope)
		if b.err != nil {
			return nil
		}
		each = append(each, in)
		for s, field := range in {
			l.in[s] = field
		}
	}
	want := n.name == hasName
	l.whole = func(c *candidate) bool {
		for _, in := range each {
			if field := in[c.view]; field != "" {
				if _, ok := c.value(field); ok == want {
					return true
				}
			}
		}
		return false
	}
	return l
}

// number binds number: a phone number in any field of class phone. A kind of
// which some numbers are hidden is asked for each of the others by its field.
func (b *binder) number(n *node, scope []*kindView) *cond {
	if n.rel != relIs && n.rel != relSame {
		return b.fail(syntaxError(b.text, n.at, n.end, "a phone number has no order; write number:+15550100123"))
	}
	for _, v := range n.values {
		if v.prefix {
			return b.fail(syntaxError(b.text, v.at, v.end, "number: takes whole numbers; write the beginning of one by itself, +1415*, or behind a field, from:+1415*"))
		}
		if !isNumber(v.text) {
			return b.fail(syntaxError(b.text, v.at, v.end, "%s is no phone number; write its digits, with the country code behind a plus", clip(v.text)))
		}
	}
	fields := map[string]*predicate{}
	kinds := false
	for _, s := range scope {
		kinds = kinds || s.phones != nil || s.unseen
		for _, name := range s.phones {
			by := name
			if !s.unseen {
				by = ""
			}
			if fields[by] == nil {
				fields[by] = numberPredicate(n, !s.unseen)
			}
			fields[by].in[s] = name
		}
	}
	c := &cond{op: opOr}
	for _, by := range slices.Sorted(maps.Keys(fields)) {
		c.of = append(c.of, &cond{op: opField, predicate: fields[by]})
	}
	switch {
	case len(c.of) == 1:
		return c.of[0]
	case len(c.of) > 0:
		return c
	case kinds:
		return b.fail(refused(b.text, n.at, n.end, "your role fully sees no phone number of what is looked in; take it out"))
	}
	return b.fail(syntaxError(b.text, n.at, n.end, "what is looked in has no phone numbers"))
}

// numberPredicate wants a number in a field, or in every field of class phone.
func numberPredicate(n *node, every bool) *predicate {
	l := &predicate{node: n, in: map[*kindView]string{}, every: every, test: numbers(n.values)}
	if every {
		l.whole = func(c *candidate) bool {
			return slices.ContainsFunc(c.view.phones, func(field string) bool {
				v, ok := c.value(field)
				return ok && l.test.Holds(v)
			})
		}
	}
	if len(n.values) == 1 {
		l.term = &query.Predicate{Number: n.values[0].text}
	}
	return l
}

// id binds id: the id of a record, of any kind.
func (b *binder) id(n *node) *cond {
	if n.rel != relIs && n.rel != relSame {
		return b.fail(syntaxError(b.text, n.at, n.end, "an id has no order; write id:VALUE"))
	}
	values := b.folded(&predicate{node: n})
	whole := func(c *candidate) bool {
		return slices.ContainsFunc(values, func(v value) bool { return !v.prefix && c.ID == v.text || v.prefix && strings.HasPrefix(c.ID, v.text) })
	}
	l := &predicate{node: n, in: map[*kindView]string{}, whole: whole}
	if term := exactly(values); term != nil {
		l.ids = term.Any
	}
	for _, s := range b.views {
		if s.seesID() {
			l.in[s] = s.kind.ID[0]
		}
	}
	if len(l.in) == 0 {
		return b.fail(refused(b.text, n.at, n.end, "your role sees no ids; take it out"))
	}
	return &cond{op: opField, predicate: l}
}

// seesID says whether all fields an id is made of are fully seen.
func (s *kindView) seesID() bool {
	for _, name := range s.kind.ID {
		if _, ok := s.fields[name]; !ok {
			return false
		}
	}
	return len(s.kind.ID) > 0
}
