// Special: conditions whose names are no fields: kind, has, no, number, id.

package search

import (
	"slices"
	"strings"

	"understudy"
)

// kind binds kind: and in:.
func (b *binder) kind(n *node) *leaf {
	if n.rel != relIs && n.rel != relSame {
		b.fail(wrong(b.text, n.at, n.end, "a kind has no order; write kind:calls, or several with commas"))
		return nil
	}
	l := &leaf{node: n, in: map[*sight]string{}, test: func(*candidate, string) bool { return true }}
	for _, v := range n.values {
		found := false
		for _, s := range b.sights {
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

func (b *binder) unknownKind(v value) *understudy.SyntaxError {
	for k, seen := range b.every {
		switch {
		case called(k, v.text) && seen:
			return wrong(b.text, v.at, v.end, "%s is not looked in, as other kinds were asked for; take one of both out", clip(v.text))
		case called(k, v.text):
			return refused(b.text, v.at, v.end, "your role does not see %s; take it out", clip(v.text))
		}
	}
	var known []string
	for _, s := range b.sights {
		known = append(known, s.kind.Name)
	}
	slices.Sort(known)
	known = slices.Compact(known)
	return wrong(b.text, v.at, v.end, "there is no kind %s%s There is %s", clip(v.text), stopped(hint(v.text, known)), strings.Join(known, ", "))
}

// presence binds has: and no:.
func (b *binder) presence(n *node, scope []*sight) *leaf {
	if n.rel != relIs {
		b.fail(wrong(b.text, n.at, n.end, "write %s:FIELD", n.name))
		return nil
	}
	l := &leaf{node: n, in: map[*sight]string{}}
	var each []map[*sight]string
	for _, v := range n.values {
		if v.prefix {
			b.fail(wrong(b.text, v.at, v.end, "a field's name takes no star; write it in full"))
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
	l.test = func(c *candidate, _ string) bool {
		for _, in := range each {
			if field := in[c.sight]; field != "" {
				if _, ok := c.value(field); ok == want {
					return true
				}
			}
		}
		return false
	}
	return l
}

// number binds number: a phone number in any field of class phone.
func (b *binder) number(n *node, scope []*sight) *leaf {
	if n.rel != relIs && n.rel != relSame {
		b.fail(wrong(b.text, n.at, n.end, "a phone number has no order; write number:+15550100123"))
		return nil
	}
	for _, v := range n.values {
		if v.prefix {
			b.fail(wrong(b.text, v.at, v.end, "number: takes whole numbers; write the beginning of one by itself, +1415*, or behind a field, from:+1415*"))
			return nil
		}
		if !isNumber(v.text) {
			b.fail(wrong(b.text, v.at, v.end, "%s is no phone number; write its digits, with the country code behind a plus", clip(v.text)))
			return nil
		}
	}
	l := &leaf{node: n, in: map[*sight]string{}}
	phones := map[*sight][]string{}
	kinds := false
	for _, s := range scope {
		for _, f := range s.kind.Fields {
			if f.Class != understudy.ClassPhone {
				continue
			}
			kinds = true
			if _, ok := s.fields[f.Name]; ok {
				phones[s] = append(phones[s], f.Name)
				l.in[s] = f.Name
			}
		}
	}
	switch {
	case kinds && len(phones) == 0:
		b.fail(refused(b.text, n.at, n.end, "your role fully sees no phone number of what is looked in; take it out"))
		return nil
	case !kinds:
		b.fail(wrong(b.text, n.at, n.end, "what is looked in has no phone numbers"))
		return nil
	}
	values := n.values
	l.test = func(c *candidate, _ string) bool {
		for _, field := range phones[c.sight] {
			if text, ok := c.value(field); ok && slices.ContainsFunc(values, func(v value) bool { return sameNumber(text, v.text) }) {
				return true
			}
		}
		return false
	}
	if len(values) == 1 {
		l.term, l.every = &understudy.Term{Number: values[0].text}, true
	}
	return l
}

// id binds id: the id of a record, of any kind. Kinds whose ids begin with
// fields of different names are asked for one by one.
func (b *binder) id(n *node) *cond {
	if n.rel != relIs && n.rel != relSame {
		return b.fail(wrong(b.text, n.at, n.end, "an id has no order; write id:VALUE"))
	}
	values := b.spelt(&leaf{node: n})
	test := func(c *candidate, _ string) bool {
		return slices.ContainsFunc(values, func(v value) bool { return !v.prefix && c.ID == v.text || v.prefix && strings.HasPrefix(c.ID, v.text) })
	}
	term := exactly(values)
	if term != nil { // of an id of several parts the first is in the field
		for i, id := range term.Any {
			first, _, _ := strings.Cut(id, understudy.IDSeparator)
			term.Any[i] = first
		}
	}
	all := &cond{op: opOr}
	byName := map[string]*leaf{}
	for _, s := range b.sights {
		if !s.seesID() {
			continue
		}
		name := s.kind.ID[0]
		if byName[name] == nil {
			byName[name] = &leaf{node: n, in: map[*sight]string{}, test: test, term: term}
			all.of = append(all.of, &cond{op: opField, leaf: byName[name]})
		}
		byName[name].in[s] = name
	}
	switch len(all.of) {
	case 0:
		return b.fail(refused(b.text, n.at, n.end, "your role sees no ids; take it out"))
	case 1:
		return all.of[0]
	}
	return all
}

// seesID says whether all fields an id is made of are fully seen.
func (s *sight) seesID() bool {
	for _, name := range s.kind.ID {
		if _, ok := s.fields[name]; !ok {
			return false
		}
	}
	return len(s.kind.ID) > 0
}
