// Checks: whether a question means something, and what it asks of a body.

package query

import (
	"fmt"
	"math"
	"slices"

	"understudy"
	"understudy/spec"
)

// MaxTerms is the most predicates of one RecordQuery, MaxValues the most values of one.
const (
	MaxTerms  = 64
	MaxValues = 1000
)

// Check refuses a question that means nothing or asks for too much, as understudy.ErrInvalid.
func (q *RecordQuery) Check() error {
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

// Terms returns Predicates and Rule.
func (q *RecordQuery) Terms() []Predicate {
	if len(q.Rule) == 0 {
		return q.Predicates
	}
	return slices.Concat(q.Predicates, q.Rule)
}

// Termed reports whether a parent or a predicate is asked for.
func (q *RecordQuery) Termed() bool { return q.Parent != "" || len(q.Predicates)+len(q.Rule) > 0 }

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

// Matcher is what the predicates ask of a body of a kind, which is nil when no spec names it.
func (q *RecordQuery) Matcher(kind *spec.Kind) *Matcher {
	terms := q.Terms()
	all := make([]Condition, len(terms))
	for i := range terms {
		all[i] = terms[i].condition(kind)
	}
	return Compile(all, Options{Flat: true})
}

// condition is the predicate for a kind. A field that the kind does not have fulfils none.
func (t *Predicate) condition(kind *spec.Kind) (c Condition) {
	add := func(f *spec.Field) { c.Fields = append(c.Fields, FieldOf(f)) }
	switch {
	case len(t.Any) > 0:
		c.Test = OneOf{Texts: t.Any}
	case t.Number != "":
		c.Test = NewNumber(t.Number)
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
		for _, f := range OwnTimes(kind) {
			add(f)
		}
	case t.Field == "":
		for _, f := range Phones(kind) {
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

// OwnTimes are the fields a kind's records tell their own time in.
func OwnTimes(kind *spec.Kind) (fields []*spec.Field) {
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

// Phones are the fields of a kind that hold numbers.
func Phones(kind *spec.Kind) (fields []*spec.Field) {
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
