// Cutting: the text of a body, word by word and column by column.

package words

import (
	"bytes"
	"slices"

	"understudy/internal/query"
	"understudy/internal/store/fts5"
	"understudy/kit/jsonspan"
	"understudy/kit/tokenizer"
	"understudy/spec"
)

const (
	// maxWords is how many words of a field are found, in a record in one shape. The
	// limit is the field's own: what a role does not see decides nothing of what it finds.
	maxWords = 4096
	// border stands between two values of a field in a column, so that no phrase reaches
	// from one into the other. It is no word of any text.
	border = "\ue000"
)

// texts is the text of a body, value by value in the order they stand there. It keeps its memory for the next body.
type texts struct {
	rule  Rule
	yield func(f field, text string)
	name  []byte
}

// unnamed is what the spec does not name, also within a field that it names: a role that
// sees the field does not see that.
var unnamed = field{column: columnOther}

// each calls yield with every text.
func (t *texts) each(rule Rule, f *query.Facts, yield func(f field, text string)) {
	t.rule, t.yield, t.name = rule, yield, t.name[:0]
	if f.Doc.Kind != jsonspan.Object {
		t.value(f.Body, f.Doc, unnamed)
		return
	}
	for _, m := range f.Members {
		t.member(f.Body, m.Name, m.Value)
	}
}

// member goes through a member of the object whose name is t.name.
func (t *texts) member(body, name []byte, v jsonspan.Value) {
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
		t.value(body, v, f)
	}
	t.name = t.name[:length]
}

// value goes through a value whose name is t.name; f is its field.
func (t *texts) value(body []byte, v jsonspan.Value, f field) {
	switch v.Kind {
	case jsonspan.Object:
		jsonspan.VisitMembers(body, v, func(name []byte, v jsonspan.Value) bool {
			t.member(body, name, v)
			return true
		})
	case jsonspan.Array:
		jsonspan.VisitElements(body, v, func(v jsonspan.Value) bool {
			t.value(body, v, f)
			return true
		})
	case jsonspan.String:
		if text := jsonspan.Text(body, v); !tellsTime(f.column, text) {
			t.yield(f, text)
		}
	case jsonspan.Number:
		t.yield(f, string(v.Bytes(body)))
	}
}

// tellsTime reports whether a text in a column is a date or a time, and no text.
func tellsTime(c column, text string) bool {
	return (c == columnPlain || c == columnOther) && spec.LooksLikeTime(text)
}

// Cutter makes the rows of bodies. One goroutine at a time uses it.
type Cutter struct {
	texts  texts
	cutter tokenizer.Cutter
	parts  [fts5.Columns][]byte
	last   [fts5.Columns]int // the field of each part's last word
	words  []int             // of each field in the body
}

// row returns the words of a body of a kind: those of each column cut, folded and tagged.
func (x *Cutter) row(k *Kind, facts *query.Facts) (row fts5.Row) {
	for c := range x.parts {
		x.parts[c] = x.parts[c][:0]
	}
	if k.Rule == nil {
		return row
	}
	x.words = slices.Grow(x.words[:0], len(k.known))[:len(k.known)]
	clear(x.words)
	x.texts.each(k.Rule, facts, func(f field, text string) {
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
					part = append(append(part, border...), ' ')
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

// Each calls yield with every word of a body of a kind, as the index has it at a posting.
func (x *Cutter) Each(k *Kind, f *query.Facts, posting int64, yield func(fts5.Word)) {
	w := fts5.Write{Posting: posting, Row: x.row(k, f)}
	w.Each(yield)
}
