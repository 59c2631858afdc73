// Plan: from a bound query to the queries a store is asked. What they find is
// never less than what fulfils the query; every record found is tested.

package lang

import (
	"maps"
	"slices"

	"understudy/internal/query"
	"understudy/kit/tokenizer"
)

// maxBranches bounds the store queries one OR is divided into.
const maxBranches = 24

// StoreQuery is one Seek and the kinds it is about.
type StoreQuery struct {
	Query query.RecordQuery
	Views map[string]*KindView // by kind
}

// Plan is what the store is asked for a query: the records of all store queries together.
//
// What a caller does not see must not say how much is read. The index of words is asked only for the fields that the
// caller sees. A rule on records is asked for with the query; where a store cannot be asked for the rule, it is not
// asked for the query either, which is tested on what is read.
func (q *BoundQuery) Plan() []StoreQuery {
	bySource, ruled := map[string][]*KindView{}, false
	for _, s := range q.Views {
		bySource[s.Source] = append(bySource[s.Source], s)
		ruled = ruled || s.Rule != nil
	}
	var all []StoreQuery
	for _, source := range slices.Sorted(maps.Keys(bySource)) {
		for _, c := range q.Cond.branches() {
			about := slices.DeleteFunc(slices.Clone(bySource[source]), func(s *KindView) bool { return !c.Possible(s) })
			for _, some := range c.alike(about) {
				all = append(all, c.storeQueries(source, some)...)
			}
		}
	}
	for i := range all {
		all[i].Query.ConstantEffort = ruled
	}
	return all
}

// alike divides kinds into those that can be asked about in one store query.
func (c *Cond) alike(about []*KindView) (all [][]*KindView) {
	var shared []*KindView
	for _, s := range about {
		if s.Rule != nil || c.named() { // ids are asked for kind by kind
			all = append(all, []*KindView{s})
		} else {
			shared = append(shared, s)
		}
	}
	if len(shared) > 0 {
		all = append(all, shared)
	}
	return all
}

// storeQueries are what a store is asked about kinds that are alike.
func (c *Cond) storeQueries(source string, about []*KindView) []StoreQuery {
	rule := about[0].Rule
	if rule == nil {
		return []StoreQuery{c.storeQuery(source, about)}
	}
	if !rule.Complete && !c.named() {
		c = &Cond{Op: opAnd}
	}
	all := []StoreQuery{c.storeQuery(source, about)}
	q := &all[0].Query
	if q.Text = nil; c.named() {
		q.Predicates = nil
		q.IDs = slices.DeleteFunc(slices.Clone(q.IDs), func(id string) bool { return !rule.CanFindID(id) })
		if len(q.IDs) == 0 {
			return nil
		}
		return all
	}
	q.Rule, q.From = rule.Predicates, max(q.From, rule.From)
	if len(rule.Numbers) == 0 {
		return all
	}
	one := all[0]
	all = nil
	for _, n := range rule.Numbers {
		one.Query.Rule = append(q.Rule[:len(q.Rule):len(q.Rule)], query.Predicate{Number: n})
		all = append(all, one)
	}
	return all
}

// branches divides a condition at one OR, so that each part can be asked by terms and words of its own.
func (c *Cond) branches() []*Cond {
	parts := c.Parts()
	for i, p := range parts {
		if p.Op != OpOr || len(p.Of) > maxBranches || p.Words() {
			continue
		}
		var all []*Cond
		for _, o := range p.Of {
			of := slices.Clone(parts)
			of[i] = o
			flat := &Cond{Op: opAnd}
			for _, x := range of {
				if x.Op == opAnd {
					flat.Of = append(flat.Of, x.Of...)
				} else {
					flat.Of = append(flat.Of, x)
				}
			}
			all = append(all, flat)
		}
		return all
	}
	return []*Cond{c}
}

// Words says whether a condition is of words alone, which a store can be asked for in one.
func (c *Cond) Words() bool {
	switch c.Op {
	case opAnd, OpOr:
		return !slices.ContainsFunc(c.Of, func(o *Cond) bool { return !o.Words() })
	case OpNot:
		return false
	}
	return c.Predicate.test == nil && c.Predicate.whole == nil
}

