// This file cuts the text of a body into words for the columns of the index.

package words

import (
	"bytes"
	"slices"

	"understudy/internal/query"
	"understudy/internal/store/wordrows"
	"understudy/kit/jsonspan"
	"understudy/kit/tokenizer"
	"understudy/spec"
)

const (
	// maxWords is the maximum number of words of one field that can be found, per record and shape. The limit is per
	// field, so that a field that a role cannot see does not influence what the role finds.
	maxWords = 4096
	// valueBorder separates two values of a field in a column, so that no phrase spans both. No text contains it as a word.
	valueBorder = "\ue000"
)

// texts visits the texts of a body, value by value in order. It keeps its memory for the next body.
type texts struct {
	rule  Rule
	yield func(f field, text string)
	name  []byte
}

// unnamed is the field of all text that the spec does not name, also of text inside a field that the spec names. A role
// that sees only the outer field does not see this text.
var unnamed = field{column: columnOther}

// visitTexts calls yield with every text of a body and its field.
func (t *texts) visitTexts(rule Rule, f *query.Facts, yield func(f field, text string)) {
	t.rule, t.yield, t.name = rule, yield, t.name[:0]
	if f.Doc.Kind != jsonspan.Object {
		t.visitValue(f.Body, f.Doc, unnamed)
		return
	}
	for _, m := range f.Members {
		t.visitMember(f.Body, m.Name, m.Value)
	}
}

// visitMember visits the value of one member of an object. t.name is the name of the object.
func (t *texts) visitMember(body, name []byte, v jsonspan.Value) {
	length := len(t.name)
	if length > 0 {
		t.name = append(t.name, '.')
	}
	if bytes.IndexByte(name, '\\') < 0 {
		t.name = append(t.name, name...)
	} else {
		t.name = append(t.name, jsonspan.Name(name)...)
	}
	f, ok := t.rule[string(t.name)]
	if !ok {
		f = unnamed
	}
	if f.column != columnNone {
		t.visitValue(body, v, f)
	}
	t.name = t.name[:length]
}

// visitValue visits a value whose name is t.name and whose field is f.
func (t *texts) visitValue(body []byte, v jsonspan.Value, f field) {
	switch v.Kind {
	case jsonspan.Object:
		jsonspan.VisitMembers(body, v, func(name []byte, v jsonspan.Value) bool {
			t.visitMember(body, name, v)
			return true
		})
	case jsonspan.Array:
		jsonspan.VisitElements(body, v, func(v jsonspan.Value) bool {
			t.visitValue(body, v, f)
			return true
		})
	case jsonspan.String:
		if text := jsonspan.Text(body, v); !isTime(f.column, text) {
			t.yield(f, text)
		}
	case jsonspan.Number:
		t.yield(f, string(v.Bytes(body)))
	}
}

// isTime reports whether a text in a column is a date or a time rather than text.
func isTime(c column, text string) bool {
	return (c == columnPlain || c == columnOther) && spec.IsTimeText(text)
}

// Cutter converts bodies to rows of the word index. Only one goroutine at a time may use it.
type Cutter struct {
	texts  texts
	cutter tokenizer.Cutter
	parts  [wordrows.Columns][]byte
	last   [wordrows.Columns]int // for each column, the number of the field of its last word
	words  []int                 // for each field, the number of its words in the body
}

// row returns the words of a body by column: cut, folded and tagged.
func (x *Cutter) row(k *Kind, facts *query.Facts) (row wordrows.Row) {
	for c := range x.parts {
		x.parts[c] = x.parts[c][:0]
	}
	if k.Rule == nil {
		return row
	}
	x.words = slices.Grow(x.words[:0], len(k.known))[:len(k.known)]
	clear(x.words)
	x.texts.visitTexts(k.Rule, facts, func(f field, text string) {
		c := f.column
		last := c + columnsOf[c] - 1
		for c < last && len(x.parts[c]) > 0 {
			c++
		}
		x.cutter.Reset(text)
		part, first := x.parts[c], true
		for x.words[f.number] < maxWords && x.cutter.Next() {
			x.words[f.number]++
			if len(part) > 0 {
				part = append(part, ' ')
				if first && x.last[c] == f.number {
					part = append(append(part, valueBorder...), ' ')
				}
			}
			first, x.last[c] = false, f.number
			part = append(appendTag(part, k.Number, f.number), x.cutter.Word.Folded...)
		}
		x.parts[c] = part
	})
	for c := range row {
		row[c] = string(x.parts[c])
	}
	return row
}

// VisitWords calls yield with every word of a body as the index stores it for a posting.
func (x *Cutter) VisitWords(k *Kind, f *query.Facts, posting int64, yield func(wordrows.Word)) {
	w := wordrows.Write{Posting: posting, Row: x.row(k, f)}
	w.VisitWords(yield)
}
