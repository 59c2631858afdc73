// Conditions: what a bound query asks of a record, and whether one holds.

package search

import (
	"slices"
	"time"

	"understudy/internal/query"
	"understudy/kit/tokenizer"
)

// Names that are no fields. A field of a spec by the same name goes before the
// last four.
const (
	kindName = "kind"
	inName   = "in"
	hasName  = "has"
	noName   = "no"
	dateName = "date"
	ageName  = "age"
	idName   = "id"
)

// cond is a condition with its names resolved. It is not changed once made.
type cond struct {
	op        op
	of        []*cond
	predicate *predicate // opWords and opField
}

// predicate is a condition that is not made of others.
type predicate struct {
	node *node
	// words, when it is not empty, is looked for in every text, or in the field
	// of in.
	words tokenizer.Pattern
	// in are the fields meant, by kind; a kind that is not there has none, and
	// nothing of it fulfils the condition. nil: no field is meant.
	in   map[*kindView]string
	test query.Test // of a value of that field; nil: words decide
	// whole, when there is one, looks at more of the record than one field.
	whole func(c *candidate) bool
	// What a store can be asked for it; the zero values: nothing.
	ids   []string // of one of these ids
	term  *query.Predicate
	every bool // the term is of a field each kind has; else Field is put in when all call it the same
}

// query is a tree bound to what a caller sees.
type boundQuery struct {
	text     string
	tree     *node
	cond     *cond
	views    []*kindView // the kinds something can be found of
	now      time.Time
	relative bool   // what it means depends on now
	id       string // the whole text, when it is one word: as ids are folded
}

// stopped ends a sentence after a hint, or without one.
func stopped(hint string) string {
	if hint == "" {
		return "."
	}
	return hint
}

// possible says whether something of a kind can fulfil a condition.
func (c *cond) possible(s *kindView) bool {
	switch c.op {
	case opAnd:
		return !slices.ContainsFunc(c.of, func(o *cond) bool { return !o.possible(s) })
	case opOr:
		return slices.ContainsFunc(c.of, func(o *cond) bool { return o.possible(s) })
	case opNot:
		l := c.of[0].predicate
		return l == nil || !isKind(l.node.name) || l.in[s] == ""
	}
	if c.predicate.in == nil {
		return true
	}
	return c.predicate.in[s] != ""
}

// holds says whether a record fulfils a condition.
func (c *cond) holds(r *candidate) bool {
	switch c.op {
	case opAnd:
		for _, o := range c.of {
			if !o.holds(r) {
				return false
			}
		}
		return true
	case opOr:
		for _, o := range c.of {
			if o.holds(r) {
				return true
			}
		}
		return false
	case opNot:
		return !c.of[0].holds(r)
	}
	return c.predicate.holds(r)
}

func (l *predicate) holds(r *candidate) bool {
	field := ""
	if l.in != nil {
		if field = l.in[r.view]; field == "" {
			return false
		}
	}
	switch {
	case l.whole != nil:
		return l.whole(r)
	case l.test != nil:
		v, ok := r.value(field)
		return ok && l.test.Holds(v)
	}
	for _, t := range r.text() {
		if (field == "" || t.Name == field) && l.words.In(t.Text) {
			return true
		}
	}
	return false
}

// wanted are the words of a condition that speak for a record.
func (c *cond) wanted(into []*predicate) []*predicate {
	switch c.op {
	case opNot:
		return into
	case opAnd, opOr:
		for _, o := range c.of {
			into = o.wanted(into)
		}
		return into
	}
	if c.predicate.words.Empty() {
		return into
	}
	return append(into, c.predicate)
}
