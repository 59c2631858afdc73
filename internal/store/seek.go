// Seek: what is asked of the records by their places, and whether one is meant.

package store

import (
	"fmt"
	"slices"
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
)

// MaxTerms is the most terms of one question, MaxValues the most values of one.
const (
	MaxTerms  = 64
	MaxValues = 1000
)

// checkSeek refuses a question that means nothing.
func checkSeek(q *understudy.Seek) error {
	switch {
	case q.Shape != "" && len(q.Kinds) != 1:
		return fmt.Errorf("%w: a shape is asked for with exactly one kind", understudy.ErrInvalid)
	case len(q.IDs) > 0 && len(q.Kinds) != 1:
		return fmt.Errorf("%w: ids are asked for with exactly one kind", understudy.ErrInvalid)
	case len(q.IDs) > MaxValues:
		return fmt.Errorf("%w: more than %d ids", understudy.ErrInvalid, MaxValues)
	case q.Since != 0 && q.Source == "":
		return fmt.Errorf("%w: changes are numbered by source: one must be named", understudy.ErrInvalid)
	case q.Since < 0 || q.Limit < 0 || q.Want < 0:
		return fmt.Errorf("%w: a number below zero", understudy.ErrInvalid)
	case len(q.Terms) > MaxTerms:
		return fmt.Errorf("%w: more than %d terms", understudy.ErrInvalid, MaxTerms)
	}
	for i := range q.Terms {
		if err := checkTerm(&q.Terms[i]); err != nil {
			return fmt.Errorf("%w: term %d: %w", understudy.ErrInvalid, i, err)
		}
	}
	return nil
}

func checkTerm(t *understudy.Term) error {
	ways := 0
	for _, has := range []bool{len(t.Any) > 0, t.Number != "", t.From != 0 || t.To != 0} {
		if has {
			ways++
		}
	}
	switch {
	case ways != 1:
		return fmt.Errorf("it asks for values, for a number or for a time")
	case t.Field == "" && len(t.Any) > 0:
		return fmt.Errorf("it names no field")
	case len(t.Any) > MaxValues:
		return fmt.Errorf("it has more than %d values", MaxValues)
	case slices.Contains(t.Any, ""):
		return fmt.Errorf("the empty text cannot be asked for")
	}
	return nil
}

// fulfils reports whether a body, whose id, kind and parent are given, is what is
// asked for by ids, parent and terms. kind is nil when the specs do not name it.
func fulfils(q *understudy.Seek, kind *understudy.Kind, id, parent string, body []byte) bool {
	if q.Parent != "" && parent != q.Parent || len(q.IDs) > 0 && !slices.Contains(q.IDs, id) {
		return false
	}
	if len(q.Terms) == 0 {
		return true
	}
	doc, err := jsonspan.Document(body)
	if err != nil || doc.Kind != jsonspan.Object {
		return false
	}
	for i := range q.Terms {
		if !has(&q.Terms[i], kind, body, doc) {
			return false
		}
	}
	return true
}

// has reports whether a body has what a term asks for.
func has(t *understudy.Term, kind *understudy.Kind, body []byte, doc jsonspan.Value) bool {
	if t.Field == "" && t.Number == "" {
		return during(t, ownTime(kind, body, doc))
	}
	if t.Field == "" {
		for _, f := range phones(kind) {
			if numberIs(t.Number, valueText(body, doc, f.Name)) {
				return true
			}
		}
		return false
	}
	var f *understudy.Field
	if kind != nil {
		if f = kind.Field(t.Field); f == nil {
			return false
		}
	}
	switch {
	case len(t.Any) > 0:
		text := valueText(body, doc, t.Field)
		return text != "" && slices.Contains(t.Any, text)
	case t.Number != "":
		return numberIs(t.Number, valueText(body, doc, t.Field))
	}
	v, ok := jsonspan.Find(body, doc, t.Field)
	if !ok || f == nil {
		return false
	}
	return during(t, timeOfValue(f.Type, body, v))
}

// during reports whether a time, 0 for none, is in a term's.
func during(t *understudy.Term, at int64) bool {
	return at != 0 && (t.From == 0 || at >= t.From) && (t.To == 0 || at < t.To)
}

// ownTime is the time of a record's clock or, while it has none, of its kind's
// order; 0: none.
func ownTime(kind *understudy.Kind, body []byte, doc jsonspan.Value) int64 {
	for _, f := range ownTimes(kind) {
		if v, ok := jsonspan.Find(body, doc, f.Name); ok {
			if at := timeOfValue(f.Type, body, v); at != 0 {
				return at
			}
		}
	}
	return 0
}

// ownTimes are the fields a kind's records tell their own time in.
func ownTimes(kind *understudy.Kind) (fields []*understudy.Field) {
	if kind == nil {
		return nil
	}
	for _, name := range []string{kind.Clock, kind.Order} {
		if f := kind.Field(name); f != nil {
			fields = append(fields, f)
		}
	}
	return fields
}

// phones are the fields of a kind that hold numbers.
func phones(kind *understudy.Kind) (fields []*understudy.Field) {
	if kind == nil {
		return nil
	}
	for _, f := range kind.Fields {
		if f.Class == understudy.ClassPhone {
			fields = append(fields, f)
		}
	}
	return fields
}

// valueText is a value as terms have it; "" for null, what is empty, and what
// is no single value.
func valueText(body []byte, doc jsonspan.Value, field string) string {
	v, ok := jsonspan.Find(body, doc, field)
	if !ok {
		return ""
	}
	return textOf(body, v)
}

// numberIs reports whether a value is a number, in any form; what is no number
// ("client:anna") is compared as it is.
func numberIs(asked, value string) bool {
	if value == "" {
		return false
	}
	if n := understudy.ReadPhone(asked); n.Digits != "" {
		return n.Same(understudy.ReadPhone(value))
	}
	return strings.EqualFold(asked, value)
}

// wants reports whether a question is about a kind.
func wants(q *understudy.Seek, source, kind string) bool {
	return (q.Source == "" || q.Source == source) && (len(q.Kinds) == 0 || slices.Contains(q.Kinds, kind))
}

// firstShape is the shape records of a kind are told in: that of its first list.
func firstShape(kind *understudy.Kind) string {
	if kind == nil || len(kind.Lists) == 0 {
		return ""
	}
	return kind.Lists[0].Shape
}
