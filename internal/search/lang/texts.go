// Texts: what of a record is text, in which words are looked for.

package lang

import (
	"understudy/kit/jsonspan"
	"understudy/kit/tokenizer"
	"understudy/spec"
)

// noText is the class of what is no text.
const noText = "-"

// TextRule is the class of every field the spec names of a kind, or noText. The others are asked for by their field.
type TextRule map[string]string

func TextRuleOf(k *spec.Kind) TextRule {
	rule := TextRule{}
	for _, f := range k.Fields {
		rule[f.Name] = noText
		if k.IsText(f) {
			rule[f.Name] = f.Class
		}
	}
	return rule
}

// Text are the texts of a record the caller fully sees.
func (c *Candidate) Text() []tokenizer.Field {
	if !c.Read {
		c.Read = true
		cur := jsonspan.NewCursor(c.Record.Body, c.doc)
		var name [64]byte
		c.gather(&cur, name[:0], "")
	}
	return c.Held
}

// gather adds the texts in the value to come; class is its own. What the spec does not name in it has none.
func (c *Candidate) gather(cur *jsonspan.Cursor, name []byte, class string) {
	switch cur.Kind() {
	case jsonspan.Object:
		cur.Enter()
		for cur.Next() {
			inner := name
			if len(name) > 0 {
				inner = append(inner, '.')
			}
			inner = append(inner, jsonspan.Name(cur.Name())...)
			of, named := c.View.texts[string(inner)]
			switch {
			case !named && !c.View.All, of == noText:
				cur.Skip()
			case named:
				c.gather(cur, inner, of)
			default:
				c.gather(cur, inner, "")
			}
		}
	case jsonspan.Array:
		cur.Enter()
		for cur.Next() {
			c.gather(cur, name, class)
		}
	case jsonspan.String, jsonspan.Number:
		v := cur.Skip()
		if v.End-v.Start > 2 || v.Kind == jsonspan.Number {
			c.add(name, class, v)
		}
	default:
		cur.Skip()
	}
}

func (c *Candidate) add(name []byte, class string, v jsonspan.Value) {
	if !c.View.sees(name) {
		return
	}
	text := jsonspan.Text(c.Record.Body, v)
	if v.Kind == jsonspan.String && class == "" && spec.IsTimeText(text) {
		return
	}
	c.Held = append(c.Held, tokenizer.Field{Class: class, Name: string(name), Text: text})
}
