// This file reads the records at the postings of a plan's iterator.

package seek

import (
	"context"
	"database/sql/driver"
	"slices"

	"understudy/internal/store/catalog"
	"understudy/internal/store/db"
	"understudy/internal/store/order"
	"understudy/internal/store/postings"
	"understudy/internal/store/records"
)

// unknownEpoch marks an epoch as unknown. It differs from every epoch.
const unknownEpoch = -1

// walkRecords calls do with the stored records of the plan's iterator, a few at a time and in order. It ends when do
// returns false or it has visited maxVisitedPlaces places. want returns how many records do can take.
func (s *recordSearch) walkRecords(ctx context.Context, c db.Conn, want func() int,
	do func(some []*heldAt) (more bool, err error)) error {
	stream, err := s.p.openStream(c)
	if err != nil {
		return err
	}
	w := &walking{search: s, stream: stream, from: s.p.first(s.below)}
	for looked := 0; looked < maxVisitedPlaces; {
		places, err := w.readNext(ctx, min(want(), placesPerStatement))
		if err != nil {
			return err
		}
		if len(places) == 0 {
			s.ended = w.ended
			return nil
		}
		looked += len(places)
		some, err := s.readHeld(c, places)
		if err != nil {
			return err
		}
		if s.below = places[len(places)-1].place; len(some) == 0 {
			continue
		}
		s.last = *some[len(some)-1]
		if more, err := do(some); err != nil || !more {
			return err
		}
	}
	return nil
}

// walking visits the positions at which an iterator has postings.
type walking struct {
	search *recordSearch
	stream postings.Iterator
	from   int64     // the posting at which the next read begins
	found  []*heldAt // places that were found and are not returned yet
	ended  bool      // the iterator has no more postings
}

// readNext returns at most n of the next places. It returns none at the end. It also returns none after passing many
// postings of other kinds; then the next read transaction continues.
func (w *walking) readNext(ctx context.Context, n int) ([]*heldAt, error) {
	for passed := 0; len(w.found) < n && !w.ended; passed++ {
		if err := db.CheckContext(ctx); err != nil {
			return nil, err
		}
		at, err := w.readPosition()
		if err != nil {
			return nil, err
		}
		if passed < maxVisitedPlaces || w.ended {
			continue
		}
		if len(w.found) == 0 {
			w.search.below = order.KeyOf(at, 1)
			if w.search.q.OldestFirst {
				w.search.below = order.KeyOf(at, 1<<postings.ShapeBits-1)
			}
		}
		break
	}
	n = min(n, len(w.found))
	places := w.found[:n:n]
	w.found = w.found[n:]
	return places, nil
}

// readPosition finds the next position that has a posting of a kind of the query, and adds the places of all these
// kinds there.
func (w *walking) readPosition() (at int64, err error) {
	p := w.search.p
	up := p.q.OldestFirst
	spot, ok, err := w.stream.Advance(w.from)
	at = postings.Position(spot)
	if err != nil || !ok || at < p.from || at > p.to {
		w.ended = true
		return at, err
	}
	group, next := []*kindPlan(nil), spot
	for ok && postings.Position(next) == at {
		if k := p.byShape[postings.Shape(next)]; k != nil && !slices.Contains(group, k) {
			group = append(group, k)
		}
		if w.from, ok = postings.Next(next, up); ok {
			next, ok, err = w.stream.Advance(w.from)
		}
		if err != nil {
			return at, err
		}
	}
	w.ended = !ok
	slices.SortFunc(group, func(a, b *kindPlan) int { return postings.Compare(up)(a.kind.Number, b.kind.Number) })
	for _, k := range group {
		place := order.KeyOf(at, k.kind.Number)
		if w.search.below != 0 && (place < w.search.below) == up || place == w.search.below {
			continue
		}
		w.found = append(w.found, &heldAt{plan: k, place: place})
	}
	return at, nil
}

// readHeld returns the stored records at some places, each in its preferred shape. It skips empty places.
func (s *recordSearch) readHeld(c db.Conn, places []*heldAt) (some []*heldAt, err error) {
	for _, k := range s.p.kinds {
		args := []driver.Value{k.kind.Number, int64(records.Slots)}
		for _, h := range places {
			if h.plan == k {
				args = append(args, int64(h.place)>>postings.ShapeBits)
			}
		}
		if len(args) == 2 {
			continue
		}
		err := c.Query(selectShown, len(args)-2, args, func(r []driver.Value) error {
			place := order.KeyOf(r[0].(int64), k.kind.Number)
			h := places[slices.IndexFunc(places, func(h *heldAt) bool { return h.place == place })]
			slot := r[1].(int64) % records.Slots
			if h.record = r[1].(int64) / records.Slots; s.p.since != nil && !s.p.since.has(h.record) {
				return nil
			}
			i := slices.IndexFunc(k.shapes, func(s *catalog.Shape) bool { return s.Slot == slot })
			if i >= 0 && (h.shape == nil || i < slices.Index(k.shapes, h.shape)) {
				h.shape, h.version, h.seen, h.state, h.since = k.shapes[i], r[2].(int64), r[3].(int64), r[4].(int64), r[5].(int64)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for _, h := range places {
		if h.shape != nil {
			some = append(some, h)
		}
	}
	return some, nil
}
