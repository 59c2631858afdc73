// Plan: from a bound query to the queries a store is asked. What they find is
// never less than what fulfils the query; every record found is tested.

package search

import (
	"maps"
	"slices"

	"understudy/internal/query"
	"understudy/kit/tokenizer"
)

// maxBranches bounds the store queries one OR is divided into.
const maxBranches = 24

// storeQuery is one Seek and the kinds it is about.
type storeQuery struct {
	query.RecordQuery
	views map[string]*kindView // by kind
}

// plan is what the store is asked for a query: the records of all store queries together.
//
// What a caller does not see must not say how much is read. Of a class of texts
// of which only some fields are seen no index of words is asked. A rule on records
// is asked for with the query; where a store cannot be asked for the rule, it is
// not asked for the query either, which is tested on what is read.
func (q *boundQuery) plan() []storeQuery {
	bySource := map[string][]*kindView{}
	for _, s := range q.views {
		bySource[s.source] = append(bySource[s.source], s)
	}
	var all []storeQuery
	for _, source := range slices.Sorted(maps.Keys(bySource)) {
		for _, c := range q.cond.branches() {
			about := slices.DeleteFunc(slices.Clone(bySource[source]), func(s *kindView) bool { return !c.possible(s) })
			for _, some := range c.alike(about) {
				all = append(all, c.storeQueries(source, some)...)
			}
		}
	}
	return all
}

// alike divides kinds into those that can be asked about in one store query.
func (c *cond) alike(about []*kindView) (all [][]*kindView) {
	var shared, part []*kindView
	for _, s := range about {
		switch {
		case s.rule != nil || c.named(): // ids are asked for kind by kind
			all = append(all, []*kindView{s})
		case s.part:
			part = append(part, s)
		default:
			shared = append(shared, s)
		}
	}
	if len(part) > 0 {
		all = append(all, part)
	}
	for len(shared) > 0 { // no class that is hidden of one kind is looked in for another
		var same []*kindView
		shared = slices.DeleteFunc(shared, func(s *kindView) bool {
			if slices.ContainsFunc(same, func(o *kindView) bool { return meet(s.classes, o.hidden) || meet(s.hidden, o.classes) }) {
				return false
			}
			same = append(same, s)
			return true
		})
		all = append(all, same)
	}
	return all
}

