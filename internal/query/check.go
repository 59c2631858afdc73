// This file validates record queries and compiles their conditions.

package query

import (
	"fmt"
	"math"
	"slices"

	"understudy"
	"understudy/spec"
)

// MaxTerms is the maximum number of predicates in a RecordQuery. MaxValues is the maximum number of values in one
// predicate.
const (
	MaxTerms  = 64
	MaxValues = 1000
	// MaxNumbers is the maximum number of record numbers in a RecordQuery.
	MaxNumbers = 10_000
)

// Check returns understudy.ErrInvalid for a query that is contradictory or too large.
func (q *RecordQuery) Check() error {
	switch {
	case q.Shape != "" && len(q.Kinds) != 1:
		return fmt.Errorf("%w: a shape is asked for with exactly one kind", understudy.ErrInvalid)
	case len(q.IDs) > 0 && len(q.Kinds) != 1:
		return fmt.Errorf("%w: ids are asked for with exactly one kind", understudy.ErrInvalid)
	case len(q.IDs) > MaxValues:
		return fmt.Errorf("%w: more than %d ids", understudy.ErrInvalid, MaxValues)
	case len(q.Numbers) > 0 && (len(q.Kinds) != 1 || len(q.IDs) > 0):
		return fmt.Errorf("%w: numbers are asked for with exactly one kind, and without ids", understudy.ErrInvalid)
	case len(q.Numbers) > MaxNumbers:
		return fmt.Errorf("%w: more than %d numbers", understudy.ErrInvalid, MaxNumbers)
	case q.Since != 0 && q.Source == "":
		return fmt.Errorf("%w: changes are numbered by source: one must be named", understudy.ErrInvalid)
	case q.Since < 0 || q.Limit < 0 || q.ExpectedRows < 0:
		return fmt.Errorf("%w: a number below zero", understudy.ErrInvalid)
	case len(q.Predicates)+len(q.Rule) > MaxTerms:
		return fmt.Errorf("%w: more than %d terms", understudy.ErrInvalid, MaxTerms)
	}
	for i, t := range q.Terms() {
		if err := t.check(); err != nil {
			return fmt.Errorf("%w: term %d: %w", understudy.ErrInvalid, i, err)
		}
	}
	return nil
}

// Terms returns Predicates and Rule together.
func (q *RecordQuery) Terms() []Predicate {
	if len(q.Rule) == 0 {
		return q.Predicates
	}
	return slices.Concat(q.Predicates, q.Rule)
}

// HasTerms reports whether the query has a parent or a predicate.
func (q *RecordQuery) HasTerms() bool { return q.Parent != "" || len(q.Predicates)+len(q.Rule) > 0 }

// check returns an error for a predicate that is empty, ambiguous or too large.
func (t *Predicate) check() error {
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

// Matcher returns a matcher that tests the predicates on bodies of a kind. kind is nil if no spec names the kind.
func (q *RecordQuery) Matcher(kind *spec.Kind) *Matcher {
	terms := q.Terms()
	all := make([]Condition, len(terms))
	for i := range terms {
		all[i] = terms[i].condition(kind)
	}
	return Compile(all, Options{Flat: true})
}

// condition converts the predicate to a condition for a kind. A field that the kind does not have never matches.
func (t *Predicate) condition(kind *spec.Kind) (c Condition) {
	add := func(f *spec.Field) { c.Fields = append(c.Fields, FieldOf(f)) }
	switch {
	case len(t.Any) > 0:
		c.Test = OneOf{Texts: t.Any}
	case t.Number != "":
		c.Test = NewPhoneNumber(t.Number)
	default:
		span := Span{From: t.From, To: t.To}
		if t.From == 0 {
			span.From = math.MinInt64
		}
		if t.To == 0 {
			span.To = math.MaxInt64
		}
		c.Test, c.First = Times{span}, t.Field == ""
	}
	switch {
	case t.Field == "" && t.Number == "":
		for _, f := range TimeFields(kind) {
			add(f)
		}
	case t.Field == "":
		for _, f := range PhoneFields(kind) {
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

// TimeFields returns the fields with a record's own time: the clock and the order field of the kind.
func TimeFields(kind *spec.Kind) (fields []*spec.Field) {
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

// PhoneFields returns the fields of a kind that contain phone numbers.
func PhoneFields(kind *spec.Kind) (fields []*spec.Field) {
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
