package query

import (
	"errors"
	"slices"
	"testing"

	"understudy"
	"understudy/internal/checktest"
)

func TestQuestionsThatMeanNothingAreRefused(t *testing.T) {
	calls, many := []string{"calls"}, slices.Repeat([]string{"x"}, MaxValues+1)
	term := func(p Predicate) RecordQuery { return RecordQuery{Predicates: []Predicate{p}} }
	for name, q := range map[string]RecordQuery{
		"a shape of two kinds":      {Shape: "calls", Kinds: []string{"calls", "messages"}},
		"ids of any kind":           {IDs: []string{"CA1"}},
		"too many ids":              {IDs: many, Kinds: calls},
		"changes of any source":     {Since: 1},
		"a limit below zero":        {Limit: -1},
		"too many terms":            {Rule: slices.Repeat([]Predicate{{Number: "1"}}, MaxTerms+1)},
		"a term that asks nothing":  term(Predicate{Field: "a"}),
		"a term that asks two ways": term(Predicate{Field: "a", Any: calls, Number: "1"}),
		"values of no field":        term(Predicate{Any: calls}),
		"too many values":           term(Predicate{Field: "a", Any: many}),
		"the empty text":            term(Predicate{Field: "a", Any: []string{""}}),
	} {
		if err := q.Check(); !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := RecordQuery{Source: "twilio", Kinds: calls, Shape: "calls", IDs: many[:MaxValues], Since: 1, Limit: 1,
		Predicates: []Predicate{{Field: "a", Any: calls}, {Number: "1"}}, Rule: []Predicate{{From: 1}}}
	{
		err := good.Check()
		checktest.MustNoError(t, err, "")
		checktest.True(t, good.HasTerms(), "good.HasTerms() is false")
		checktest.Equal(t, len(good.Terms()), 3, "len(good.Terms())")
	}
}