// meet says whether two lists share a value.
func meet(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// questions are what a store is asked about kinds that are alike.
func (c *cond) storeQueries(source string, about []*kindView) []storeQuery {
	rule := about[0].rule
	switch {
	case rule == nil:
		return []storeQuery{c.storeQuery(source, about)}
	case !rule.Whole && !c.named():
		c = &cond{op: opAnd}
	}
	q := c.storeQuery(source, about)
	q.Predicates = append(q.Predicates, rule.Predicates...)
	q.From = max(q.From, rule.From)
	if len(rule.Numbers) == 0 {
		return []storeQuery{q}
	}
	var all []storeQuery
	for _, n := range rule.Numbers {
		one := q
		one.Predicates = append(q.Predicates[:len(q.Predicates):len(q.Predicates)], query.Predicate{Number: n})
		all = append(all, one)
	}
	return all
}

// branches divides a condition at one OR, so that each part can be asked by
// terms and words of its own.
func (c *cond) branches() []*cond {
	parts := c.parts()
	for i, p := range parts {
		if p.op != opOr || len(p.of) > maxBranches || p.words() {
			continue
		}
		var all []*cond
		for _, o := range p.of {
			of := slices.Clone(parts)
			of[i] = o
			flat := &cond{op: opAnd}
			for _, x := range of {
				if x.op == opAnd {
					flat.of = append(flat.of, x.of...)
				} else {
					flat.of = append(flat.of, x)
				}
			}
			all = append(all, flat)
		}
		return all
	}
	return []*cond{c}
}

// words says whether a condition is of words alone, which a store can be asked
// for in one.
func (c *cond) words() bool {
	switch c.op {
	case opAnd, opOr:
		return !slices.ContainsFunc(c.of, func(o *cond) bool { return !o.words() })
	case opNot:
		return false
	}
	return c.predicate.test == nil && c.predicate.whole == nil
}

// parts are the conditions all of which must hold.
func (c *cond) parts() []*cond {
	if c.op == opAnd {
		return c.of
	}
	return []*cond{c}
}

// named says whether a condition is on records of known ids.
func (c *cond) named() bool {
	return slices.ContainsFunc(c.parts(), func(p *cond) bool { return p.predicate != nil && len(p.predicate.ids) > 0 })
}

// storeQuery makes the query for some kinds of a source.
func (c *cond) storeQuery(source string, about []*kindView) storeQuery {
	q := storeQuery{RecordQuery: query.RecordQuery{Source: source}, views: map[string]*kindView{}}
	for _, s := range about {
		q.Kinds = append(q.Kinds, s.kind.Name)
		q.views[s.kind.Name] = s
	}
	slices.Sort(q.Kinds)
	var texts []*query.Text
	for _, p := range c.parts() {
		if t := p.text(about); t != nil {
			texts = append(texts, t)
		}
		if p.predicate == nil {
			continue
		}
		if t := p.predicate.storePredicate(about); t != nil {
			q.Predicates = append(q.Predicates, *t)
		}
		if len(p.predicate.ids) > 0 && len(q.IDs) == 0 {
			q.IDs = p.predicate.ids
		}
	}
	q.Text = joined(query.TextAnd, texts)
	return q
}

// storePredicate is the term of the predicate for some kinds, nil when there is none they share.
func (l *predicate) storePredicate(about []*kindView) *query.Predicate {
	if l.term == nil {
		return nil
	}
	t := *l.term
	if l.every {
		return &t
	}
	for i, s := range about {
		if field := l.in[s]; i > 0 && field != t.Field || field == "" {
			return nil
		}
		t.Field = l.in[s]
	}
	return &t
}

// text is what of a condition a store's index of words can be asked for; nil:
// nothing. A NOT is never asked: what the index finds in fields the role does
// not see must not take a record away.
func (c *cond) text(about []*kindView) *query.Text {
	switch c.op {
	case opNot:
		return nil
	case opAnd:
		var of []*query.Text
		for _, o := range c.of {
			if t := o.text(about); t != nil {
				of = append(of, t)
			}
		}
		return joined(query.TextAnd, of)
	case opOr:
		var of []*query.Text
		for _, o := range c.of {
			t := o.text(about)
			if t == nil {
				return nil
			}
			of = append(of, t)
		}
		return joined(query.TextOr, of)
	}
	if c.predicate.words.Empty() || slices.ContainsFunc(about, func(s *kindView) bool { return !c.predicate.indexed(s) }) {
		return nil
	}
	t := textOf(c.predicate.words, c.predicate.node)
	if c.predicate.in == nil {
		t.In = classesOf(about)
		return t
	}
	for _, s := range about {
		field := c.predicate.in[s]
		if field == "" {
			continue
		}
		if t.Field != "" && t.Field != field {
			t.Field, t.In = "", classesOf(about)
			return t
		}
		t.Field = field // of a class of its own, that of the field alone; all sees what has no name in it, too
		if class := s.fields[field]; !s.all && !slices.Contains(t.In, class) {
			t.In = append(t.In, class)
		}
	}
	return t
}

// indexed says whether the index of words tells nothing of a kind but what is
// seen: every field of the classes that are looked in is.
func (l *predicate) indexed(s *kindView) bool {
	if l.in == nil {
		return s.all || !s.part
	}
	field := l.in[s]
	return s.all || field == "" || slices.Contains(s.classes, s.fields[field])
}

// textOf is a pattern as a store is asked for it.
func textOf(p tokenizer.Pattern, n *node) *query.Text {
	text := n.text
	if n.op == opField {
		text = n.values[0].text
	}
	switch {
	case len(p.Words()) > 1:
		return &query.Text{Op: query.TextPhrase, Words: []string{text}, Prefix: p.Prefix()}
	case p.Prefix():
		return &query.Text{Op: query.TextPrefix, Words: []string{text}}
	}
	return &query.Text{Op: query.TextWord, Words: []string{text}}
}

func joined(op query.TextOp, of []*query.Text) *query.Text {
	switch len(of) {
	case 0:
		return nil
	case 1:
		return of[0]
	}
	return &query.Text{Op: op, Of: of}
}

// classesOf are the classes of which everything is seen in one of some kinds.
func classesOf(about []*kindView) []string {
	var all []string
	for _, s := range about {
		if s.all {
			return nil // what the spec does not name, too
		}
		for _, class := range s.classes {
			if !slices.Contains(all, class) {
				all = append(all, class)
			}
		}
	}
	slices.Sort(all)
	return all
}
