// Condition: patterns of words combined by all, any and exclude, over several fields.

// Package conditiontest decides whether the fields of a record fulfil a search, by looking at each word. Tests compare the store with it.
package conditiontest

import (
	"iter"

	"understudy/kit/tokenizer"
)

// Condition is a condition on the fields of a record. It is immutable.
type Condition struct {
	op       op
	pattern  tokenizer.Pattern
	children []*Condition
	filter   func(tokenizer.Field) bool
}

type op uint8

const (
	has op = iota
	all
	anyOf
	exclude
)

// Has returns a condition that holds if a field contains the pattern.
func Has(p tokenizer.Pattern) *Condition { return &Condition{op: has, pattern: p} }

// All returns a condition that holds if all given conditions hold. Without conditions it always holds.
func All(of ...*Condition) *Condition { return &Condition{op: all, children: of} }

// Any returns a condition that holds if at least one of the given conditions holds. Without conditions it never holds.
func Any(of ...*Condition) *Condition { return &Condition{op: anyOf, children: of} }

// Exclude returns a condition that holds if the condition this holds and the condition not does not hold.
func Exclude(this, not *Condition) *Condition {
	return &Condition{op: exclude, children: []*Condition{this, not}}
}

// Restrict returns the condition c restricted to the fields for which where returns true. where gets each field
// without its text. Earlier restrictions of c still apply.
func (c *Condition) Restrict(where func(tokenizer.Field) bool) *Condition {
	return &Condition{op: all, children: []*Condition{c}, filter: where}
}

// Match reports whether the fields fulfil the condition. A phrase must be found within a single field.
func (c *Condition) Match(fields iter.Seq[tokenizer.Field]) bool {
	leaves := c.collectLeaves(nil, leaf{})
	for f := range fields {
		for i := range leaves {
			if l := &leaves[i]; !l.matched && l.canSearch(f) {
				l.matched = l.pattern.MatchText(f.Text)
			}
		}
	}
	holds, _ := c.evaluate(leaves)
	return holds
}

// Find yields the places in a field that match a pattern of the condition. Patterns that must not match are
// left out. The places are yielded pattern by pattern and may overlap.
func (c *Condition) Find(f tokenizer.Field) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) {
		for _, l := range c.collectLeaves(nil, leaf{}) {
			if l.negated || !l.canSearch(f) {
				continue
			}
			for start, end := range l.pattern.Find(f.Text) {
				if !yield(start, end) {
					return
				}
			}
		}
	}
}

// leaf is a pattern of a condition, and the filters of the fields that are searched for it.
type leaf struct {
	pattern tokenizer.Pattern
	filters []func(tokenizer.Field) bool
	negated bool
	matched bool
}

// canSearch reports whether a field passes all filters. The filters do not see its text.
func (l *leaf) canSearch(f tokenizer.Field) bool {
	f.Text = ""
	for _, where := range l.filters {
		if !where(f) {
			return false
		}
	}
	return true
}

// collectLeaves appends the patterns of c in the order of the tree. under has the filters and the negation of
// the conditions above c.
func (c *Condition) collectLeaves(into []leaf, under leaf) []leaf {
	if c.filter != nil {
		under.filters = append(under.filters[:len(under.filters):len(under.filters)], c.filter)
	}
	if c.op == has {
		under.pattern = c.pattern
		return append(into, under)
	}
	for i, of := range c.children {
		below := under
		below.negated = under.negated != (c.op == exclude && i == 1)
		into = of.collectLeaves(into, below)
	}
	return into
}

// evaluate returns whether the condition c holds, and the leaves of the conditions that follow c in the tree.
func (c *Condition) evaluate(leaves []leaf) (bool, []leaf) {
	switch c.op {
	case has:
		return leaves[0].matched, leaves[1:]
	case exclude:
		var this, not bool
		this, leaves = c.children[0].evaluate(leaves)
		not, leaves = c.children[1].evaluate(leaves)
		return this && !not, leaves
	}
	result := c.op == all
	for _, of := range c.children {
		var one bool
		one, leaves = of.evaluate(leaves)
		if c.op == all {
			result = result && one
		} else {
			result = result || one
		}
	}
	return result, leaves
}
