// Print: a tree as text, in the one form that parses to the same tree.

package lang

import (
	"strings"
	"unicode"
)

// String is the query in its full form: parsed again it is the same tree.
func (n *Node) String() string {
	var b strings.Builder
	n.print(&b, OpOr)
	return b.String()
}

// print writes a node into one of the operator around; a loose one stands in parentheses.
func (n *Node) print(b *strings.Builder, around op) {
	switch n.Op {
	case opAnd, OpOr:
		wrap := len(n.Of) > 1 && (around == OpNot || around == opAnd && n.Op == OpOr)
		between := " "
		if n.Op == OpOr {
			between = " OR "
		}
		if wrap {
			b.WriteByte('(')
		}
		for i, o := range n.Of {
			if i > 0 {
				b.WriteString(between)
			}
			o.print(b, n.Op)
		}
		if wrap {
			b.WriteByte(')')
		}
	case OpNot:
		b.WriteByte('-')
		n.Of[0].print(b, OpNot)
	case opWords:
		if bareWord(n.text) {
			b.WriteString(n.text)
		} else {
			quote(b, n.text)
		}
		if n.prefix {
			b.WriteByte('*')
		}
	case OpField:
		n.printField(b)
	}
}

func (n *Node) printField(b *strings.Builder) {
	b.WriteString(n.Name)
	b.WriteString(n.Rel.sign())
	for i, v := range n.Values {
		switch {
		case i > 0 && n.Rel == relRange:
			b.WriteString("..")
		case i > 0:
			b.WriteByte(',')
		}
		switch {
		case n.Rel == relRange || bareValue(v.Text) || v.Text == "":
			b.WriteString(v.Text) // a range's ends are read bare, and have one form
		default:
			quote(b, v.Text)
		}
		if v.prefix {
			b.WriteByte('*')
		}
	}
}

// bareWord says whether a word needs no quotes: letters and digits, not digits
// alone (a text of digits is a number, too), no keyword.
func bareWord(s string) bool {
	if s == "AND" || s == "OR" || s == "NOT" {
		return false
	}
	letters := false
	for _, r := range s {
		switch {
		case unicode.IsLetter(r):
			letters = true
		case unicode.IsDigit(r) && r < 128 || unicode.IsMark(r):
		default:
			return false
		}
	}
	return letters
}

// bareValue says whether a value needs no quotes.
func bareValue(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !letter(c) && !digit(c) && c != '.' && c != ':' && c != '-' && c != '~' && c != '/' && (c != '+' || i == 0) {
			return false
		}
	}
	return s != "" && !strings.Contains(s, "..")
}

func quote(b *strings.Builder, s string) {
	b.WriteByte('"')
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	b.WriteByte('"')
}
