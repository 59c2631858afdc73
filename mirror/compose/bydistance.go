// By distance: a list is composed in the order of the distances of its records from a point.

package compose

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"understudy"
	"understudy/internal/query"
)

// byDistance is a store that returns the records of a list in the order of their distances. It keeps what it has read.
type byDistance struct {
	store Store
	list  *List
	near  *query.Near
	read  bool
	found []nearHit
}

type nearHit struct {
	hit    query.Hit
	meters float64
}

// FindPlace implements Store.
func (n *byDistance) FindPlace(ctx context.Context, source, kind, id string) (query.OrderKey, error) {
	return n.store.FindPlace(ctx, source, kind, id)
}

// Seek implements Store. With OldestFirst it begins with the farthest record. It returns ErrInvalid if the list has become too long, or if
// the record below which it should begin is not in it any more.
func (n *byDistance) Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error {
	if err := n.readAll(ctx, q); err != nil {
		return err
	}
	found := n.found
	if q.OldestFirst {
		found = slices.Clone(found)
		slices.Reverse(found)
	}
	if q.Below != 0 {
		i := slices.IndexFunc(found, func(f nearHit) bool { return f.hit.Order == q.Below })
		if i < 0 {
			return fmt.Errorf("%w: the record at which this page begins is not in the list any more; begin with the first page",
				understudy.ErrInvalid)
		}
		found = found[i+1:]
	}
	for _, f := range found {
		if !yield(f.hit) {
			return nil
		}
	}
	return nil
}

// readAll reads and sorts the records of the whole list. Among equal distances the newest record comes first.
func (n *byDistance) readAll(ctx context.Context, q query.RecordQuery) error {
	if n.read {
		return nil
	}
	q.Below, q.OldestFirst, q.Limit, q.ExpectedRows = 0, false, 0, len(q.Numbers)
	bytes := int64(0)
	err := n.store.Seek(ctx, q, func(f query.Hit) bool {
		if !n.list.matchRecord(f) {
			return true
		}
		if meters, ok := n.near.Distance(f.Record); ok {
			n.found = append(n.found, nearHit{f, meters})
			bytes += int64(len(f.Record.Body))
		}
		return len(n.found) <= query.MaxNumbers && bytes <= MaxBytes
	})
	if err != nil {
		return err
	}
	if len(n.found) > query.MaxNumbers || bytes > MaxBytes {
		return fmt.Errorf("%w: too many records are that near; write a shorter distance", understudy.ErrInvalid)
	}
	slices.SortStableFunc(n.found, func(a, b nearHit) int { return cmp.Compare(a.meters, b.meters) })
	n.read = true
	return nil
}
