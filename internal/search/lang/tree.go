// Tree: a parsed query whose names are not resolved yet.

package lang

// op is the operator of a node.
type op uint8

const (
	opAnd   op = iota // all parts in Of must match; without parts it matches everything
	OpOr              // one of the parts in Of must match
	OpNot             // the part Of[0] must not match
	opWords           // the words in text must follow each other in one field
	OpField           // a condition on the field called Name
)

// relation is the comparison between a field and its value.
type relation uint8

const (
	RelIs      relation = iota // ":" compares as the field's type requires: a value, words, or a range of time
	RelSame                    // "=" compares the exact value
	relLess                    // "<"
	relAtMost                  // "<="
	relMore                    // ">"
	relAtLeast                 // ">="
	relRange                   // ":a..b" is from the first value to the second, both included
)

func (r relation) symbol() string {
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

// Node is one part of a query. A tree is immutable after parsing.
type Node struct {
	Op      op
	Of      []*Node
	at, end int // the position in the text, in bytes

	text   string // the text of opWords
	prefix bool   // for opWords: the last word is only the beginning of a word

	Name   string // the field's name, for OpField
	Rel    relation
	Values []Value // for OpField: one of several values, or the two ends of a range

	conditionText string // the text of a condition that is not part of the query's text
}

// Value is a value that a field is compared with.
type Value struct {
	Text    string // the text of the value; "" only as an open end of a range
	prefix  bool   // a star follows the value
	at, end int
}

// join returns a node with the given parts. Parts with the same operator are flattened, so that equal queries have
// equal trees.
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
