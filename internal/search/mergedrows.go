// This file merges the records of several store queries into one stream, ordered by place.

package search

import (
	"context"
	"iter"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/search/lang"
)

// foundRecord is a record that a store query yielded, with the view of its kind.
type foundRecord struct {
	record *understudy.Record
	order  query.OrderKey
	view   *lang.KindView
}

// stream yields each record of a plan once, beginning after the place below. The newest record comes first unless
// up is true.
func (s *Searcher) stream(ctx context.Context, plan []lang.StoreQuery, below query.OrderKey, up bool, yield func(foundRecord) bool) error {
	for i := range plan {
		plan[i].Query.Below, plan[i].Query.OldestFirst = below, up
	}
	if len(plan) == 1 {
		return s.o.Store.Seek(ctx, plan[0].Query, func(f query.Hit) bool {
			in := plan[0].Views[f.Record.Kind]
			return in == nil || yield(foundRecord{f.Record, f.Order, in})
		})
	}
	return s.merge(ctx, plan, up, yield)
}

// merge merges the records of several store queries. Its arguments are those of stream.
func (s *Searcher) merge(ctx context.Context, plan []lang.StoreQuery, up bool, yield func(foundRecord) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type branch struct {
		head foundRecord
		next func() (foundRecord, bool)
	}
	var failed error
	var open []*branch
	for _, q := range plan {
		next, stop := iter.Pull(func(yield func(foundRecord) bool) {
			err := s.o.Store.Seek(ctx, q.Query, func(f query.Hit) bool {
				in := q.Views[f.Record.Kind]
				return in == nil || yield(foundRecord{f.Record, f.Order, in})
			})
			if err != nil && failed == nil {
				failed = err
			}
		})
		defer stop()
		b := &branch{next: next}
		var ok bool
		if b.head, ok = next(); ok {
			open = append(open, b)
		}
	}
	last, begun := query.OrderKey(0), false
	for len(open) > 0 && failed == nil {
		first := 0
		for i, b := range open[1:] {
			if p := open[first].head.order; b.head.order > p != up && b.head.order != p {
				first = i + 1
			}
		}
		f := open[first].head
		var ok bool
		if open[first].head, ok = open[first].next(); !ok {
			open = append(open[:first], open[first+1:]...)
		}
		if begun && f.order == last {
			continue // another query has already yielded this record
		}
		last, begun = f.order, true
		if !yield(f) {
			return nil
		}
	}
	return failed
}
