// Package lang parses the text of a search and binds it to what one caller sees. It contains the tree of a parsed
// query, the conditions of a bound query, the queries to a store, and errors that point into the text.
package lang

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"understudy/internal/query"
)

// Limits of a query.
const (
	MaxText       = 2000 // the maximum length of a query in bytes
	maxPredicates = 50   // the maximum number of words, phrases and conditions
	maxDepth      = 20   // the maximum depth of nested parentheses and minuses
	maxValues     = 50   // the maximum number of values in one condition
)

// parser parses one text. It stops at the first error.
type parser struct {
	text       string
	pos        int
	predicates int
	err        *query.SyntaxError
}

// Parse parses a query. The error is a *query.SyntaxError.
func Parse(text string) (*Node, error) {
	p := &parser{text: text}
	if len(text) > MaxText {
		return nil, syntaxError(text, MaxText, len(text), "a query has at most %d bytes, this one %d; shorten it", MaxText, len(text))
	}
	p.check()
	if n := p.wholeNumber(); n != nil && p.err == nil {
		return n, nil
	}
	n := p.parseOr(0)
	p.skipSpace()
	if p.err == nil && p.pos < len(text) { // only a ")" ends an expression before the end of the text
		p.fail(p.pos, p.pos+1, "this parenthesis closes nothing; remove it, or put it in quotes to search for it")
	}
	if p.err != nil {
		return nil, p.err
	}
	return n, nil
}

func (p *parser) check() {
	for i, r := range p.text {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(p.text[i:]); size == 1 {
				p.fail(i, i+1, "this is not valid UTF-8")
				return
			}
		}
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			p.fail(i, i+utf8.RuneLen(r), "a query can't have control characters; remove this one")
			return
		}
	}
}

func (p *parser) fail(at, end int, format string, args ...any) {
	if p.err == nil {
		p.err = syntaxError(p.text, at, end, format, args...)
	}
}

// hasMore skips white space and reports whether text is left.
func (p *parser) hasMore() bool {
	p.skipSpace()
	return p.err == nil && p.pos < len(p.text)
}

func (p *parser) skipSpace() {
	for p.pos < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.text[p.pos:])
		if !unicode.IsSpace(r) {
			return
		}
		p.pos += size
	}
}

// parseOr parses expressions separated by OR.
func (p *parser) parseOr(depth int) *Node {
	var parts []*Node
	for {
		at := p.pos
		parts = append(parts, p.parseAnd(depth))
		if p.err != nil {
			return nil
		}
		if last := parts[len(parts)-1]; len(last.Of) == 0 && last.Op == opAnd && (len(parts) > 1 || p.isKeyword("OR")) {
			p.fail(at, p.pos, "OR needs something on both sides; write a word there, or OR in quotes to search for it")
			return nil
		}
		if !p.takeKeyword("OR") {
			return join(OpOr, parts)
		}
	}
}

func (p *parser) parseAnd(depth int) *Node {
	var parts []*Node
	for p.hasMore() && p.text[p.pos] != ')' && !p.isKeyword("OR") {
		if at := p.pos; p.takeKeyword("AND") {
			if len(parts) == 0 || !p.hasMore() || p.text[p.pos] == ')' || p.isKeyword("OR") || p.isKeyword("AND") {
				p.fail(at, at+len("AND"), "AND needs something on both sides; write a word there, or AND in quotes to search for it")
				return nil
			}
		}
		if n := p.parseUnary(depth); n != nil {
			parts = append(parts, n)
		}
	}
	return join(opAnd, parts)
}

// parseUnary parses a predicate, an expression in parentheses, or a negation of these.
func (p *parser) parseUnary(depth int) *Node {
	at := p.pos
	if depth > maxDepth {
		p.fail(at, at+1, "more than %d parentheses and minuses are nested; simplify the search", maxDepth)
		return nil
	}
	switch {
	case p.text[at] == '-' || p.isKeyword("NOT"):
		if !p.takeKeyword("NOT") {
			p.pos++
		} else {
			p.skipSpace()
		}
		if r, _ := utf8.DecodeRuneInString(p.text[p.pos:]); p.pos == len(p.text) || unicode.IsSpace(r) || r == ')' || p.isKeyword("OR") ||
			p.isKeyword("AND") {
			p.fail(at, p.pos, "nothing follows this minus; write the word right after it, or put it in quotes to search for it")
			return nil
		}
		n := p.parseUnary(depth + 1)
		if n == nil {
			return nil
		}
		return &Node{Op: OpNot, Of: []*Node{n}, at: at, end: n.end}
	case p.text[at] == '(':
		p.pos++
		n := p.parseOr(depth + 1)
		p.skipSpace()
		switch {
		case p.err != nil:
			return nil
		case p.pos == len(p.text):
			p.fail(at, at+1, "this parenthesis is not closed; write ) where it ends, or put it in quotes to search for it")
			return nil
		case n.Op == opAnd && len(n.Of) == 0:
			p.fail(at, p.pos+1, "these parentheses are empty; remove them")
			return nil
		}
		p.pos++
		return n
	}
	if p.predicates++; p.predicates > maxPredicates {
		p.fail(at, len(p.text), "a query has at most %d words and conditions; leave some out", maxPredicates)
		return nil
	}
	return p.parsePredicate()
}

// isKeyword reports whether the keyword AND, OR or NOT stands at the current position.
func (p *parser) isKeyword(word string) bool {
	rest, ok := strings.CutPrefix(p.text[p.pos:], word)
	if !ok {
		return false
	}
	r, _ := utf8.DecodeRuneInString(rest)
	return rest == "" || unicode.IsSpace(r) || r == '(' || r == ')' || r == '"'
}

// takeKeyword skips a keyword and reports whether it was there.
func (p *parser) takeKeyword(word string) bool {
	p.skipSpace()
	if !p.isKeyword(word) {
		return false
	}
	p.pos += len(word)
	return true
}
