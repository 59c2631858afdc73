// This file resolves the names of a parsed query to fields of kinds, for one caller.

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
	Text       string
	Now        time.Time
	Views      []*KindView                                    // the requested kinds that the caller sees
	AllKinds   func(yield func(k *spec.Kind, seen bool) bool) // yields every kind of the specs, and whether the caller sees it
	fieldNames map[string]bool                                // the complete field names of the kinds that the caller sees
	relative   bool                                           // whether the meaning of the query depends on Now
	Err        *query.SyntaxError

	hint        string // a sentence with a better query, shown if nothing matches
	annotations bool   // whether the query has a condition on annotations
}

// Bind resolves the names of a tree. The error is a *query.SyntaxError.
func Bind(text string, tree *Node, views []*KindView, every func(yield func(*spec.Kind, bool) bool), now time.Time) (*BoundQuery, error) {
	b := &Binder{Text: text, Now: now, Views: views, AllKinds: every, fieldNames: map[string]bool{}}
	for _, s := range views {
		for _, f := range s.Kind.Fields {
			b.fieldNames[f.Name] = true
		}
	}
	tree = b.dropNumbers(tree, views)
	c := b.bindNode(tree, views)
	if b.Err != nil {
		return nil, b.Err
	}
	q := &BoundQuery{Tree: tree, Cond: c, Now: now, Relative: b.relative, Annotations: b.annotations, IDViews: views, Hint: b.hint}
	if tree.Op == opWords && !tree.prefix {
		q.ID = b.foldID(tree.text)
	} else if n, _ := tree.Number(); n != nil && n.at == n.Values[0].at && !strings.Contains(n.Values[0].Text, "+") {
		q.ID = understudy.ParsePhone(n.Values[0].Text).Digits
	}
	for _, s := range views {
		if c.CanMatch(s) {
			q.Views = append(q.Views, s)
		}
	}
	return q, nil
}

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

