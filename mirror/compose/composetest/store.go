// Store: the records of a world, handed out as a store would.

package composetest

import (
	"context"
	"slices"

	"understudy"
	"understudy/internal/query"
	"understudy/spec"
)

// spread is how far places lie apart.
const spread = 1 << 10

func (h *held) place(i int) query.OrderKey {
	return query.OrderKey(spread * (len(h.order) - i))
}

// FindPlace is the place of a record that was ever seen.
func (w *World) FindPlace(_ context.Context, _, kind, id string) (query.OrderKey, error) {
	h := w.kinds[kind]
	if i := slices.Index(h.order, id); i >= 0 {
		return h.place(i), nil
	}
	return 0, understudy.ErrNotFound
}

// Held is a record that is present, in any shape.
func (w *World) Held(kind, id string) *understudy.Record {
	for _, rec := range w.kinds[kind].now[id] {
		return rec
	}
	return nil
}

// Own is a record as lists of another shape showed it.
func (w *World) Own(rec *understudy.Record, shape string) *understudy.Record {
	return w.kinds[rec.Kind].now[rec.ID][shape]
}

// Present are the ids of a kind's records that are present, the newest first.
func (w *World) Present(kind string) []string {
	h := w.kinds[kind]
	return slices.DeleteFunc(slices.Clone(h.order), func(id string) bool { return h.now[id] == nil })
}

// Seek hands out the records of one kind in one shape that are asked for, and no
// others.
func (w *World) Seek(_ context.Context, q query.RecordQuery, yield func(query.Hit) bool) error {
	h, given := w.kinds[q.Kinds[0]], 0
	for n := range h.order {
		i := n
		if q.OldestFirst {
			i = len(h.order) - 1 - n
		}
		p, rec := h.place(i), h.now[h.order[i]][q.Shape]
		if rec == nil || q.Below != 0 && (!q.OldestFirst && p >= q.Below || q.OldestFirst && p <= q.Below) || !h.fits(rec, q) {
			continue
		}
		if given++; !yield(query.Hit{Record: rec, Order: p}) || given == q.Limit {
			break
		}
	}
	return nil
}

// fits reports whether a record is one that is asked for.
func (h *held) fits(rec *understudy.Record, q query.RecordQuery) bool {
	if q.Parent != "" && Text(rec.Body, h.kind.Parent) != q.Parent {
		return false
	}
	return !slices.ContainsFunc(q.Predicates, func(t query.Predicate) bool {
		text := Text(rec.Body, t.Field)
		if len(t.Any) > 0 {
			return !slices.Contains(t.Any, text)
		}
		at := spec.Unix(h.kind.Field(t.Field).Type, []byte(text))
		return at == 0 || t.From != 0 && at < t.From || t.To != 0 && at >= t.To
	})
}

// Loose is the same store for one that gives more than is asked for: no term is
// looked at, and no limit.
func (w *World) Loose() Loose { return Loose{w} }

// Loose is a store that gives more.
type Loose struct{ *World }

// Seek is as World.Seek without terms and limit.
func (l Loose) Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error {
	q.Predicates, q.Limit = nil, 0
	return l.World.Seek(ctx, q, yield)
}
