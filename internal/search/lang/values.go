// This file parses words, phrases, phone numbers and conditions on fields.

package lang

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"understudy/internal/query"
)

// NumberName is the name of the condition on a phone number in any field.
const NumberName = "number"

// parsePredicate parses one word, phrase or condition. It begins at p.pos, which must not be white space.
func (p *parser) parsePredicate() *Node {
	at := p.pos
	if p.text[at] == '"' {
		text, ok := p.parseQuoted()
		if !ok {
			return nil
		}
		n := &Node{Op: opWords, text: text, prefix: p.takeStar(), at: at}
		n.end = p.pos
		return n
	}
	if name, rel, ok := p.parseName(); ok {
		return p.parseCondition(at, name, rel)
	}
	if p.text[at] == '+' && at+1 < len(p.text) && isDigit(p.text[at+1]) {
		text, prefix := p.parsePhone()
		if prefix { // a star follows, so the beginning of a number is searched as a word
			return &Node{Op: opWords, text: text, prefix: true, at: at, end: p.pos}
		}
		return &Node{Op: OpField, Name: NumberName, Values: []Value{{Text: text, at: at, end: p.pos}}, at: at, end: p.pos}
	}
	run, prefix := p.parseRun("")
	if run == "" {
		p.fail(at, p.pos, "a star comes after the beginning of a word; write that first")
		return nil
	}
	return &Node{Op: opWords, text: run, prefix: prefix, at: at, end: p.pos}
}

// parseName parses a field's name and the relation after it.
func (p *parser) parseName() (name string, rel relation, ok bool) {
	i := p.pos
	for i < len(p.text) && (isLetter(p.text[i]) || isDigit(p.text[i]) && i > p.pos || p.text[i] == '.' && i > p.pos) {
		i++
	}
	if name = p.text[p.pos:i]; name == "" {
		return "", 0, false
	}
	for _, r := range []relation{relAtMost, relAtLeast, relLess, relMore, RelSame, RelIs} {
		if strings.HasPrefix(p.text[i:], r.symbol()) {
			p.pos = i + len(r.symbol())
			return name, r, true
		}
	}
	return "", 0, false
}

// parseCondition parses the values after a field's name and relation.
func (p *parser) parseCondition(at int, name string, rel relation) *Node {
	n := &Node{Op: OpField, Name: name, Rel: rel, at: at}
	for {
		if !p.parseValue(n) {
			return nil
		}
		n.end = p.pos
		if p.pos >= len(p.text) || p.text[p.pos] != ',' || n.Rel == relRange {
			break
		}
		p.pos++
	}
	switch {
	case len(n.Values) > maxValues:
		p.fail(at, n.end, "a condition has at most %d values; leave some out", maxValues)
	case len(n.Values) > 1 && rel != RelIs && rel != RelSame:
		p.fail(n.Values[1].at, n.end, "only : and = take several values; compare with one")
	case n.Rel == relRange && len(n.Values) != 2:
		p.fail(n.Values[len(n.Values)-2].at, n.end, "a range can't have other values beside it; remove them")
	}
	return n
}

// parseValue parses one value of a condition, or the two ends of a range.
func (p *parser) parseValue(n *Node) bool {
	at := p.pos
	switch {
	case at == len(p.text) || p.text[at] == ')' || p.text[at] == ',' || isSpaceAt(p.text, at):
		p.fail(n.at, at, "%s has no value; write it right behind the sign, or put it all in quotes to search for that text", n.Name)
		return false
	case p.text[at] == '"':
		text, ok := p.parseQuoted()
		if !ok {
			return false
		}
		if text == "" {
			p.fail(at, p.pos, "the value is empty; to find records without one write no:%s", n.Name)
			return false
		}
		prefix := p.takeStar()
		n.Values = append(n.Values, Value{Text: text, prefix: prefix, at: at, end: p.pos})
		return p.checkEnd(n.Name)
	case p.text[at] == '+' && at+1 < len(p.text) && isDigit(p.text[at+1]), p.text[at] == '(' && (n.Rel == RelIs || n.Rel == RelSame) &&
		p.isAreaCode():
		text, prefix := p.parsePhone()
		n.Values = append(n.Values, Value{Text: text, prefix: prefix, at: at, end: p.pos})
		return p.checkEnd(n.Name)
	case p.text[at] == '(':
		p.fail(at, at+1, "a value cannot stand in parentheses; write several with commas between them: %s:one,other", n.Name)
		return false
	}
	run, prefix := p.parseRun(",")
	from, to, isRange := strings.Cut(run, "..")
	switch {
	case isRange && n.Rel == RelIs && strings.Contains(to, ".."):
		p.fail(at, p.pos, "a range has two ends: from..to")
		return false
	case isRange && n.Rel == RelIs && from+to == "":
		p.fail(at, p.pos, "a range needs an end: from..to, from.. or ..to")
		return false
	case isRange && n.Rel == RelIs && prefix:
		p.fail(p.pos-1, p.pos, "a range can't have a star; remove it")
		return false
	case isRange && n.Rel == RelIs:
		n.Rel = relRange
		n.Values = append(n.Values, Value{Text: from, at: at, end: at + len(from)}, Value{Text: to, at: at + len(from) + 2, end: p.pos})
		return true
	}
	n.Values = append(n.Values, Value{Text: run, prefix: prefix, at: at, end: p.pos})
	return true
}

// checkEnd reports an error if text follows a quoted value or a number without a space.
func (p *parser) checkEnd(name string) bool {
	if p.pos < len(p.text) && p.text[p.pos] != ')' && p.text[p.pos] != ',' && !isSpaceAt(p.text, p.pos) {
		p.fail(p.pos, p.pos+1, "the value of %s has something right after it; write a space between", name)
		return false
	}
	return true
}

