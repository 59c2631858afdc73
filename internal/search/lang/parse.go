// Package lang reads the text of a search and binds it to what one caller sees:
// tree, conditions, the questions to a store, and errors that point into the text.
package lang

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"understudy/internal/query"
)

// Bounds of a query.
const (
	MaxText       = 2000 // bytes of its text
	maxPredicates = 50   // words, phrases and conditions
	maxDepth      = 20   // parentheses and minuses in each other
	maxValues     = 50   // of one condition
)

// parser reads one text; the first error ends it.
type parser struct {
	text       string
	pos        int
	predicates int
	err        *query.SyntaxError
}

// Parse reads a query. The error is a *understudy.SyntaxError.
func Parse(text string) (*Node, error) {
	p := &parser{text: text}
	if len(text) > MaxText {
		return nil, syntaxError(text, MaxText, len(text), "a query has at most %d bytes, this one %d; shorten it", MaxText, len(text))
	}
	p.check()
	if n := p.wholeNumber(); n != nil && p.err == nil {
		return n, nil
	}
	n := p.or(0)
	p.space()
	if p.err == nil && p.pos < len(text) { // only a ")" ends an expression early
		p.fail(p.pos, p.pos+1, "this parenthesis closes nothing; take it out, or put it in quotes to look for it")
	}
	if p.err != nil {
		return nil, p.err
	}
	return n, nil
}

// check finds what no query holds.
func (p *parser) check() {
	for i, r := range p.text {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(p.text[i:]); size == 1 {
				p.fail(i, i+1, "this is no character of UTF-8")
				return
			}
		}
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			p.fail(i, i+utf8.RuneLen(r), "a query holds no control characters; take this one out")
			return
		}
	}
}

func (p *parser) fail(at, end int, format string, args ...any) {
	if p.err == nil {
		p.err = syntaxError(p.text, at, end, format, args...)
	}
}

// more says whether there is anything to come, after white space.
func (p *parser) more() bool {
	p.space()
	return p.err == nil && p.pos < len(p.text)
}

func (p *parser) space() {
	for p.pos < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.text[p.pos:])
		if !unicode.IsSpace(r) {
			return
		}
		p.pos += size
	}
}

func (p *parser) or(depth int) *Node {
	var parts []*Node
	for {
		at := p.pos
		parts = append(parts, p.and(depth))
		if p.err != nil {
			return nil
		}
		if last := parts[len(parts)-1]; len(last.Of) == 0 && last.Op == opAnd && (len(parts) > 1 || p.keyword("OR")) {
			p.fail(at, p.pos, "OR needs something on both sides; write a word there, or OR in quotes to look for it")
			return nil
		}
		if !p.take("OR") {
			return join(OpOr, parts)
		}
	}
}

func (p *parser) and(depth int) *Node {
	var parts []*Node
	for p.more() && p.text[p.pos] != ')' && !p.keyword("OR") {
		if at := p.pos; p.take("AND") {
			if len(parts) == 0 || !p.more() || p.text[p.pos] == ')' || p.keyword("OR") || p.keyword("AND") {
				p.fail(at, at+len("AND"), "AND needs something on both sides; write a word there, or AND in quotes to look for it")
				return nil
			}
		}
		if n := p.unary(depth); n != nil {
			parts = append(parts, n)
		}
	}
	return join(opAnd, parts)
}

// unary is a predicate, what stands in parentheses, or not that.
func (p *parser) unary(depth int) *Node {
	at := p.pos
	if depth > maxDepth {
		p.fail(at, at+1, "there are more than %d parentheses and minuses in each other; write it flatter", maxDepth)
		return nil
	}
	switch {
	case p.text[at] == '-' || p.keyword("NOT"):
		if !p.take("NOT") {
			p.pos++
		} else {
			p.space()
		}
		if r, _ := utf8.DecodeRuneInString(p.text[p.pos:]); p.pos == len(p.text) || unicode.IsSpace(r) || r == ')' || p.keyword("OR") ||
			p.keyword("AND") {
			p.fail(at, p.pos, "nothing follows that could be left out; write the word right behind it, or put it in quotes to look for it")
			return nil
		}
		n := p.unary(depth + 1)
		if n == nil {
			return nil
		}
		return &Node{Op: OpNot, Of: []*Node{n}, at: at, end: n.end}
	case p.text[at] == '(':
		p.pos++
		n := p.or(depth + 1)
		p.space()
		switch {
		case p.err != nil:
			return nil
		case p.pos == len(p.text):
			p.fail(at, at+1, "this parenthesis is not closed; write ) where it ends, or put it in quotes to look for it")
			return nil
		case n.Op == opAnd && len(n.Of) == 0:
			p.fail(at, p.pos+1, "nothing stands in these parentheses; take them out")
			return nil
		}
		p.pos++
		return n
	}
	if p.predicates++; p.predicates > maxPredicates {
		p.fail(at, len(p.text), "a query has at most %d words and conditions; leave some out", maxPredicates)
		return nil
	}
	return p.predicate()
}

// keyword says whether one of the words AND, OR and NOT stands here alone.
func (p *parser) keyword(word string) bool {
	rest, ok := strings.CutPrefix(p.text[p.pos:], word)
	if !ok {
		return false
	}
	r, _ := utf8.DecodeRuneInString(rest)
	return rest == "" || unicode.IsSpace(r) || r == '(' || r == ')' || r == '"'
}

// take goes over a keyword.
func (p *parser) take(word string) bool {
	p.space()
	if !p.keyword(word) {
		return false
	}
	p.pos += len(word)
	return true
}
