// Bind: from names in a tree to the fields of kinds, for one caller.

package lang

import (
	"maps"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/tokenizer"
	"understudy/spec"
)

// Binder resolves the names of one query.
type Binder struct {
	Text     string
	Now      time.Time
	Views    []*KindView                                    // every kind asked for that the caller sees
	Every    func(yield func(k *spec.Kind, seen bool) bool) // every kind there is
	exact    map[string]bool                                // names some seen kind has a field of
	relative bool                                           // what is asked for depends on now
	Err      *query.SyntaxError

	hint        string // what to write instead, where nothing is found
	annotations bool   // what people wrote on records is asked for
}

// Bind resolves a tree's names. The error is a *understudy.SyntaxError.
func Bind(text string, tree *Node, views []*KindView, every func(yield func(*spec.Kind, bool) bool), now time.Time) (*BoundQuery, error) {
	b := &Binder{Text: text, Now: now, Views: views, Every: every, exact: map[string]bool{}}
	for _, s := range views {
		for _, f := range s.Kind.Fields {
			b.exact[f.Name] = true
		}
	}
	tree = b.dropNumbers(tree, views)
	c := b.node(tree, views)
	if b.Err != nil {
		return nil, b.Err
	}
	q := &BoundQuery{text: text, Tree: tree, Cond: c, Now: now, Relative: b.relative, Annotations: b.annotations, Asked: views, Hint: b.hint}
	if tree.Op == opWords && !tree.prefix {
		q.ID = b.fold(tree.text)
	} else if n, _ := tree.Number(); n != nil && n.at == n.Values[0].at && !strings.Contains(n.Values[0].Text, "+") {
		q.ID = understudy.ParsePhone(n.Values[0].Text).Digits
	}
	for _, s := range views {
		if c.Possible(s) {
			q.Views = append(q.Views, s)
		}
	}
	return q, nil
}

// dropNumbers applies dropNumber to all parts of a tree.
func (b *Binder) dropNumbers(n *Node, scope []*KindView) *Node {
	if words := dropNumber(n, scope); words != n || len(n.Of) == 0 {
		return words
	}
	if n.Op == opAnd {
		scope = b.selectKinds(n, scope)
	}
	changed := *n
	changed.Of = nil
	for _, o := range n.Of {
		changed.Of = append(changed.Of, b.dropNumbers(o, scope))
	}
	return &changed
}

// dropNumber returns the words alone for digits that may be a number or words, where no phone number that they
// could be is looked in. A role that sees none may search for digits alone as a word.
func dropNumber(tree *Node, scope []*KindView) *Node {
	number, words := tree.Number()
	if number == nil || number.at != number.Values[0].at { // number: was written
		return tree
	}
	mayHave := func(s *KindView) bool { return len(s.phones) > 0 || len(s.masked) > 0 && words == nil }
	if isNumber(number.Values[0].Text) && (slices.ContainsFunc(scope, mayHave) || hashedNumber(number, scope) != nil) {
		return tree
	}
	if words != nil {
		return words
	}
	var parts []*Node
	for _, text := range strings.Fields(number.Values[0].Text) {
		if strings.ContainsAny(text, "0123456789") {
			parts = append(parts, &Node{Op: opWords, text: text, at: number.at, end: number.end})
		}
	}
	return join(opAnd, parts)
}

// Number returns the condition on a phone number that a tree consists of, and the same digits as
// words, if they are beside it; nil: it is another tree.
func (n *Node) Number() (number, words *Node) {
	if n.Op == OpOr && len(n.Of) == 2 && n.Of[1].Op == opWords && n.Of[0].at == n.Of[1].at {
		n, words = n.Of[0], n.Of[1]
	}
	if n.Op != OpField || n.Name != NumberName {
		return nil, nil
	}
	return n, words
}

func (b *Binder) fail(e *query.SyntaxError) *Cond {
	if b.Err == nil {
		b.Err = e
	}
	return nil
}

// node binds a node; scope are the kinds that what stands beside it leaves.
func (b *Binder) node(n *Node, scope []*KindView) *Cond {
	if n.apart != "" {
		whole := b.Text
		b.Text = n.apart
		defer func() { b.Text = whole }()
	}
	switch n.Op {
	case opWords:
		p := tokenizer.Phrase(n.prefix, n.text)
		if p.IsEmpty() {
			return b.fail(syntaxError(b.Text, n.at, n.end, "there is no word in %q; a word has letters, digits or an emoji",
				understudy.Clip(n.text)))
		}
		c := &Cond{Op: opWords, Predicate: &predicate{Node: n, Words: p}}
		if ids := b.ids(n, scope); len(ids) > 0 && !n.prefix {
			c = &Cond{Op: OpOr, Of: append([]*Cond{c}, ids...)}
		}
		if ends := ending(n, scope); ends != nil {
			return either(c, ends)
		}
		return c
	case OpField:
		if n.Name == idName || n.Name == NumberName {
			return b.bindNamed(n, scope)
		}
		l := b.field(n, scope)
		if b.Err != nil {
			return nil
		}
		return &Cond{Op: OpField, Predicate: l}
	case opAnd:
		scope = b.selectKinds(n, scope)
	}
	c := &Cond{Op: n.Op}
	for _, o := range n.Of {
		of := b.node(o, scope)
		if b.Err != nil {
			return nil
		}
		if n.Op == OpOr {
			c = either(c, of)
		} else {
			c.Of = append(c.Of, of)
		}
	}
	return c
}

