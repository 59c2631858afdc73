// This file writes a query tree as text in the canonical form, which parses to the same tree.

package lang

import (
	"strings"
	"unicode"
)

// String returns the canonical text of the query.
func (n *Node) String() string {
	var b strings.Builder
	n.print(&b, OpOr)
	return b.String()
}

// print writes a node that lies below the operator around. It writes parentheses if the node's operator binds less tightly.
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
		if isBareWord(n.text) {
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

// printField writes a condition on a field.
func (n *Node) printField(b *strings.Builder) {
	b.WriteString(n.Name)
	b.WriteString(n.Rel.symbol())
	for i, v := range n.Values {
		switch {
		case i > 0 && n.Rel == relRange:
			b.WriteString("..")
		case i > 0:
			b.WriteByte(',')
		}
		switch {
		case n.Rel == relRange || isBareValue(v.Text) || v.Text == "":
			b.WriteString(v.Text) // the ends of a range are never quoted
		default:
			quote(b, v.Text)
		}
		if v.prefix {
			b.WriteByte('*')
		}
	}
}

// isBareWord reports whether a word needs no quotes. It must have a letter and must not be a keyword. Digits alone
// need quotes, because they could also be a phone number.
func isBareWord(s string) bool {
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

func isBareValue(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !isLetter(c) && !isDigit(c) && c != '.' && c != ':' && c != '-' && c != '~' && c != '/' && (c != '+' || i == 0) {
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
