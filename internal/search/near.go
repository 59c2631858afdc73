// This file finds the records near a point by the columns of their kinds.

package search

import (
	"context"
	"slices"

	"understudy/internal/query"
	"understudy/internal/search/lang"
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
			numbers, ok := s.findNear(ctx, area, view)
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
// first call starts to fill the columns in the background, and waits as long as a sum does.
func (s *Searcher) findNear(ctx context.Context, area *lang.Area, view *lang.KindView) (numbers []int64, ok bool) {
	limited, cancel := context.WithTimeout(ctx, s.o.Limits.Sum)
	defer cancel()
	t := s.tables.Table(view.Source, view.Kind)
	if state, err := s.tables.Refresh(ctx, limited.Done(), t, true); err != nil || !state.Current || !state.Complete {
		return nil, false
	}
	t.Lock()
	defer t.Unlock()
	if !t.IsComplete() { // it was emptied meanwhile
		return nil, false
	}
	return area.Find(view, t, query.MaxNumbers)
}
