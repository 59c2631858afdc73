// Tree: a query as it was written, before anybody knows what its names mean.

package lang

// op says what a node of the tree is.
type op uint8

const (
	opAnd   op = iota // all of of; without any: everything
	OpOr              // one of of
	OpNot             // not of[0]
	opWords           // text: its words one right after the other, in one field
	OpField           // a condition on the field called name
)

// relation is what stands between a field's name and its value.
type relation uint8

const (
	RelIs      relation = iota // ":" as the field's type has it: the value, the words, the stretch of time
	RelSame                    // "=" the value itself
	relLess                    // "<"
	relAtMost                  // "<="
	relMore                    // ">"
	relAtLeast                 // ">="
	relRange                   // ":a..b" from the first value to the second, both included
)

// sign is how a relation is written.
func (r relation) sign() string {
	switch r {
	case RelSame:
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

// Node is one part of a query. A tree is never changed once it is parsed.
type Node struct {
	Op      op
	Of      []*Node
	at, end int // where it stands in the text, in bytes

	text   string // opWords
	prefix bool   // opWords: the last word may go on

	Name   string // opField
	Rel    relation
	Values []Value // opField: one of them, or the two ends of a range

	apart string // the text it stands in, when that is not the text of the query
}

// Value is what a field is compared with.
type Value struct {
	Text    string // "" only as an open end of a range
	prefix  bool   // a star stood behind it
	at, end int
}

// join makes one node of several of one operator; those of the same operator
// are taken in, so that a tree has one form.
func join(o op, parts []*Node) *Node {
	var of []*Node
	for _, p := range parts {
		if p.Op == o {
			of = append(of, p.Of...)
		} else {
			of = append(of, p)
		}
	}
	if len(of) == 1 {
		return of[0]
	}
	n := &Node{Op: o, Of: of}
	if len(parts) > 0 {
		n.at, n.end = parts[0].at, parts[len(parts)-1].end
	}
	return n
}
