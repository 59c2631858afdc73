// Texts: what of a record is text, in which words are looked for.

package search

import (
	"understudy/kit/jsonspan"
	"understudy/kit/tokenizer"
	"understudy/spec"
)

// noText is the class of what is no text.
const noText = "-"

// textRule is the class of every field the spec names of a kind, or noText. The
// others are asked for by their field.
type textRule map[string]string

func textRuleOf(k *spec.Kind) textRule {
	rule := textRule{}
	for _, f := range k.Fields {
		rule[f.Name] = noText
		if k.IsText(f) {
			rule[f.Name] = f.Class
		}
	}
	return rule
}

// text are the texts of a record the caller fully sees.
func (c *candidate) text() []tokenizer.Field {
	if !c.read {
		c.read = true
		cur := jsonspan.At(c.Body, c.doc)
		var name [64]byte
		c.gather(&cur, name[:0], "")
	}
	return c.held
}

// gather adds the texts in the value to come; class is its own. What the spec
// does not name in it has none.
func (c *candidate) gather(cur *jsonspan.Cursor, name []byte, class string) {
	switch cur.Kind() {
	case jsonspan.Object:
		cur.Enter()
		for cur.More() {
			inner := name
			if len(name) > 0 {
				inner = append(inner, '.')
			}
			inner = append(inner, jsonspan.Name(cur.Name())...)
			of, named := c.view.texts[string(inner)]
			switch {
			case !named && !c.view.all, of == noText:
				cur.Skip()
			case named:
				c.gather(cur, inner, of)
			default:
				c.gather(cur, inner, "")
			}
		}
	case jsonspan.Array:
		cur.Enter()
		for cur.More() {
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

func (c *candidate) add(name []byte, class string, v jsonspan.Value) {
	if !c.view.sees(name) {
		return
	}
	text := jsonspan.Text(c.Body, v)
	if v.Kind == jsonspan.String && class == "" && spec.LooksLikeTime(text) {
		return
	}
	c.held = append(c.held, tokenizer.Field{Class: class, Name: string(name), Text: text})
}