// Indexed reports whether an index of phone numbers gives all that a condition may find, sooner than every row is read.
func (c *Cond) Indexed() bool {
	switch c.Op {
	case opAnd:
		return slices.ContainsFunc(c.Of, (*Cond).Indexed)
	case OpOr:
		return !slices.ContainsFunc(c.Of, func(o *Cond) bool { return !o.Indexed() })
	}
	return c.Predicate != nil && c.Predicate.Term != nil && c.Predicate.Term.Number != ""
}

// Parts are the conditions all of which must hold.
func (c *Cond) Parts() []*Cond {
	if c.Op == opAnd {
		return c.Of
	}
	return []*Cond{c}
}

// named says whether a condition is on records of known ids.
func (c *Cond) named() bool {
	return slices.ContainsFunc(c.Parts(), func(p *Cond) bool { return p.Predicate != nil && len(p.Predicate.ids) > 0 })
}

// storeQuery makes the query for some kinds of a source.
func (c *Cond) storeQuery(source string, about []*KindView) StoreQuery {
	q, views := query.RecordQuery{Source: source}, map[string]*KindView{}
	for _, s := range about {
		q.Kinds = append(q.Kinds, s.Kind.Name)
		views[s.Kind.Name] = s
	}
	slices.Sort(q.Kinds)
	var texts []*query.Text
	for _, p := range c.Parts() {
		if t := p.Text(about); t != nil {
			texts = append(texts, t)
		}
		if p.Predicate == nil {
			continue
		}
		if t := p.Predicate.StorePredicate(about); t != nil {
			q.Predicates = append(q.Predicates, *t)
		}
		if len(p.Predicate.ids) > 0 && len(q.IDs) == 0 {
			q.IDs = p.Predicate.ids
		}
	}
	q.Text = joined(query.TextAnd, texts)
	return StoreQuery{q, views}
}

// StorePredicate is the term of the predicate for some kinds, nil when there is none they share.
func (l *predicate) StorePredicate(about []*KindView) *query.Predicate {
	if l.Term == nil {
		return nil
	}
	t := *l.Term
	if l.every {
		return &t
	}
	for i, s := range about {
		if field := l.In[s]; i > 0 && field != t.Field || field == "" {
			return nil
		}
		t.Field = l.In[s]
	}
	return &t
}

// Text returns what of a condition a store's index of words can be asked for; nil:
// nothing. A NOT is not asked for, but tested on every record found.
func (c *Cond) Text(about []*KindView) *query.Text {
	switch c.Op {
	case OpNot:
		return nil
	case opAnd:
		var of []*query.Text
		for _, o := range c.Of {
			if t := o.Text(about); t != nil {
				of = append(of, t)
			}
		}
		return joined(query.TextAnd, of)
	case OpOr:
		var of []*query.Text
		for _, o := range c.Of {
			t := o.Text(about)
			if t == nil {
				return nil
			}
			of = append(of, t)
		}
		return joined(query.TextOr, of)
	}
	if c.Predicate.Words.IsEmpty() || slices.ContainsFunc(about, (*KindView).hasManyFields) {
		return nil
	}
	t, fields := textOf(c.Predicate.Words, c.Predicate.Node), c.Predicate.In
	if fields == nil && slices.ContainsFunc(about, func(s *KindView) bool { return s.All }) {
		return t // what the spec does not name is searched, too
	}
	t.Fields = map[string][]string{}
	for _, s := range about {
		switch {
		case fields == nil:
			t.Fields[s.Kind.Name] = s.visible
		case fields[s] != "":
			t.Fields[s.Kind.Name] = []string{fields[s]}
		}
	}
	return t
}

// textOf is a pattern as a store is asked for it.
func textOf(p tokenizer.Pattern, n *Node) *query.Text {
	text := n.text
	if n.Op == OpField {
		text = n.Values[0].Text
	}
	switch {
	case len(p.Words()) > 1:
		return &query.Text{Op: query.TextPhrase, Words: []string{text}, Prefix: p.IsPrefix()}
	case p.IsPrefix():
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
	return &query.Text{Op: op, Parts: of}
}