// either is the condition that one of two holds; what makes up an OR is asked for by itself.
func either(one, other *Cond) *Cond {
	c := &Cond{Op: OpOr}
	for _, of := range []*Cond{one, other} {
		if of.Op == OpOr {
			c.Of = append(c.Of, of.Of...)
		} else {
			c.Of = append(c.Of, of)
		}
	}
	return c
}

// bindNamed binds id: and number:. A kind with a field of that name is asked for the field, all others
// for the id and the phone numbers. Where one of the two cannot be asked for, the other one alone is.
func (b *Binder) bindNamed(n *Node, scope []*KindView) *Cond {
	own, types, fields, others := b.number, []string(nil), map[string][]*KindView{}, []*KindView(nil)
	if n.Name == idName {
		own = b.id
	}
	for _, s := range scope {
		f := s.Kind.Field(n.Name)
		if f == nil {
			others = append(others, s)
			continue
		}
		if fields[f.Type] == nil {
			types = append(types, f.Type)
		}
		fields[f.Type] = append(fields[f.Type], s)
	}
	if len(types) == 0 {
		return own(n, others)
	}
	var either []*Cond
	meant, wrong := own(n, others), (*query.SyntaxError)(nil)
	if b.Err = nil; meant != nil {
		either = append(either, meant)
	}
	for _, t := range types { // each type by itself: the field may be a text in one kind and a number in another
		l := b.field(n, fields[t])
		if b.Err == nil {
			either = append(either, &Cond{Op: OpField, Predicate: l})
		} else if wrong == nil {
			wrong = b.Err
		}
		b.Err = nil
	}
	switch len(either) {
	case 0:
		b.Err = wrong
		return nil
	case 1:
		return either[0]
	}
	return &Cond{Op: OpOr, Of: either}
}

// leastID is how long a word must be to be looked for as an id, in bytes.
const leastID = 10

// ids are the conditions on every field that names a record, when a word has the form of an id: ids are no text.
func (b *Binder) ids(n *Node, scope []*KindView) (all []*Cond) {
	id := b.fold(n.text)
	known := slices.ContainsFunc(b.Views, func(s *KindView) bool { return s.Kind.HasIDPrefix(id) })
	isNumber := id != "" && strings.Trim(id, "0123456789") == ""
	if !isNumber && (!known || len(id) < leastID || strings.ContainsFunc(id, func(r rune) bool {
		return r >= 128 || !letter(byte(r)) && !digit(byte(r)) && r != '~' && r != '-'
	})) {
		return nil
	}
	byName := map[string]*predicate{}
	own := &predicate{Node: n, In: map[*KindView]string{}, ids: []string{id}, whole: func(c *Candidate) bool { return c.Record.ID == id }}
	for _, s := range scope {
		if s.SeesID() && len(s.Kind.ID) == strings.Count(id, spec.IDSeparator)+1 && (!isNumber || len(s.Kind.Prefixes) == 0) {
			own.In[s] = s.Kind.ID[0]
		}
		for _, f := range s.Kind.Fields {
			if !s.mayName(f, id) || isNumber && f.Link == "" {
				continue
			}
			l := byName[f.Name]
			if l == nil {
				l = &predicate{Node: n, In: map[*KindView]string{}}
				l.test, l.Term = query.OneOf{Texts: []string{id}}, &query.Predicate{Any: []string{id}}
				byName[f.Name] = l
				all = append(all, &Cond{Op: OpField, Predicate: l})
			}
			l.In[s] = f.Name
		}
	}
	if len(own.In) > 0 {
		all = append(all, &Cond{Op: OpField, Predicate: own})
	}
	return all
}

// mayName says whether a field that is fully seen may hold an id, be it that of another record or a part of its own.
func (s *KindView) mayName(f *spec.Field, id string) bool {
	_, seen := s.Fields[f.Name]
	own := len(s.Kind.ID) == 1 && s.Kind.ID[0] == f.Name // that is asked for by the record's name
	if !seen || own || f.Type == spec.TypeSelect || SortOf(s.Kind, f) != sortExact {
		return false
	}
	for _, k := range s.spec.Kinds {
		if k.Name == f.Link && len(k.Prefixes) > 0 {
			return k.HasIDPrefix(id)
		}
	}
	return true
}

// selectKinds returns the kinds that the conditions on kinds alone let through.
func (b *Binder) selectKinds(n *Node, scope []*KindView) []*KindView {
	return slices.DeleteFunc(slices.Clone(scope), func(s *KindView) bool { return !b.mayBe(n, s) })
}

