// Words: what of a body is its text, by the spec, and how an index takes it.

package store

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"understudy/kit/jsonspan"
	"understudy/kit/tokenizer"
	"understudy/spec"
)

// column is a column of the index of words: a class of fields, or a further
// value of one, since a value in a column of its own costs less than a border
// between two. Their order is part of the format; words of the first cost least.
type column uint8

const (
	columnBody column = iota
	columnPlain
	columnPlain2
	columnPlain3
	columnPhone
	columnPhone2
	columnName
	columnURL
	columnOther // what the spec does not name
	columns
	columnNone = columns // no text
)

// columnNames are the columns as the index names them; columnsOf is how many a
// class has, by its first.
var (
	columnNames = [columns]string{"body", "plain", "plain2", "plain3", "phone", "phone2", "name", "url", "other"}
	columnsOf   = [columns]column{1, 3, 0, 0, 2, 0, 1, 1, 1}
)

// classTags are the letters of classes in tags, by column.
const classTags = "bppphhnuo"

// classColumns are the first columns of all classes.
var classColumns = []column{columnBody, columnPlain, columnPhone, columnName, columnURL, columnOther}

// tagSize is how many bytes a tag has.
const tagSize = 3

// appendTag appends the tag of a class of a kind, whose number is below
// 1 << shapeBits. A word in the index begins with that of its kind and class, so
// that a question about some of them reads nothing of the others: FTS5 keeps what
// a word has in all columns and records together. Words of a kind are neighbours.
func appendTag(b []byte, kind int64, c column) []byte {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz" // FTS5 tells no capital letters apart
	return append(b, digits[kind/36], digits[kind%36], classTags[c])
}

// wordTag is that tag as text.
func wordTag(kind int64, c column) string { return string(appendTag(nil, kind, c)) }

// columnOf is the first column of a class. Prices and their currencies are no
// text: a word in every record that tells none from another costs ten bytes in
// each.
func columnOf(class string) column {
	switch class {
	case spec.ClassBody:
		return columnBody
	case spec.ClassPhone:
		return columnPhone
	case spec.ClassName:
		return columnName
	case spec.ClassURL:
		return columnURL
	case "":
		return columnPlain
	}
	return columnNone
}

const (
	// maxWords is how many words of a record in one shape are found; what
	// follows them is not.
	maxWords = 4096
	// border stands between two values of a column, so that no phrase reaches
	// from one into the other. It is no word of any text.
	border = "\ue000"
)

// textRule says which fields of a kind are text. It is made once for a kind and
// then only read.
type textRule map[string]column

// textRuleOf reads it off a spec, which says what is text (Kind.Worded). A kind
// that no spec names has no text.
func textRuleOf(k *spec.Kind) textRule {
	if k == nil {
		return nil
	}
	rule := textRule{}
	for _, f := range k.Fields {
		rule[f.Name] = fieldColumn(k, f)
	}
	return rule
}

func fieldColumn(k *spec.Kind, f *spec.Field) column {
	if !k.IsText(f) {
		return columnNone
	}
	return columnOf(f.Class)
}

// texts is the text of a body, value by value in the order they stand there.
// It keeps its memory for the next body.
type texts struct {
	rule  textRule
	yield func(c column, text string) bool
	name  []byte
	ended bool
}

// each calls yield with every text, until that returns false.
func (t *texts) each(rule textRule, f *facts, yield func(c column, text string) bool) {
	t.rule, t.yield, t.name, t.ended = rule, yield, t.name[:0], false
	if f.doc.Kind != jsonspan.Object {
		t.value(f.body, f.doc, columnOther)
		return
	}
	for _, m := range f.members {
		if t.member(f.body, m.name, m.value); t.ended {
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

// wordRow is the words of a record in one shape: each column's, cut, folded and
// tagged, with a space between them.
type wordRow [columns]string

// cutting makes word rows. One goroutine at a time uses it.
type cutting struct {
	texts   texts
	cutter  tokenizer.Cutter
	parts   [columns][]byte
	members []member // of the bodies of a transaction
}

// row is the words of a body of a kind.
func (x *cutting) row(kind int64, rule textRule, f *facts) (row wordRow) {
	for c := range x.parts {
		x.parts[c] = x.parts[c][:0]
	}
	if rule == nil {
		return row
	}
	n := 0
	x.texts.each(rule, f, func(c column, text string) bool {
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
			part = append(appendTag(part, kind, c), x.cutter.Folded...)
		}
		x.parts[c] = part
		return n < maxWords
	})
	for c := range row {
		row[c] = string(x.parts[c])
	}
	return row
}

// empty reports that there is no word.
func (r *wordRow) empty() bool { return *r == wordRow{} }

// wordsForm is raised whenever the same body would be cut into other words.
const wordsForm = 3

// form is the rule and the way of cutting as text: words made by another form
// are to be made anew.
func (r textRule) form() string {
	if r == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprint(&b, wordsForm)
	for _, name := range slices.Sorted(maps.Keys(r)) {
		fmt.Fprintf(&b, "\n%d %s", r[name], name)
	}
	return b.String()
}

// textRuleIn reads a form back: the rule of records whose spec is not at hand.
func textRuleIn(form string) textRule {
	if form == "" {
		return nil
	}
	rule := textRule{}
	for line := range strings.Lines(form) {
		n, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if c, err := strconv.Atoi(n); ok && err == nil && c >= 0 && column(c) <= columns {
			rule[name] = column(c)
		}
	}
	return rule
}
