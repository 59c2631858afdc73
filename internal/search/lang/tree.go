// This file contains the tree of a parsed query, whose names are not resolved yet.

package lang

// op is the operator of a node.
type op uint8

const (
	opAnd   op = iota // all parts in Of must match; a node without parts matches everything
	OpOr              // at least one of the parts in Of must match
	OpNot             // the part Of[0] must not match
	opWords           // the words in text must follow each other in one field
	OpField           // a condition on the field called Name
)

// relation is the comparison between a field and its value.
type relation uint8

const (
	RelIs      relation = iota // the relation ":" compares as the field's type requires: a value, words, or a range of time
	RelSame                    // the relation "=" compares the exact value
	relLess                    // the relation "<"
	relAtMost                  // the relation "<="
	relMore                    // the relation ">"
	relAtLeast                 // the relation ">="
	relRange                   // the relation ":a..b" means from the first value to the second, both included
)

// symbols are the relations as they are written.
var symbols = [...]string{RelIs: ":", RelSame: "=", relLess: "<", relAtMost: "<=", relMore: ">", relAtLeast: ">=", relRange: ":"}

func (r relation) symbol() string { return symbols[r] }

// Node is one part of a query. A tree is immutable after parsing.
type Node struct {
	Op      op
	Of      []*Node
	at, end int // the position in the search text, in bytes

	text   string // the words of a node with opWords
	prefix bool   // whether the last word of a node with opWords is only the beginning of a word

	Name   string // the name of the field, for a node with OpField
	Rel    relation
	Values []Value // the values of a node with OpField: several alternatives, or the two ends of a range

	conditionText string // the text of the condition, if it is not part of the query's text
}

// Value is a value that a field is compared with.
type Value struct {
	Text    string // the text of the value; "" only if a range has no beginning or no end
	prefix  bool   // whether a star follows the value
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