// mayBe says whether the conditions on kinds alone let a kind through.
func (b *Binder) mayBe(n *Node, s *KindView) bool {
	switch n.Op {
	case opAnd:
		return !slices.ContainsFunc(n.Of, func(o *Node) bool { return !b.mayBe(o, s) })
	case OpOr:
		return slices.ContainsFunc(n.Of, func(o *Node) bool { return b.mayBe(o, s) })
	case OpNot:
		if n.Of[0].Op == OpField && IsKind(n.Of[0].Name) {
			return !b.mayBe(n.Of[0], s)
		}
	case OpField:
		if IsKind(n.Name) {
			return slices.ContainsFunc(n.Values, func(v Value) bool { return called(s.Kind, v.Text) })
		}
	}
	return true
}

func IsKind(name string) bool { return name == KindName || name == inName }

// called says whether a kind goes by a name.
func called(k *spec.Kind, name string) bool {
	return strings.EqualFold(name, k.Name) || strings.EqualFold(name, k.Singular) || strings.EqualFold(name, k.Title)
}

// field binds a condition on a field.
func (b *Binder) field(n *Node, scope []*KindView) *predicate {
	switch name := n.Name; {
	case IsKind(name):
		return b.kind(n)
	case name == hasName || name == noName:
		return b.presence(n, scope)
	case b.exact[name]:
	case strings.HasSuffix(name, CountryOf) && !slices.ContainsFunc(scope, func(s *KindView) bool { return s.has(name) }):
		return b.country(n, scope)
	case name == DateName || name == ageName:
		return b.date(n, scope)
	case name == idleName:
		return b.idle(n, scope)
	case isAnnotation(name):
		return b.annotated(n, scope)
	}
	if l := hashed(n, scope); l != nil {
		return l
	}
	in, fields := b.Fields(n.Name, n.at, n.at+len(n.Name), scope)
	if b.Err != nil {
		return nil
	}
	return b.typed(n, in, fields)
}

// Fields finds the fields a name means in the kinds of a scope. A field that is
// not fully seen in one of them may not be named.
func (b *Binder) Fields(name string, at, end int, scope []*KindView) (map[*KindView]string, []*spec.Field) {
	in := map[*KindView]string{}
	var fields []*spec.Field
	for _, s := range scope {
		f, ambiguous := s.Field(name)
		switch {
		case len(ambiguous) > 0:
			b.fail(syntaxError(b.Text, at, end, "%s of %s may be %s; write one of them in full", understudy.Clip(name), s.Kind.Name,
				strings.Join(ambiguous, " or ")))
			return nil, nil
		case f == nil:
			continue
		case f.Type == spec.TypeMedia:
			b.fail(syntaxError(b.Text, at, end, "%s of %s is a content; it cannot be searched", f.Name, s.Kind.Name))
			return nil, nil
		}
		if _, ok := s.Fields[f.Name]; !ok {
			b.fail(refused(b.Text, at, end, "your role does not fully see %s of %s; take it out%s", f.Name, s.Kind.Name, b.elsewhere(name, scope)))
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
func (b *Binder) elsewhere(name string, scope []*KindView) string {
	for _, s := range scope {
		if f, _ := s.Field(name); f != nil {
			if _, ok := s.Fields[f.Name]; ok {
				return ", or look in " + s.Kind.Name + " alone with kind:" + s.Kind.Name
			}
		}
	}
	return ""
}

// unknown is the error of a name that no field in scope has.
func (b *Binder) unknown(name string, at, end int, scope []*KindView) *query.SyntaxError {
	var kinds []string
	for _, s := range b.Views {
		if f, _ := s.Field(name); f != nil {
			kinds = append(kinds, s.Kind.Name)
		}
	}
	if len(kinds) > 0 {
		return syntaxError(b.Text, at, end, "what is looked in has no field %s; it is one of %s", understudy.Clip(name),
			strings.Join(kinds, ", "))
	}
	hidden := false
	for k, seen := range b.Every {
		if !slices.ContainsFunc(k.Fields, func(f *spec.Field) bool { return f.Name == name || strings.HasSuffix(f.Name, "."+name) }) {
			continue
		}
		if hidden = hidden || !seen; seen {
			kinds = append(kinds, k.Name)
		}
	}
	switch {
	case len(kinds) > 0:
		return syntaxError(b.Text, at, end, "what is looked in has no field %s; it is one of %s", understudy.Clip(name),
			strings.Join(kinds, ", "))
	case hidden:
		return refused(b.Text, at, end, "%s is a field of what your role does not see; take it out", understudy.Clip(name))
	}
	known := []string{KindName, inName, hasName, noName, DateName, ageName, idName, idleName, NumberName, noteName, notedName, handledName}
	if slices.Contains(known, name) {
		return syntaxError(b.Text, at, end, "%s is no field of a record; write %s: by itself", understudy.Clip(name), understudy.Clip(name))
	}
	for _, s := range scope {
		known = slices.AppendSeq(known, maps.Keys(s.Fields))
	}
	slices.Sort(known)
	return syntaxError(b.Text, at, end, "no field is called %s%s Put it in quotes to look for that text", understudy.Clip(name),
		Stopped(Hint(name, slices.Compact(known))))
}
