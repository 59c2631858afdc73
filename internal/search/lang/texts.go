// This file collects the texts of a record in which words are searched.

package lang

import (
	"understudy/kit/jsonspan"
	"understudy/kit/tokenizer"
	"understudy/spec"
)

// noText is the class of fields that are not text.
const noText = "-"

// TextRule has the class of every field that the spec names, or noText if the field is not text. Words are searched
// only in text fields.
type TextRule map[string]string

// TextRuleOf returns the TextRule of a kind.
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

// Texts returns the texts of a record that the caller fully sees.
func (c *Candidate) Texts() []tokenizer.Field {
	if !c.TextsRead {
		c.TextsRead = true
		cur := jsonspan.NewCursor(c.Record.Body, c.doc)
		var name [64]byte
		c.gatherTexts(&cur, name[:0], "")
	}
	return c.TextFields
}

// gatherTexts adds the texts of the cursor's next value. class is the value's class; nested fields that the spec does
// not name have no class.
func (c *Candidate) gatherTexts(cur *jsonspan.Cursor, name []byte, class string) {
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
			case !named && !c.View.Unnamed, of == noText:
				cur.Skip()
			case named:
				c.gatherTexts(cur, inner, of)
			default:
				c.gatherTexts(cur, inner, "")
			}
		}
	case jsonspan.Array:
		cur.Enter()
		for cur.Next() {
			c.gatherTexts(cur, name, class)
		}
	case jsonspan.String, jsonspan.Number:
		v := cur.Skip()
		if v.End-v.Start > 2 || v.Kind == jsonspan.Number {
			c.addText(name, class, v)
		}
	default:
		cur.Skip()
	}
}

func (c *Candidate) addText(name []byte, class string, v jsonspan.Value) {
	if !c.View.canSeeField(name) {
		return
	}
	text := jsonspan.Text(c.Record.Body, v)
	if v.Kind == jsonspan.String && class == "" && spec.IsTimeText(text) {
		return
	}
	c.TextFields = append(c.TextFields, tokenizer.Field{Class: class, Name: string(name), Text: text})
}
