// Condition: patterns joined by all, any and but, over the fields of something.

package tokenizer

import "iter"

// Field is one text of something that has several.
type Field struct{ Class, Name, Text string }

// Condition is a condition on the fields of something. It is not changed once
// it is made.
type Condition struct {
	op      op
	pattern Pattern
	of      []*Condition
	where   func(Field) bool
}

type op uint8

const (
	has op = iota
	all
	anyOf
	but
)

// Has holds where a field has the pattern.
func Has(p Pattern) *Condition { return &Condition{op: has, pattern: p} }

// All holds where all of some do; of none everywhere.
func All(of ...*Condition) *Condition { return &Condition{op: all, of: of} }

// Any holds where one of some does; of none nowhere.
func Any(of ...*Condition) *Condition { return &Condition{op: anyOf, of: of} }

// But holds where the first does and the second does not.
func But(this, not *Condition) *Condition { return &Condition{op: but, of: []*Condition{this, not}} }

// Where is c on those fields only of which where says so (it sees them without
// their text), and which c looks at anyway.
func (c *Condition) Where(where func(Field) bool) *Condition {
	return &Condition{op: all, of: []*Condition{c}, where: where}
}

// Match reports whether the fields fulfil the condition. A phrase is found in
// one field only.
func (c *Condition) Match(fields iter.Seq[Field]) bool {
	leaves := c.leaves(nil, leaf{})
	for f := range fields {
		for i := range leaves {
			if l := &leaves[i]; !l.held && l.looks(f) {
				l.held = l.pattern.In(f.Text)
			}
		}
	}
	holds, _ := c.holds(leaves)
	return holds
}

// Find yields where, in one field, patterns are that speak for the condition:
// not those of what must not be. They come pattern by pattern, and may overlap.
func (c *Condition) Find(f Field) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) {
		for _, l := range c.leaves(nil, leaf{}) {
			if l.not || !l.looks(f) {
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

// leaf is a pattern of a condition, and the fields it looks at.
type leaf struct {
	pattern Pattern
	where   []func(Field) bool
	not     bool
	held    bool
}

func (l *leaf) looks(f Field) bool {
	f.Text = ""
	for _, where := range l.where {
		if !where(f) {
			return false
		}
	}
	return true
}

// leaves are the patterns in the order of the tree; under says what those
// above c ask for.
func (c *Condition) leaves(into []leaf, under leaf) []leaf {
	if c.where != nil {
		under.where = append(under.where[:len(under.where):len(under.where)], c.where)
	}
	if c.op == has {
		under.pattern = c.pattern
		return append(into, under)
	}
	for i, of := range c.of {
		below := under
		below.not = under.not != (c.op == but && i == 1)
		into = of.leaves(into, below)
	}
	return into
}

// holds is what the tree says of its leaves, and those behind it.
func (c *Condition) holds(leaves []leaf) (bool, []leaf) {
	switch c.op {
	case has:
		return leaves[0].held, leaves[1:]
	case but:
		var this, not bool
		this, leaves = c.of[0].holds(leaves)
		not, leaves = c.of[1].holds(leaves)
		return this && !not, leaves
	}
	result := c.op == all
	for _, of := range c.of {
		var one bool
		one, leaves = of.holds(leaves)
		if c.op == all {
			result = result && one
		} else {
			result = result || one
		}
	}
	return result, leaves
}
