// Plans: a condition on words, as FTS5 reads it.

package words

import (
	"fmt"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store/fts5"
	"understudy/kit/tokenizer"
	"understudy/spec"
)

const (
	maxTextParts = 64 // words and phrases of one question
	maxTextDepth = 16 // and parts within parts
)

// Plan is a query.Text made ready: its words cut and folded, its fields turned
// into columns. nil finds nothing.
type Plan struct {
	op      query.TextOp // TextPhrase for all words
	pattern tokenizer.Pattern
	in      []column // nil: all
	of      []*Plan
}

// PlanOf makes a Text ready. kinds are those it is asked of: they say of which
// class its fields are. What is malformed is understudy.ErrInvalid.
func PlanOf(t *query.Text, kinds []*spec.Kind) (*Plan, error) {
	p := &planning{kinds: kinds}
	plan := p.part(t, false, 0)
	if p.err != nil {
		return nil, fmt.Errorf("%w: %w", understudy.ErrInvalid, p.err)
	}
	return plan, nil
}

type planning struct {
	kinds []*spec.Kind
	parts int
	err   error
}

// part plans a part; not says that what it finds is taken away: then it must
// not find more than it was asked for.
func (p *planning) part(t *query.Text, not bool, depth int) *Plan {
	switch {
	case t == nil:
		return p.fail("a part of the text is missing")
	case depth > maxTextDepth:
		return p.fail("the text has more than %d parts within one another", maxTextDepth)
	}
	plan := p.joined(t, not, depth)
	if plan == nil || t.In == nil && t.Field == "" {
		return plan
	}
	in, exact := p.columns(t)
	if not && !exact || len(in) == 0 {
		return nil
	}
	return plan.within(in)
}

func (p *planning) fail(format string, args ...any) *Plan {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
	return nil
}

// joined plans a part but for where it looks.
func (p *planning) joined(t *query.Text, not bool, depth int) *Plan {
	switch t.Op {
	case query.TextWord, query.TextPrefix, query.TextPhrase:
		if p.parts++; p.parts > maxTextParts {
			return p.fail("the text has more than %d words and phrases", maxTextParts)
		}
		pattern := tokenizer.Phrase(t.Op == query.TextPrefix || t.Op == query.TextPhrase && t.Prefix, t.Words...)
		if pattern.Empty() || not && pattern.Loose() {
			return nil
		}
		return &Plan{op: query.TextPhrase, pattern: pattern}
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

// columns are where a Text looks; exact is false when it may be more than was
// asked for.
func (p *planning) columns(t *query.Text) (in []column, exact bool) {
	for _, class := range t.In {
		if c := columnOf(class); c != columnNone && !slices.Contains(in, c) {
			in = append(in, c)
		}
	}
	slices.Sort(in)
	if t.Field == "" {
		return in, true
	}
	var of []column
	for _, k := range p.kinds {
		c := columnOther
		if k != nil && k.Field(t.Field) != nil {
			c = fieldColumn(k, k.Field(t.Field))
		}
		if c != columnNone && !slices.Contains(of, c) && (t.In == nil || slices.Contains(in, c)) {
			of = append(of, c)
		}
	}
	if t.In == nil && !slices.Contains(of, columnOther) {
		of = append(of, columnOther) // what has no name in the field
	}
	slices.Sort(of)
	return of, false
}

// within is a plan bounded to columns.
func (p *Plan) within(in []column) *Plan {
	return &Plan{op: query.TextAnd, in: in, of: []*Plan{p}}
}

// match is the plan as FTS5 reads it, for some kinds. Folded words have no
// quotes, so that between quotes nothing ends them. begin gives the words that
// begin in a way, or none to leave looking for them to FTS5.
func (p *Plan) match(kinds []*Kind, begin func(prefix string) ([]string, error)) (string, error) {
	w := matching{kinds: kinds, begin: begin}
	w.write(p, classColumns)
	return w.String(), w.err
}

type matching struct {
	strings.Builder
	kinds []*Kind
	begin func(prefix string) ([]string, error)
	err   error
}

// write writes a plan of which only some classes are asked.
func (w *matching) write(p *Plan, in []column) {
	in = p.among(in)
	if p.op == query.TextPhrase {
		w.phrase(p.pattern, in)
		return
	}
	w.WriteByte('(')
	for i, part := range p.of {
		if i > 0 {
			w.WriteString([...]string{query.TextAnd: " AND ", query.TextOr: " OR ", query.TextNot: " NOT "}[p.op])
		}
		w.write(part, in)
	}
	w.WriteByte(')')
}

// phrase writes a phrase, once for each class of each kind that has words. FTS5
// puts all records with a word that begins in some way in order before it gives
// the first; phrases of the words that do are read no further than they are needed.
func (w *matching) phrase(p tokenizer.Pattern, in []column) {
	w.WriteByte('(')
	begun := w.Len()
	for _, k := range w.kinds {
		for _, c := range in {
			if !k.said.has(c) {
				continue
			}
			if w.Len() > begun {
				w.WriteString(" OR ")
			}
			w.tagged(k.tagged(p, c), p.Prefix())
		}
	}
	if w.Len() == begun {
		w.WriteString(fts5.None)
	}
	w.WriteByte(')')
}

// tagged writes a phrase in one class of a kind.
func (w *matching) tagged(all []string, prefix bool) {
	if !prefix {
		w.quote(all)
		return
	}
	last := len(all) - 1
	ends, err := w.begin(all[last])
	switch {
	case err != nil:
		w.err = err
	case len(ends) == 0:
		w.quote(all)
		w.WriteString(" *")
		return
	}
	for i, end := range ends {
		if i > 0 {
			w.WriteString(" OR ")
		}
		all[last] = end
		w.quote(all)
	}
}

func (w *matching) quote(all []string) {
	w.WriteByte('"')
	w.WriteString(strings.Join(all, " "))
	w.WriteByte('"')
}
