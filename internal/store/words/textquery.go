// This file checks a text condition and prepares it for the index.

package words

import (
	"fmt"
	"strings"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store/wordrows"
	"understudy/kit/tokenizer"
)

const (
	maxTextParts = 64 // maximum number of words and phrases in one query
	maxTextDepth = 16 // maximum depth of nested text conditions in one query
)

// Plan is a query.Text that is ready for the index: its words are cut and folded. A nil Plan finds nothing.
type Plan struct {
	op      wordrows.Op
	pattern tokenizer.Pattern
	fields  map[string][]string // the names of the fields to search, by kind, as in query.Text.Fields
	parts   []*Plan
}

// NewPlan prepares a Text. It returns understudy.ErrInvalid if the Text is malformed.
func NewPlan(t *query.Text) (*Plan, error) {
	p := &planning{}
	plan := p.planPart(t, false, 0)
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

// planPart plans one part of a text condition. not means that the results of the part are excluded. Then the part must
// not match more records than the query says.
func (p *planning) planPart(t *query.Text, not bool, depth int) *Plan {
	switch {
	case t == nil:
		return p.fail("a part of the text is missing")
	case depth > maxTextDepth:
		return p.fail("the text has more than %d parts within one another", maxTextDepth)
	case len(t.Parts) > 0 && t.Fields != nil:
		return p.fail("a part of the text that joins others names fields")
	}
	switch t.Op {
	case query.TextWord, query.TextPrefix, query.TextPhrase:
		if p.parts++; p.parts > maxTextParts {
			return p.fail("the text has more than %d words and phrases", maxTextParts)
		}
		pattern := tokenizer.Phrase(t.Op == query.TextPrefix || t.Op == query.TextPhrase && t.Prefix, t.Words...)
		if pattern.IsEmpty() || not && pattern.IsTruncated() {
			return nil
		}
		return &Plan{pattern: pattern, fields: t.Fields}
	case query.TextAnd, query.TextOr:
		if len(t.Parts) == 0 {
			return p.fail("a part of the text joins nothing")
		}
		plan := &Plan{op: wordrows.AllParts}
		if t.Op == query.TextOr {
			plan.op = wordrows.AnyPart
		}
		for _, of := range t.Parts {
			switch part := p.planPart(of, not, depth+1); {
			case part != nil:
				plan.parts = append(plan.parts, part)
			case t.Op == query.TextAnd:
				return nil
			}
		}
		if len(plan.parts) == 0 {
			return nil
		}
		return plan
	case query.TextNot:
		if len(t.Parts) != 2 {
			return p.fail("a part of the text without another has %d parts", len(t.Parts))
		}
		this, without := p.planPart(t.Parts[0], not, depth+1), p.planPart(t.Parts[1], !not, depth+1)
		if this == nil || without == nil {
			return this
		}
		return &Plan{op: wordrows.FirstWithoutSecond, parts: []*Plan{this, without}}
	}
	return p.fail("there is no text of sort %d", t.Op)
}

// bind returns the query of the index for some kinds. It leaves out fields that cannot have the words.
func (p *Plan) bind(s *wordrows.Snapshot, kinds []*Kind) (q wordrows.Query, err error) {
	q = wordrows.Query{Op: p.op, Prefix: p.pattern.IsPrefix()}
	for _, of := range p.parts {
		part, err := of.bind(s, kinds)
		if err != nil {
			return q, err
		}
		q.Parts = append(q.Parts, part)
	}
	if p.op != wordrows.AnyPhrase {
		return q, nil
	}
	for _, k := range kinds {
		numbers, err := k.findFields(s, p.pattern, p.fields)
		if err != nil {
			return q, err
		}
		for _, number := range numbers {
			tag := wordTag(k.Number, number)
			q.Phrases = append(q.Phrases, tag+strings.Join(p.pattern.Words(), " "+tag))
		}
	}
	return q, nil
}
