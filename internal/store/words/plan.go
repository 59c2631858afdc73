// Plans: a condition on words, as FTS5 reads it.

package words

import (
	"fmt"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store/fts5"
	"understudy/internal/store/sqlite"
	"understudy/kit/tokenizer"
)

const (
	maxTextParts = 64 // words and phrases of one question
	maxTextDepth = 16 // and parts within parts
	maxEnds      = 64 // words that begin in a way and are looked for one by one
)

// Plan is a query.Text made ready: its words cut and folded. nil finds nothing.
type Plan struct {
	op      query.TextOp // TextPhrase for all words
	pattern tokenizer.Pattern
	fields  map[string][]string // as query.Text.In
	of      []*Plan
}

// PlanOf makes a Text ready. What is malformed is understudy.ErrInvalid.
func PlanOf(t *query.Text) (*Plan, error) {
	p := &planning{}
	plan := p.part(t, false, 0)
	if p.err != nil {
		return nil, fmt.Errorf("%w: %w", understudy.ErrInvalid, p.err)
	}
	return plan, nil
}

type planning struct {
	parts int
	err   error
}

func (p *planning) fail(format string, args ...any) *Plan {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
	return nil
}

// part plans a part; not says that what it finds is taken away: then it must
// not find more than it was asked for.
func (p *planning) part(t *query.Text, not bool, depth int) *Plan {
	switch {
	case t == nil:
		return p.fail("a part of the text is missing")
	case depth > maxTextDepth:
		return p.fail("the text has more than %d parts within one another", maxTextDepth)
	case len(t.Of) > 0 && t.In != nil:
		return p.fail("a part of the text that joins others names fields")
	}
	switch t.Op {
	case query.TextWord, query.TextPrefix, query.TextPhrase:
		if p.parts++; p.parts > maxTextParts {
			return p.fail("the text has more than %d words and phrases", maxTextParts)
		}
		pattern := tokenizer.Phrase(t.Op == query.TextPrefix || t.Op == query.TextPhrase && t.Prefix, t.Words...)
		if pattern.Empty() || not && pattern.Loose() {
			return nil
		}
		return &Plan{op: query.TextPhrase, pattern: pattern, fields: t.In}
	case query.TextAnd, query.TextOr:
		if len(t.Of) == 0 {
			return p.fail("a part of the text joins nothing")
		}
		plan := &Plan{op: t.Op}
		for _, of := range t.Of {
			switch part := p.part(of, not, depth+1); {
			case part != nil:
				plan.of = append(plan.of, part)
			case t.Op == query.TextAnd:
				return nil
			}
		}
		if len(plan.of) == 0 {
			return nil
		}
		return plan
	case query.TextNot:
		if len(t.Of) != 2 {
			return p.fail("a part of the text without another has %d parts", len(t.Of))
		}
		this, without := p.part(t.Of[0], not, depth+1), p.part(t.Of[1], !not, depth+1)
		if this == nil || without == nil {
			return this
		}
		return &Plan{op: t.Op, of: []*Plan{this, without}}
	}
	return p.fail("there is no text of sort %d", t.Op)
}

// matching is a plan for some kinds.
type matching struct {
	op      query.TextOp
	phrases []string // of TextPhrase: tagged words; one phrase must be there
	prefix  bool     // the last word of each may go on
	of      []*matching
}

// bind returns the plan for some kinds. Fields that can not have its words are left out.
func (p *Plan) bind(c *sqlite.Conn, kinds []*Kind) (*matching, error) {
	m := &matching{op: p.op, prefix: p.pattern.Prefix()}
	for _, of := range p.of {
		part, err := of.bind(c, kinds)
		if err != nil {
			return nil, err
		}
		m.of = append(m.of, part)
	}
	if p.op != query.TextPhrase {
		return m, nil
	}
	for _, k := range kinds {
		numbers, err := k.fieldsWith(c, p.pattern, p.fields)
		if err != nil {
			return nil, err
		}
		for _, number := range numbers {
			tag := wordTag(k.Number, number)
			m.phrases = append(m.phrases, tag+strings.Join(p.pattern.Words(), " "+tag))
		}
	}
	return m, nil
}

// expression returns the expression by which FTS5 finds it. Folded words have no quotes, so
// that between quotes nothing ends them.
func (m *matching) expression(c *sqlite.Conn) (string, error) {
	var of []string
	joint := " OR "
	switch m.op {
	case query.TextAnd:
		joint = " AND "
	case query.TextNot:
		joint = " NOT "
	}
	for _, part := range m.of {
		text, err := part.expression(c)
		if err != nil {
			return "", err
		}
		of = append(of, text)
	}
	for _, phrase := range m.phrases {
		if !m.prefix {
			of = append(of, quoted(phrase))
			continue
		}
		last := strings.LastIndexByte(phrase, ' ') + 1
		ends, many, err := fts5.Beginning(c, phrase[last:], maxEnds)
		switch {
		case err != nil:
			return "", err
		case many:
			of = append(of, quoted(phrase)+" *")
		}
		// FTS5 puts all records with a word that begins in some way in order before it gives
		// the first; phrases of the words that do are read no further than they are needed.
		for _, end := range ends {
			of = append(of, quoted(phrase[:last]+end))
		}
	}
	if len(of) == 0 {
		return fts5.None, nil
	}
	return "(" + strings.Join(of, joint) + ")", nil
}

func quoted(phrase string) string { return `"` + phrase + `"` }

// finds reports whether FTS5 will find a row by the same expression.
func (m *matching) finds(row *fts5.Row) bool {
	return m.holds(" " + strings.Join(row[:], " "+border+" ") + " ")
}

// holds reports whether the plan finds a text, in which each word is between spaces.
func (m *matching) holds(text string) bool {
	part := func(of *matching) bool { return of.holds(text) }
	switch m.op {
	case query.TextAnd:
		return !slices.ContainsFunc(m.of, func(of *matching) bool { return !part(of) })
	case query.TextOr:
		return slices.ContainsFunc(m.of, part)
	case query.TextNot:
		return part(m.of[0]) && !part(m.of[1])
	}
	end := " "
	if m.prefix {
		end = ""
	}
	return slices.ContainsFunc(m.phrases, func(phrase string) bool { return strings.Contains(text, " "+phrase+end) })
}
