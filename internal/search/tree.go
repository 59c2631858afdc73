// Tree: a query as it was written, before anybody knows what its names mean.

package search

// op says what a node of the tree is.
type op uint8

const (
	opAnd   op = iota // all of of; without any: everything
	opOr              // one of of
	opNot             // not of[0]
	opWords           // text: its words one right after the other, in one field
	opField           // a condition on the field called name
)

// relation is what stands between a field's name and its value.
type relation uint8

const (
	relIs      relation = iota // ":" as the field's type has it: the value, the words, the stretch of time
	relSame                    // "=" the value itself
	relLess                    // "<"
	relAtMost                  // "<="
	relMore                    // ">"
	relAtLeast                 // ">="
	relRange                   // ":a..b" from the first value to the second, both included
)

// sign is how a relation is written.
func (r relation) sign() string {
	switch r {
	case relSame:
		return "="
	case relLess:
		return "<"
	case relAtMost:
		return "<="
	case relMore:
		return ">"
	case relAtLeast:
		return ">="
	}
	return ":"
}

// node is one part of a query. A tree is never changed once it is parsed.
type node struct {
	op      op
	of      []*node
	at, end int // where it stands in the text, in bytes

	text   string // opWords
	prefix bool   // opWords: the last word may go on

	name   string // opField
	rel    relation
	values []value // opField: one of them, or the two ends of a range
}

// value is what a field is compared with.
type value struct {
	text    string // "" only as an open end of a range
	prefix  bool   // a star stood behind it
	at, end int
}

// join makes one node of several of one operator; those of the same operator
// are taken in, so that a tree has one form.
func join(o op, parts []*node) *node {
	var of []*node
	for _, p := range parts {
		if p.op == o {
			of = append(of, p.of...)
		} else {
			of = append(of, p)
		}
	}
	if len(of) == 1 {
		return of[0]
	}
	n := &node{op: o, of: of}
	if len(parts) > 0 {
		n.at, n.end = parts[0].at, parts[len(parts)-1].end
	}
	return n
}
