// Bind: from names in a tree to the fields of kinds, for one caller.

package search

import (
	"slices"
	"strings"
	"time"

	"understudy/internal/query"
	"understudy/kit/tokenizer"
	"understudy/spec"
)

// binder resolves the names of one query.
type binder struct {
	text     string
	now      time.Time
	views    []*kindView                                    // every kind asked for that the caller sees
	every    func(yield func(k *spec.Kind, seen bool) bool) // every kind there is
	exact    map[string]bool                                // names some seen kind has a field of
	relative bool                                           // what is asked for depends on now
	err      *query.SyntaxError
}

// bind resolves a tree's names. The error is a *understudy.SyntaxError.
func bind(text string, tree *node, views []*kindView, every func(yield func(*spec.Kind, bool) bool), now time.Time) (*boundQuery, error) {
	b := &binder{text: text, now: now, views: views, every: every, exact: map[string]bool{}}
	for _, s := range views {
		for _, f := range s.kind.Fields {
			b.exact[f.Name] = true
		}
	}
	c := b.node(tree, views)
	if b.err != nil {
		return nil, b.err
	}
	q := &boundQuery{text: text, tree: tree, cond: c, now: now, relative: b.relative}
	if tree.op == opWords && !tree.prefix {
		q.id = b.fold(tree.text)
	}
	for _, s := range views {
		if c.possible(s) {
			q.views = append(q.views, s)
		}
	}
	return q, nil
}

func (b *binder) fail(e *query.SyntaxError) *cond {
	if b.err == nil {
		b.err = e
	}
	return nil
}

// node binds a node; scope are the kinds that what stands beside it leaves.
func (b *binder) node(n *node, scope []*kindView) *cond {
	switch n.op {
	case opWords:
		p := tokenizer.Phrase(n.prefix, n.text)
		if p.Empty() {
			return b.fail(syntaxError(b.text, n.at, n.end, "there is no word in %q; a word has letters, digits or an emoji", clip(n.text)))
		}
		c := &cond{op: opWords, predicate: &predicate{node: n, words: p}}
		if ids := b.ids(n, scope); len(ids) > 0 && !n.prefix {
			return &cond{op: opOr, of: append([]*cond{c}, ids...)}
		}
		return c
	case opField:
		if n.name == idName && !b.exact[idName] {
			return b.id(n)
		}
		if n.name == numberName && !b.exact[numberName] {
			return b.number(n, scope)
		}
		l := b.field(n, scope)
		if b.err != nil {
			return nil
		}
		return &cond{op: opField, predicate: l}
	case opAnd:
		scope = slices.DeleteFunc(slices.Clone(scope), func(s *kindView) bool { return !b.mayBe(n, s) })
	}
	c := &cond{op: n.op}
	for _, o := range n.of {
		of := b.node(o, scope)
		if b.err != nil {
			return nil
		}
		if n.op == opOr && of.op == opOr { // each is asked for by itself
			c.of = append(c.of, of.of...)
		} else {
			c.of = append(c.of, of)
		}
	}
	return c
}

// leastID is how long a word must be to be looked for as an id, in bytes.
const leastID = 10

// ids are the conditions on every field that names a record, when a word has
// the form of an id: ids are no text.
func (b *binder) ids(n *node, scope []*kindView) (all []*cond) {
	id := b.fold(n.text)
	if len(id) < leastID || strings.ContainsFunc(id, func(r rune) bool { return r >= 128 || !letter(byte(r)) && !digit(byte(r)) && r != '~' && r != '-' }) {
		return nil
	}
	known := slices.ContainsFunc(b.views, func(s *kindView) bool { return s.kind.HasPrefix(id) })
	if !known {
		return nil
	}
	byName := map[string]*predicate{}
	own := &predicate{node: n, in: map[*kindView]string{}, ids: []string{id}, whole: func(c *candidate) bool { return c.ID == id }}
	for _, s := range scope {
		if s.seesID() && len(s.kind.ID) == strings.Count(id, spec.IDSeparator)+1 {
			own.in[s] = s.kind.ID[0]
		}
		for _, f := range s.kind.Fields {
			if !s.mayName(f, id) {
				continue
			}
			l := byName[f.Name]
			if l == nil {
				l = &predicate{node: n, in: map[*kindView]string{}}
				l.test, l.term = query.OneOf{Texts: []string{id}}, &query.Predicate{Any: []string{id}}
				byName[f.Name] = l
				all = append(all, &cond{op: opField, predicate: l})
			}
			l.in[s] = f.Name
		}
	}
	if len(own.in) > 0 {
		all = append(all, &cond{op: opField, predicate: own})
	}
	return all
}

// mayName says whether a field that is fully seen may hold an id, be it that of
// another record or a part of its own.
func (s *kindView) mayName(f *spec.Field, id string) bool {
	_, seen := s.fields[f.Name]
	own := len(s.kind.ID) == 1 && s.kind.ID[0] == f.Name // that is asked for by the record's name
	if !seen || own || f.Type == spec.TypeSelect || sortOf(s.kind, f) != sortExact {
		return false
	}
	for _, k := range s.spec.Kinds {
		if k.Name == f.Link && len(k.Prefixes) > 0 {
			return k.HasPrefix(id)
		}
	}
	return true
}