// dropNumber decides about digits that may be a phone number or a word. If no searched kind has a phone number that could
// match, it returns the tree with the word only. So a role that sees no phone numbers can search for digits as a word.
func dropNumber(tree *Node, scope []*KindView) *Node {
	number, words := tree.Number()
	if number == nil || number.at != number.Values[0].at { // the user wrote the condition number: explicitly
		return tree
	}
	mayHave := func(s *KindView) bool { return len(s.phones) > 0 || len(s.masked) > 0 && words == nil }
	if isNumber(number.Values[0].Text) && (slices.ContainsFunc(scope, mayHave) || numberHash(number, scope) != nil) {
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

// Number returns the phone number condition that a tree consists of, and the same digits as words if the tree has both.
// number is nil for any other tree.
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

// refuse fails with an error about the text from at to end, and returns nil.
func (b *Binder) refuse(at, end int, format string, args ...any) *Cond {
	return b.fail(syntaxError(b.Text, at, end, format, args...))
}

// forbid fails with an error about something that the caller may not use, and returns nil.
func (b *Binder) forbid(at, end int, format string, args ...any) *Cond {
	return b.fail(forbiddenError(b.Text, at, end, format, args...))
}

// bindNode binds a node. scope are the kinds that the neighbouring conditions allow.
func (b *Binder) bindNode(n *Node, scope []*KindView) *Cond {
	if n.conditionText != "" {
		whole := b.Text
		b.Text = n.conditionText
		defer func() { b.Text = whole }()
	}
	switch n.Op {
	case opWords:
		p := tokenizer.Phrase(n.prefix, n.text)
		if p.IsEmpty() {
			return b.refuse(n.at, n.end, "there is no word in %q; a word has letters, digits or an emoji", understudy.Clip(n.text))
		}
		either := []*Cond{{Op: opWords, Predicate: &predicate{Node: n, Words: p}}}
		if !n.prefix {
			either = append(either, b.idConditions(n, scope)...)
		}
		if ends := lastDigits(n, scope); ends != nil {
			either = append(either, ends)
		}
		return joinConds(OpOr, either)
	case OpField:
		if n.Name == idName || n.Name == NumberName {
			return b.bindNamed(n, scope)
		}
		return b.bindField(n, scope)
	case opAnd:
		scope = b.selectKinds(n, scope)
	}
	var parts []*Cond
	for _, o := range n.Of {
		parts = append(parts, b.bindNode(o, scope))
		if b.Err != nil {
			return nil
		}
	}
	if n.Op == OpOr {
		return joinConds(OpOr, parts)
	}
	return &Cond{Op: n.Op, Of: parts}
}

// fieldCond returns the condition of a predicate on a field or pseudo-field.
func fieldCond(l *predicate) *Cond { return &Cond{Op: OpField, Predicate: l} }

// joinConds returns the condition that all parts (opAnd) or at least one of them (OpOr) are true. The parts of a part with the
// same operator become parts of the result.
func joinConds(o op, parts []*Cond) *Cond {
	c := &Cond{Op: o}
	for _, p := range parts {
		if p.Op == o {
			c.Of = append(c.Of, p.Of...)
		} else {
			c.Of = append(c.Of, p)
		}
	}
	if len(c.Of) == 1 {
		return c.Of[0]
	}
	return c
}

// bindNamed binds id: and number:. In a kind with a field of that name, the condition is on the field. In other
// kinds, it is on the id or the phone numbers. If only one of the two conditions can be bound, it is the result.
func (b *Binder) bindNamed(n *Node, scope []*KindView) *Cond {
	own, types, fields, others := b.bindNumber, []string(nil), map[string][]*KindView{}, []*KindView(nil)
	if n.Name == idName {
		own = b.bindID
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
	for _, t := range types { // a field may be a text in one kind and a number in another, so each type gets its own condition
		l := b.bindField(n, fields[t])
		if b.Err == nil {
			either = append(either, l)
		} else if wrong == nil {
			wrong = b.Err
		}
		b.Err = nil
	}
	if len(either) == 0 {
		return b.fail(wrong)
	}
	return joinConds(OpOr, either)
}

// minIDBytes is the minimum length of a word that is searched for as an id.
const minIDBytes = 10

// idConditions returns conditions on every field that names a record, if the word looks like an id. The index of words
// does not contain ids.
func (b *Binder) idConditions(n *Node, scope []*KindView) (all []*Cond) {
	id := b.foldID(n.text)
	known := slices.ContainsFunc(b.Views, func(s *KindView) bool { return s.Kind.HasIDPrefix(id) })
	isNumber := id != "" && strings.Trim(id, "0123456789") == ""
	if !isNumber && (!known || len(id) < minIDBytes || strings.ContainsFunc(id, func(r rune) bool {
		return r >= 128 || !isLetter(byte(r)) && !isDigit(byte(r)) && r != '~' && r != '-'
	})) {
		return nil
	}
	byName := map[string]*predicate{}
	own := &predicate{Node: n, Fields: map[*KindView]string{}, ids: []string{id}}
	own.recordTest = func(c *Candidate) bool { return c.Record.ID == id }
	for _, s := range scope {
		if s.CanSeeID() && len(s.Kind.ID) == strings.Count(id, spec.IDSeparator)+1 && (!isNumber || len(s.Kind.Prefixes) == 0) {
			own.Fields[s] = s.Kind.ID[0]
		}
		for _, f := range s.Kind.Fields {
			if !s.canHoldID(f, id) || isNumber && f.Link == "" {
				continue
			}
			l := byName[f.Name]
			if l == nil {
				l = &predicate{Node: n, Fields: map[*KindView]string{}}
				l.test, l.Term = query.OneOf{Texts: []string{id}}, &query.Predicate{Any: []string{id}}
				byName[f.Name] = l
				all = append(all, fieldCond(l))
			}
			l.Fields[s] = f.Name
		}
	}
	if len(own.Fields) > 0 {
		all = append(all, fieldCond(own))
	}
	return all
}

// canHoldID reports whether a visible field may contain the id of another record, or a part of its own record's id.
func (s *KindView) canHoldID(f *spec.Field, id string) bool {
	_, seen := s.Fields[f.Name]
	own := len(s.Kind.ID) == 1 && s.Kind.ID[0] == f.Name // the record's own id has its own condition
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

// selectKinds returns the kinds of scope that satisfy the kind: conditions of a node.
func (b *Binder) selectKinds(n *Node, scope []*KindView) []*KindView {
	return slices.DeleteFunc(slices.Clone(scope), func(s *KindView) bool { return !b.canMatchKind(n, s) })
}

// canMatchKind reports whether a kind satisfies the kind: conditions of a node.
func (b *Binder) canMatchKind(n *Node, s *KindView) bool {
	switch n.Op {
	case opAnd:
		return !slices.ContainsFunc(n.Of, func(o *Node) bool { return !b.canMatchKind(o, s) })
	case OpOr:
		return slices.ContainsFunc(n.Of, func(o *Node) bool { return b.canMatchKind(o, s) })
	case OpNot:
		if n.Of[0].Op == OpField && IsKind(n.Of[0].Name) {
			return !b.canMatchKind(n.Of[0], s)
		}
	case OpField:
		if IsKind(n.Name) {
			return slices.ContainsFunc(n.Values, func(v Value) bool { return isKindName(s.Kind, v.Text) })
		}
	}
	return true
}

// IsKind reports whether a name is kind or in, which select the kinds to search.
func IsKind(name string) bool { return name == KindName || name == inName }

func isKindName(k *spec.Kind, name string) bool {
	return strings.EqualFold(name, k.Name) || strings.EqualFold(name, k.Singular) || strings.EqualFold(name, k.Title)
}

// bindField binds a condition on a field or pseudo-field.
func (b *Binder) bindField(n *Node, scope []*KindView) *Cond {
	switch name := n.Name; {
	case IsKind(name):
		return b.bindKind(n)
	case name == hasName || name == noName:
		return b.bindPresence(n, scope)
	case b.fieldNames[name]:
	case strings.HasSuffix(name, CountryOf) && !slices.ContainsFunc(scope, func(s *KindView) bool { return s.hasField(name) }):
		return b.bindCountry(n, scope)
	case name == DateName || name == ageName:
		return b.bindDate(n, scope)
	case name == idleName:
		return b.bindIdle(n, scope)
	case name == NearName:
		return b.bindNear(n, scope)
	case isAnnotation(name):
		return b.bindAnnotation(n, scope)
	}
	if l := bindHash(n, scope); l != nil {
		return fieldCond(l)
	}
	in, fields := b.Fields(n.Name, n.at, n.at+len(n.Name), scope)
	if b.Err != nil {
		return nil
	}
	return b.bindTyped(n, in, fields)
}

// Fields returns the fields that a name means in the kinds of a scope. It fails if one of the kinds has the field
// but the caller does not fully see it.
func (b *Binder) Fields(name string, at, end int, scope []*KindView) (map[*KindView]string, []*spec.Field) {
	in := map[*KindView]string{}
	var fields []*spec.Field
	for _, s := range scope {
		f, ambiguous := s.Field(name)
		switch {
		case len(ambiguous) > 0:
			b.refuse(at, end, "%s of %s may be %s; write one of them in full", understudy.Clip(name), s.Kind.Name,
				strings.Join(ambiguous, " or "))
			return nil, nil
		case f == nil:
			continue
		case f.Type == spec.TypeMedia:
			b.refuse(at, end, "%s of %s is a file; it can't be searched", f.Name, s.Kind.Name)
			return nil, nil
		}
		if _, ok := s.Fields[f.Name]; !ok {
			b.forbid(at, end, "your role can't see %s of %s in full; remove it%s", f.Name, s.Kind.Name, b.suggestKind(name, scope))
			return nil, nil
		}
		in[s] = f.Name
		fields = append(fields, f)
	}
	if len(fields) == 0 {
		b.fail(b.unknownField(name, at, end, scope))
	}
	return in, fields
}

// suggestKind returns the part of an error message that names a kind in which the field is visible.
func (b *Binder) suggestKind(name string, scope []*KindView) string {
	for _, s := range scope {
		if f, _ := s.Field(name); f != nil {
			if _, ok := s.Fields[f.Name]; ok {
				return ", or search only " + s.Kind.Name + " with kind:" + s.Kind.Name
			}
		}
	}
	return ""
}

// unknownField returns the error for a name that is no field of the kinds in scope.
func (b *Binder) unknownField(name string, at, end int, scope []*KindView) *query.SyntaxError {
	var kinds []string
	for _, s := range b.Views {
		if f, _ := s.Field(name); f != nil {
			kinds = append(kinds, s.Kind.Name)
		}
	}
	if len(kinds) > 0 {
		return syntaxError(b.Text, at, end, "these records have no field %s; it is one of %s", understudy.Clip(name),
			strings.Join(kinds, ", "))
	}
	hidden := false
	for k, seen := range b.AllKinds {
		if !slices.ContainsFunc(k.Fields, func(f *spec.Field) bool { return f.Name == name || strings.HasSuffix(f.Name, "."+name) }) {
			continue
		}
		if hidden = hidden || !seen; seen {
			kinds = append(kinds, k.Name)
		}
	}
	switch {
	case len(kinds) > 0:
		return syntaxError(b.Text, at, end, "these records have no field %s; it is one of %s", understudy.Clip(name),
			strings.Join(kinds, ", "))
	case hidden:
		return forbiddenError(b.Text, at, end, "%s is a field of records that your role can't see; remove it", understudy.Clip(name))
	}
	known := []string{KindName, inName, hasName, noName, DateName, ageName, idName, idleName, NearName, NumberName, noteName, notedName,
		handledName}
	if slices.Contains(known, name) {
		return syntaxError(b.Text, at, end, "%s is not a field of a record; write %s: alone", understudy.Clip(name), understudy.Clip(name))
	}
	for _, s := range scope {
		known = slices.AppendSeq(known, maps.Keys(s.Fields))
	}
	slices.Sort(known)
	return syntaxError(b.Text, at, end, "there is no field %s%s To search for this text, put it in quotes", understudy.Clip(name),
		EndSentence(Hint(name, slices.Compact(known))))
}
