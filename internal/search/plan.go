// Plan: from a bound query to the questions a store is asked. What they find is
// never less than what fulfils the query; every record found is tested.

package search

import (
	"slices"

	"understudy"
	"understudy/kit/words"
)

// maxBranches bounds the questions one OR is divided into.
const maxBranches = 24

// question is one Seek and the kinds it is about.
type question struct {
	understudy.Seek
	sights map[string]*sight // by kind
}

// plan is what the store is asked for a query: the questions' records together.
func (q *query) plan() []question {
	bySource := map[string][]*sight{}
	var sources []string
	for _, s := range q.sights {
		if bySource[s.source] == nil {
			sources = append(sources, s.source)
		}
		bySource[s.source] = append(bySource[s.source], s)
	}
	slices.Sort(sources)
	var all []question
	for _, source := range sources {
		for _, c := range q.cond.branches() {
			var about []*sight
			for _, s := range bySource[source] {
				if c.possible(s) {
					about = append(about, s)
				}
			}
			if len(about) > 0 {
				all = append(all, c.ask(source, about))
			}
		}
	}
	return all
}

// branches divides a condition at one OR, so that each part can be asked by
// terms and words of its own.
func (c *cond) branches() []*cond {
	parts := []*cond{c}
	if c.op == opAnd {
		parts = c.of
	}
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
	return c.leaf.test == nil
}

// ask makes the question for some kinds of a source.
func (c *cond) ask(source string, about []*sight) question {
	q := question{Seek: understudy.Seek{Source: source}, sights: map[string]*sight{}}
	for _, s := range about {
		q.Kinds = append(q.Kinds, s.kind.Name)
		q.sights[s.kind.Name] = s
	}
	slices.Sort(q.Kinds)
	parts := []*cond{c}
	if c.op == opAnd {
		parts = c.of
	}
	var texts []*understudy.Text
	for _, p := range parts {
		if t := p.text(about); t != nil {
			texts = append(texts, t)
		}
		if p.leaf == nil {
			continue
		}
		if t := p.leaf.asked(about); t != nil {
			q.Terms = append(q.Terms, *t)
		}
	}
	q.Text = joined(understudy.TextAnd, texts)
	return q
}

// asked is the leaf's term for some kinds, nil when there is none they share.
func (l *leaf) asked(about []*sight) *understudy.Term {
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
func (c *cond) text(about []*sight) *understudy.Text {
	switch c.op {
	case opNot:
		return nil
	case opAnd:
		var of []*understudy.Text
		for _, o := range c.of {
			if t := o.text(about); t != nil {
				of = append(of, t)
			}
		}
		return joined(understudy.TextAnd, of)
	case opOr:
		var of []*understudy.Text
		for _, o := range c.of {
			t := o.text(about)
			if t == nil {
				return nil
			}
			of = append(of, t)
		}
		return joined(understudy.TextOr, of)
	}
	if c.leaf.words.Empty() {
		return nil
	}
	t := textOf(c.leaf.words, c.leaf.node)
	if c.leaf.in == nil {
		t.In = classesOf(about)
		return t
	}
	for _, s := range about {
		field := c.leaf.in[s]
		if field == "" {
			continue
		}
		if t.Field != "" && t.Field != field {
			t.Field, t.In = "", classesOf(about)
			return t
		}
		t.Field = field // of a class of its own, that of the field alone
		if class := s.fields[field]; !slices.Contains(t.In, class) {
			t.In = append(t.In, class)
		}
	}
	return t
}

// textOf is a pattern as a store is asked for it.
func textOf(p words.Pattern, n *node) *understudy.Text {
	text := n.text
	if n.op == opField {
		text = n.values[0].text
	}
	switch {
	case len(p.Words()) > 1:
		return &understudy.Text{Op: understudy.TextPhrase, Words: []string{text}, Prefix: p.Prefix()}
	case p.Prefix():
		return &understudy.Text{Op: understudy.TextPrefix, Words: []string{text}}
	}
	return &understudy.Text{Op: understudy.TextWord, Words: []string{text}}
}

func joined(op understudy.TextOp, of []*understudy.Text) *understudy.Text {
	switch len(of) {
	case 0:
		return nil
	case 1:
		return of[0]
	}
	return &understudy.Text{Op: op, Of: of}
}

// classesOf are the classes of which something is seen in one of some kinds.
func classesOf(about []*sight) []string {
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
