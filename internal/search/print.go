// Print: a tree as text, in the one form that parses to the same tree.

package search

import (
	"strings"
	"unicode"
)

// String is the query in its full form: parsed again it is the same tree.
func (n *node) String() string {
	var b strings.Builder
	n.print(&b, opOr)
	return b.String()
}

// print writes a node into one of the operator around; a loose one stands in
// parentheses.
func (n *node) print(b *strings.Builder, around op) {
	switch n.op {
	case opAnd, opOr:
		wrap := len(n.of) > 1 && (around == opNot || around == opAnd && n.op == opOr)
		between := " "
		if n.op == opOr {
			between = " OR "
		}
		if wrap {
			b.WriteByte('(')
		}
		for i, o := range n.of {
			if i > 0 {
				b.WriteString(between)
			}
			o.print(b, n.op)
		}
		if wrap {
			b.WriteByte(')')
		}
	case opNot:
		b.WriteByte('-')
		n.of[0].print(b, opNot)
	case opWords:
		if bareWord(n.text) {
			b.WriteString(n.text)
		} else {
			quote(b, n.text)
		}
		if n.prefix {
			b.WriteByte('*')
		}
	case opField:
		n.printField(b)
	}
}

func (n *node) printField(b *strings.Builder) {
	b.WriteString(n.name)
	b.WriteString(n.rel.sign())
	for i, v := range n.values {
		switch {
		case i > 0 && n.rel == relRange:
			b.WriteString("..")
		case i > 0:
			b.WriteByte(',')
		}
		switch {
		case n.rel == relRange || bareValue(v.text) || v.text == "":
			b.WriteString(v.text) // a range's ends are read bare, and have one form
		default:
			quote(b, v.text)
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
