// Cutting: the text of a body, word by word and column by column.

package words

import (
	"bytes"

	"understudy/internal/query"
	"understudy/internal/store/fts5"
	"understudy/kit/jsonspan"
	"understudy/kit/tokenizer"
	"understudy/spec"
)

const (
	// maxWords is how many words of a record in one shape are found; what
	// follows them is not.
	maxWords = 4096
	// border stands between two values of a column, so that no phrase reaches
	// from one into the other. It is no word of any text.
	border = "\ue000"
)

// texts is the text of a body, value by value in the order they stand there.
// It keeps its memory for the next body.
type texts struct {
	rule  Rule
	yield func(c column, text string) bool
	name  []byte
	ended bool
}

// each calls yield with every text, until that returns false.
func (t *texts) each(rule Rule, f *query.Facts, yield func(c column, text string) bool) {
	t.rule, t.yield, t.name, t.ended = rule, yield, t.name[:0], false
	if f.Doc.Kind != jsonspan.Object {
		t.value(f.Body, f.Doc, columnOther)
		return
	}
	for _, m := range f.Members {
		if t.member(f.Body, m.Name, m.Value); t.ended {
			return
		}
	}
}

// member goes through a member of the object whose name is t.name. What the spec
// does not name is columnOther: a role that sees the rest does not see that.
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
	c, ok := t.rule[string(t.name)]
	if !ok {
		c = columnOther
	}
	if c != columnNone {
		t.value(body, v, c)
	}
	t.name = t.name[:length]
}

// value goes through a value whose name is t.name; inner is its column.
func (t *texts) value(body []byte, v jsonspan.Value, inner column) {
	switch v.Kind {
	case jsonspan.Object:
		jsonspan.Members(body, v, func(name []byte, v jsonspan.Value) bool {
			t.member(body, name, v)
			return !t.ended
		})
	case jsonspan.Array:
		jsonspan.Elements(body, v, func(v jsonspan.Value) bool {
			t.value(body, v, inner)
			return !t.ended
		})
	case jsonspan.String:
		if text := jsonspan.Text(body, v); !tellsTime(inner, text) {
			t.ended = !t.yield(inner, text)
		}
	case jsonspan.Number:
		t.ended = !t.yield(inner, string(v.Of(body)))
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
}

// row is the words of a body of a kind: those of each column cut, folded and tagged.
func (x *Cutter) row(k *Kind, f *query.Facts) (row fts5.Row) {
	for c := range x.parts {
		x.parts[c] = x.parts[c][:0]
	}
	if k.Rule == nil {
		return row
	}
	n := 0
	x.texts.each(k.Rule, f, func(c column, text string) bool {
		last := c + columnsOf[c] - 1
		for c < last && len(x.parts[c]) > 0 {
			c++
		}
		x.cutter.Reset(text)
		part, first := x.parts[c], true
		for n < maxWords && x.cutter.Next() {
			n++
			if len(part) > 0 {
				part = append(part, ' ')
				if first {
					part = append(append(part, border...), ' ')
				}
			}
			first = false
			part = append(appendTag(part, k.Number, c), x.cutter.Folded...)
		}
		x.parts[c] = part
		return n < maxWords
	})
	for c := range row {
		row[c] = string(x.parts[c])
	}
	return row
}

// Each calls yield with every word of a body of a kind, as the index has it at a
// posting.
func (x *Cutter) Each(k *Kind, f *query.Facts, posting int64, yield func(fts5.Word)) {
	w := fts5.Write{Posting: posting, Row: x.row(k, f)}
	w.Each(yield)
}
