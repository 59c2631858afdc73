// This file makes the store queries for a bound query. They find at least every match, and each found record is tested.

package lang

import (
	"maps"
	"slices"

	"understudy/internal/query"
	"understudy/kit/tokenizer"
)

// maxBranches is the maximum number of store queries for one OR.
const maxBranches = 24

// StoreQuery is one query to the store, with the views of the kinds that it searches.
type StoreQuery struct {
	Query query.RecordQuery
	Views map[string]*KindView // the views of the kinds, by the name of the kind
}

// Plan returns the store queries whose records together contain every match.
//
// The amount of work must not reveal hidden values. So the index of words is searched only in fields that the caller
// sees. A row rule becomes part of the store query. If the store cannot evaluate the rule, the query's conditions are
// not sent either, but tested on the records read.
func (q *BoundQuery) Plan() []StoreQuery {
	bySource, ruled := map[string][]*KindView{}, false
	for _, s := range q.Views {
		bySource[s.Source] = append(bySource[s.Source], s)
		ruled = ruled || s.Rule != nil
	}
	var all []StoreQuery
	for _, source := range slices.Sorted(maps.Keys(bySource)) {
		for _, c := range q.Cond.branches() {
			about := slices.DeleteFunc(slices.Clone(bySource[source]), func(s *KindView) bool { return !c.CanMatch(s) })
			for _, some := range c.groupViews(about) {
				all = append(all, c.storeQueries(source, some)...)
			}
		}
	}
	for i := range all {
		all[i].Query.ConstantEffort = ruled
	}
	return all
}

// groupViews groups the kinds that the same store query can search.
func (c *Cond) groupViews(about []*KindView) (all [][]*KindView) {
	var shared []*KindView
	for _, s := range about {
		if s.Rule != nil || c.hasIDs() { // a kind with a row rule needs its own store query, and a query with ids can search only one kind
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

// storeQueries returns the store queries for one group of kinds.
func (c *Cond) storeQueries(source string, about []*KindView) []StoreQuery {
	rule := about[0].Rule
	if rule == nil {
		return []StoreQuery{c.storeQuery(source, about)}
	}
	if !rule.Complete && !c.hasIDs() {
		c = &Cond{Op: opAnd}
	}
	all := []StoreQuery{c.storeQuery(source, about)}
	q := &all[0].Query
	if q.Text = nil; c.hasIDs() {
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

// branches splits a condition at one OR, so that each branch becomes its own store query.
func (c *Cond) branches() []*Cond {
	parts := c.Parts()
	for i, p := range parts {
		if p.Op != OpOr || len(p.Of) > maxBranches || p.HasOnlyWords() {
			continue
		}
		var all []*Cond
		for _, o := range p.Of {
			of := slices.Clone(parts)
			of[i] = o
			all = append(all, joinConds(opAnd, of))
		}
		return all
	}
	return []*Cond{c}
}

// HasOnlyWords reports whether a condition consists only of words that one store query can find.
func (c *Cond) HasOnlyWords() bool {
	switch c.Op {
	case opAnd, OpOr:
		return !slices.ContainsFunc(c.Of, func(o *Cond) bool { return !o.HasOnlyWords() })
	case OpNot:
		return false
	}
	return c.Predicate.test == nil && c.Predicate.recordTest == nil
}

// HasNumberIndex reports whether the index of phone numbers finds every match faster than reading all rows.
func (c *Cond) HasNumberIndex() bool {
	switch c.Op {
	case opAnd:
		return slices.ContainsFunc(c.Of, (*Cond).HasNumberIndex)
	case OpOr:
		return !slices.ContainsFunc(c.Of, func(o *Cond) bool { return !o.HasNumberIndex() })
	}
	return c.Predicate != nil && c.Predicate.Term != nil && c.Predicate.Term.Number != ""
}

// Parts returns the conditions of an AND, or the condition itself.
func (c *Cond) Parts() []*Cond {
	if c.Op == opAnd {
		return c.Of
	}
	return []*Cond{c}
}

// hasIDs reports whether a condition lists the ids of records.
func (c *Cond) hasIDs() bool {
	return slices.ContainsFunc(c.Parts(), func(p *Cond) bool { return p.Predicate != nil && len(p.Predicate.ids) > 0 })
}

// storeQuery returns the query for some kinds of a source.
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
	q.Text = joinTexts(query.TextAnd, texts)
	return StoreQuery{q, views}
}

// StorePredicate returns the store's predicate for some kinds, or nil if they do not share a field.
func (l *predicate) StorePredicate(about []*KindView) *query.Predicate {
	if l.Term == nil {
		return nil
	}
	t := *l.Term
	if l.allKinds {
		return &t
	}
	for i, s := range about {
		if field := l.Fields[s]; i > 0 && field != t.Field || field == "" {
			return nil
		}
		t.Field = l.Fields[s]
	}
	return &t
}

// Text returns the part of a condition that the store's index of words can find, or nil. The words below a NOT are
// not sent to the index, but tested on every record found.
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
		return joinTexts(query.TextAnd, of)
	case OpOr:
		var of []*query.Text
		for _, o := range c.Of {
			t := o.Text(about)
			if t == nil {
				return nil
			}
			of = append(of, t)
		}
		return joinTexts(query.TextOr, of)
	}
	if c.Predicate.Words.IsEmpty() || slices.ContainsFunc(about, (*KindView).hasManyFields) {
		return nil
	}
	t, fields := textOf(c.Predicate.Words, c.Predicate.Node), c.Predicate.Fields
	if fields == nil && slices.ContainsFunc(about, func(s *KindView) bool { return s.Unnamed }) {
		return t // fields that the spec does not name are searched too
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

// textOf returns a word pattern as a condition for the store's index.
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

func joinTexts(op query.TextOp, of []*query.Text) *query.Text {
	switch len(of) {
	case 0:
		return nil
	case 1:
		return of[0]
	}
	return &query.Text{Op: op, Parts: of}
}