// mayBe says whether the conditions on kinds alone let a kind through.
func (b *binder) mayBe(n *node, s *kindView) bool {
	switch n.op {
	case opAnd:
		return !slices.ContainsFunc(n.of, func(o *node) bool { return !b.mayBe(o, s) })
	case opOr:
		return slices.ContainsFunc(n.of, func(o *node) bool { return b.mayBe(o, s) })
	case opNot:
		if n.of[0].op == opField && isKind(n.of[0].name) {
			return !b.mayBe(n.of[0], s)
		}
	case opField:
		if isKind(n.name) {
			return slices.ContainsFunc(n.values, func(v value) bool { return called(s.kind, v.text) })
		}
	}
	return true
}

func isKind(name string) bool { return name == kindName || name == inName }

// called says whether a kind is what somebody calls it.
func called(k *spec.Kind, name string) bool {
	return strings.EqualFold(name, k.Name) || strings.EqualFold(name, k.One) || strings.EqualFold(name, k.Title)
}

// field binds a condition on a field.
func (b *binder) field(n *node, scope []*kindView) *predicate {
	switch name := n.name; {
	case isKind(name):
		return b.kind(n)
	case name == hasName || name == noName:
		return b.presence(n, scope)
	case b.exact[name]:
	case name == dateName || name == ageName:
		return b.date(n, scope)
	}
	in, fields := b.fields(n.name, n.at, n.at+len(n.name), scope)
	if b.err != nil {
		return nil
	}
	return b.typed(n, in, fields)
}

// fields finds the fields a name means in the kinds of a scope. A field that is
// not fully seen in one of them may not be named.
func (b *binder) fields(name string, at, end int, scope []*kindView) (map[*kindView]string, []*spec.Field) {
	in := map[*kindView]string{}
	var fields []*spec.Field
	for _, s := range scope {
		f, ambiguous := s.field(name)
		switch {
		case len(ambiguous) > 0:
			b.fail(syntaxError(b.text, at, end, "%s of %s may be %s; write one of them in full", clip(name), s.kind.Name, strings.Join(ambiguous, " or ")))
			return nil, nil
		case f == nil:
			continue
		case f.Type == spec.TypeMedia:
			b.fail(syntaxError(b.text, at, end, "%s of %s is a content; it cannot be searched", f.Name, s.kind.Name))
			return nil, nil
		}
		if _, ok := s.fields[f.Name]; !ok {
			b.fail(refused(b.text, at, end, "your role does not fully see %s of %s; take it out%s", f.Name, s.kind.Name, b.elsewhere(name, scope)))
			return nil, nil
		}
		in[s] = f.Name
		fields = append(fields, f)
	}
	if len(fields) == 0 {
		b.fail(b.unknown(name, at, end, scope))
	}
	return in, fields
}

// elsewhere names a kind in which a field may be asked for.
func (b *binder) elsewhere(name string, scope []*kindView) string {
	for _, s := range scope {
		if f, _ := s.field(name); f != nil {
			if _, ok := s.fields[f.Name]; ok {
				return ", or look in " + s.kind.Name + " alone with kind:" + s.kind.Name
			}
		}
	}
	return ""
}

// unknown is the error of a name that no field in scope has.
func (b *binder) unknown(name string, at, end int, scope []*kindView) *query.SyntaxError {
	var kinds []string
	for _, s := range b.views {
		if f, _ := s.field(name); f != nil {
			kinds = append(kinds, s.kind.Name)
		}
	}
	if len(kinds) > 0 {
		return syntaxError(b.text, at, end, "what is looked in has no field %s; it is one of %s", clip(name), strings.Join(kinds, ", "))
	}
	hidden := false
	for k, seen := range b.every {
		if !slices.ContainsFunc(k.Fields, func(f *spec.Field) bool { return f.Name == name || strings.HasSuffix(f.Name, "."+name) }) {
			continue
		}
		if hidden = hidden || !seen; seen {
			kinds = append(kinds, k.Name)
		}
	}
	switch {
	case len(kinds) > 0:
		return syntaxError(b.text, at, end, "what is looked in has no field %s; it is one of %s", clip(name), strings.Join(kinds, ", "))
	case hidden:
		return refused(b.text, at, end, "%s is a field of what your role does not see; take it out", clip(name))
	}
	known := []string{kindName, inName, hasName, noName, dateName, ageName, idName, numberName}
	for _, s := range scope {
		for f := range s.fields {
			known = append(known, f)
		}
	}
	slices.Sort(known)
	return syntaxError(b.text, at, end, "no field is called %s%s Put it in quotes to look for that text", clip(name), stopped(hint(name, slices.Compact(known))))
}
