// This file finds the records near a point by the columns of their kinds.

package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/search/columns"
	"understudy/internal/search/lang"
	"understudy/spec"
)

// narrow makes the store queries of a search near a point ask for the records that the columns find there. It returns the plan
// unchanged if the query has no such condition, if the columns do not have every record yet, or if there are too many records. It also
// does so under a row rule, because the amount of work must not reveal hidden records.
func (s *Searcher) narrow(ctx context.Context, q *lang.BoundQuery, plan []lang.StoreQuery) []lang.StoreQuery {
	area := q.Cond.Area()
	if area == nil || slices.ContainsFunc(q.Views, func(v *lang.KindView) bool { return v.Rule != nil }) {
		return plan
	}
	var narrowed []lang.StoreQuery
	for _, of := range plan {
		if len(of.Query.IDs) > 0 {
			return plan
		}
		for name, view := range of.Views {
			numbers, ok := findNear(ctx, s.tables, s.o.Limits.Sum, area, view)
			if !ok {
				return plan
			}
			if len(numbers) > 0 {
				one := lang.StoreQuery{Query: of.Query, Views: map[string]*lang.KindView{name: view}}
				one.Query.Kinds, one.Query.Numbers = []string{name}, numbers
				narrowed = append(narrowed, one)
			}
		}
	}
	return narrowed
}

// findNear returns the numbers of a kind's records in a circle, and of some a little outside. ok is false if the columns cannot tell. The
// first call starts to fill the columns in the background, and waits for them.
func findNear(ctx context.Context, tables *columns.Set, wait time.Duration, area *lang.Area, view *lang.KindView) (
	numbers []int64, ok bool) {
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	t := tables.Table(view.Source, view.Kind)
	if state, err := tables.Refresh(ctx, limited.Done(), t, true); err != nil || !state.Current || !state.Complete {
		return nil, false
	}
	t.Lock()
	defer t.Unlock()
	if !t.IsComplete() { // it was emptied meanwhile
		return nil, false
	}
	latitude, longitude := area.Fields(view)
	return t.FindNear(area.Circle.At, area.Circle.Meters, latitude, longitude, query.MaxNumbers)
}

// CompileNear compiles the value of a near: to an order of the list of a target. It returns ErrInvalid or
// ErrForbidden.
func (s *Searcher) CompileNear(ctx context.Context, c understudy.Caller, t *spec.Target, text string) (*query.Near, error) {
	if t.Kind == nil {
		return nil, fmt.Errorf("search: %w: this path has no list of records", understudy.ErrInvalid)
	}
	ask := query.SearchRequest{Text: lang.NearName + ":" + text, Source: t.Key.Source, Kinds: []string{t.Kind.Name}}
	q, err := s.read(c, &ask, s.o.Now())
	wrong, isSyntax := errors.AsType[*query.SyntaxError](err)
	switch {
	case isSyntax: // its position is one in the query
		return nil, fmt.Errorf("search: %w: %s", wrong.Kind, wrong.Why)
	case err != nil:
		return nil, err
	case q.Cond.Predicate == nil || q.Cond.Area() == nil:
		return nil, newInvalid("write only a latitude, a longitude and a distance, like 37.8,-122.4~25mi")
	}
	in, distance := q.Views[0], q.Cond.Distance()
	near := &query.Near{Distance: func(r *understudy.Record) (float64, bool) {
		var c lang.Candidate
		if !in.Read(&c, r) || !q.Cond.Match(&c) {
			return 0, false
		}
		return distance(&c)
	}}
	if in.Rule == nil {
		near.Numbers, _ = findNear(ctx, s.tables, s.o.Limits.Sum, q.Cond.Area(), in)
	}
	return near, nil
}
