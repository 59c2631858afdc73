// Seek: what is asked of the records by their places, and whether one is meant.

package store

import (
	"fmt"
	"math"
	"slices"

	"understudy"
	"understudy/internal/query"
	"understudy/spec"
)

// MaxTerms is the most terms of one question, MaxValues the most values of one.
const (
	MaxTerms  = 64
	MaxValues = 1000
)

// checkSeek refuses a question that means nothing.
func checkSeek(q *query.RecordQuery) error {
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
	case len(q.Predicates) > MaxTerms:
		return fmt.Errorf("%w: more than %d terms", understudy.ErrInvalid, MaxTerms)
	}
	for i := range q.Predicates {
		if err := checkTerm(&q.Predicates[i]); err != nil {
			return fmt.Errorf("%w: term %d: %w", understudy.ErrInvalid, i, err)
		}
	}
	return nil
}

func checkTerm(t *query.Predicate) error {
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

// fulfils reports whether a record, whose id, parent and body are given, is what
// is asked for by ids, parent and terms.
func (k *kindPlan) fulfils(q *query.RecordQuery, id, parent string, body []byte) bool {
	if q.Parent != "" && parent != q.Parent || len(q.IDs) > 0 && !slices.Contains(q.IDs, id) {
		return false
	}
	return k.match.Match(body)
}

// matcher is what terms ask of a body. kind is nil when the specs do not name it.
func matcher(terms []query.Predicate, kind *spec.Kind) *query.Matcher {
	all := make([]query.Condition, len(terms))
	for i := range terms {
		all[i] = condition(&terms[i], kind)
	}
	return query.Compile(all, query.Options{Flat: true})
}

// condition is a term. A field that the kind does not have fulfils none.
func condition(t *query.Predicate, kind *spec.Kind) (c query.Condition) {
	add := func(f *spec.Field) { c.Fields = append(c.Fields, query.Field{Name: f.Name, Type: f.Type}) }
	switch {
	case len(t.Any) > 0:
		c.Test = query.OneOf{Texts: t.Any}
	case t.Number != "":
		c.Test = query.NewNumber(t.Number)
	default:
		span := query.Span{From: t.From, To: t.To}
		if t.From == 0 {
			span.From = math.MinInt64
		}
		if t.To == 0 {
			span.To = math.MaxInt64
		}
		c.Test, c.First = query.Times{span}, t.Field == ""
	}
	switch {
	case t.Field == "" && t.Number == "":
		for _, f := range ownTimes(kind) {
			add(f)
		}
	case t.Field == "":
		for _, f := range phones(kind) {
			add(f)
		}
	case kind == nil:
		add(&spec.Field{Name: t.Field})
	default:
		if f := kind.Field(t.Field); f != nil {
			add(f)
		}
	}
	return c
}

// ownTimes are the fields a kind's records tell their own time in.
func ownTimes(kind *spec.Kind) (fields []*spec.Field) {
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
func phones(kind *spec.Kind) (fields []*spec.Field) {
	if kind == nil {
		return nil
	}
	for _, f := range kind.Fields {
		if f.Class == spec.ClassPhone {
			fields = append(fields, f)
		}
	}
	return fields
}

// wants reports whether a question is about a kind.
func wants(q *query.RecordQuery, source, kind string) bool {
	return (q.Source == "" || q.Source == source) && (len(q.Kinds) == 0 || slices.Contains(q.Kinds, kind))
}

// firstShape is the shape records of a kind are told in: that of its first list.
func firstShape(kind *spec.Kind) string {
	if kind == nil || len(kind.Lists) == 0 {
		return ""
	}
	return kind.Lists[0].Shape
}
