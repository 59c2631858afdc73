// Rows that wait to be written: a plan finds them as FTS5 will.

package words

import (
	"slices"
	"strings"

	"understudy/internal/query"
	"understudy/internal/store/fts5"
	"understudy/kit/tokenizer"
)

// finds reports whether FTS5 would find a row by the plan, when it is of one of the kinds
// and only some classes are asked.
func (p *Plan) finds(row *fts5.Row, kinds []*Kind, in []column) bool {
	in = p.among(in)
	part := func(of *Plan) bool { return of.finds(row, kinds, in) }
	switch p.op {
	case query.TextAnd:
		return !slices.ContainsFunc(p.of, func(of *Plan) bool { return !part(of) })
	case query.TextOr:
		return slices.ContainsFunc(p.of, part)
	case query.TextNot:
		return part(p.of[0]) && !part(p.of[1])
	}
	for _, k := range kinds {
		for _, c := range in {
			phrase := " " + strings.Join(k.tagged(p.pattern, c), " ")
			if !p.pattern.Prefix() {
				phrase += " "
			}
			for _, text := range row[c : c+columnsOf[c]] {
				if text != "" && strings.Contains(" "+text+" ", phrase) {
					return true
				}
			}
		}
	}
	return false
}

// among are the classes that a plan which is asked in some looks at.
func (p *Plan) among(in []column) []column {
	if p.in == nil {
		return in
	}
	return slices.DeleteFunc(slices.Clone(in), func(c column) bool { return !slices.Contains(p.in, c) })
}

// tagged is the words of a pattern as the index has them of a class of a kind.
func (k *Kind) tagged(p tokenizer.Pattern, c column) []string {
	all := p.Words()
	for i := range all {
		all[i] = wordTag(k.Number, c) + all[i]
	}
	return all
}