// parseQuoted parses a quoted text. \" and \\ stand for a quotation mark and a backslash.
func (p *parser) parseQuoted() (string, bool) {
	at := p.pos
	var b strings.Builder
	for i := at + 1; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case c == '"':
			p.pos = i + 1
			return b.String(), true
		case c == '\\' && i+1 < len(p.text) && (p.text[i+1] == '"' || p.text[i+1] == '\\'):
			i++
			b.WriteByte(p.text[i])
		default:
			b.WriteByte(c)
		}
	}
	p.fail(at, len(p.text), "this quotation mark is not closed; write another where the phrase ends")
	return "", false
}

// takeStar skips a star and reports whether it was there.
func (p *parser) takeStar() bool {
	if p.pos < len(p.text) && p.text[p.pos] == '*' {
		p.pos++
		return true
	}
	return false
}

// parseRun parses text up to white space, a parenthesis, a quotation mark or one of the characters in ends. prefix
// is true if a star ended the text.
func (p *parser) parseRun(ends string) (text string, prefix bool) {
	at := p.pos
	for p.pos < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.text[p.pos:])
		if unicode.IsSpace(r) || r == '(' || r == ')' || r == '"' || strings.ContainsRune(ends, r) {
			break
		}
		p.pos += size
	}
	shown := strings.TrimLeft(p.text[at:p.pos], "*•.") // a masked number as pages show it
	if digits, ok := lastFour(shown); ok && digits == shown && !strings.HasPrefix("..", p.text[at:p.pos-len(shown)]) {
		return query.LastFourMark + digits, false
	}
	text, prefix = strings.CutSuffix(p.text[at:p.pos], "*")
	if i := strings.IndexByte(text, '*'); i >= 0 {
		p.fail(at+i, at+i+1, "a star can only end a word; write what comes after it as a word of its own")
	}
	return text, prefix
}

// The number of digits of a phone number: the maximum, and the minimum of a complete number.
const (
	maxNumberDigits = 15
	minNumberDigits = 7
)

// parseNumber parses a phone number as people write it. A number that begins with short groups of digits may contain
// spaces: +1 555 010 0123.
func (p *parser) parseNumber() string {
	at, digits, open := p.pos, 0, 0
	spaced := false
	for p.pos < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.text[p.pos:])
		switch {
		case r >= '0' && r <= '9':
			digits++
		case r == '+' && p.pos == at, strings.ContainsRune("-./\u2011", r) && r != 0:
		case r == '(':
			open++
		case r == ')' && open > 0:
			open--
		case r == ' ' || r == '\u00a0':
			if digits >= minNumberDigits && !spaced || !p.hasMoreDigits(p.pos+size, digits) {
				return p.text[at:p.pos]
			}
			spaced = true
		default:
			return p.text[at:p.pos]
		}
		p.pos += size
	}
	return p.text[at:p.pos]
}

// parsePhone parses a phone number, or its beginning if a star follows. It leaves out marks that records do not contain.
func (p *parser) parsePhone() (text string, prefix bool) {
	text = plainMarks.Replace(p.parseNumber())
	if prefix = p.takeStar(); prefix {
		text = strings.Map(func(r rune) rune {
			if r == '+' || r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, text)
	}
	return text, prefix
}

// hasMoreDigits reports whether the next group of digits still fits into a phone number.
func (p *parser) hasMoreDigits(i, digits int) bool {
	piece := p.text[i:]
	if end := strings.IndexFunc(piece, func(r rune) bool { return unicode.IsSpace(r) || r == '"' || r == ',' || r == '*' }); end >= 0 {
		piece = piece[:end]
	}
	n, open := 0, 0
	for _, r := range piece {
		switch {
		case r >= '0' && r <= '9':
			n++
		case r == '(':
			open++
		case r == ')':
			if open--; open < 0 {
				return n > 0 && digits+n <= maxNumberDigits
			}
		case strings.ContainsRune("-./\u2011", r):
		default:
			return false
		}
	}
	return n > 0 && digits+n <= maxNumberDigits
}

// plainMarks replaces special characters by the plain characters on a keyboard.
var plainMarks = strings.NewReplacer("\u00a0", " ", "\u2011", "-")

// isAreaCode reports whether the parenthesis at the current position contains only digits.
func (p *parser) isAreaCode() bool {
	inside, _, closed := strings.Cut(p.text[p.pos+1:], ")")
	return closed && inside != "" && strings.Trim(inside, "0123456789") == ""
}

// wholeNumber returns the tree for a text that is nothing but a phone number. For digits without a plus sign, the
// tree also contains the text as a word (see dropNumber).
func (p *parser) wholeNumber() *Node {
	text := strings.TrimSpace(p.text)
	digits := 0
	for i, r := range text {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case r == '+' && i == 0, strings.ContainsRune(" -./()\u00a0\u2011", r) && i > 0, r == '(':
		default:
			return nil
		}
	}
	isDigits := len(text) == digits
	if digits < minNumberDigits || digits > maxNumberDigits+2 || isDigits && digits > maxNumberDigits {
		return nil
	}
	at := strings.Index(p.text, text)
	n := &Node{Op: OpField, Name: NumberName, Values: []Value{{Text: plainMarks.Replace(text), at: at, end: at + len(text)}}, at: at, end: at +
		len(text)}
	if !isDigits {
		return n
	}
	return join(OpOr, []*Node{n, {Op: opWords, text: text, at: n.at, end: n.end}})
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func isSpaceAt(text string, i int) bool {
	r, _ := utf8.DecodeRuneInString(text[i:])
	return unicode.IsSpace(r)
}
