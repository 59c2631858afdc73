// This file keeps the positions of records in the list of their kind. Every save updates them.

package store

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"slices"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store/catalog"
	"understudy/internal/store/db"
	"understudy/internal/store/order"
	"understudy/internal/store/postings"
	"understudy/internal/store/records"
)

var updatePlace = &db.Statement{Head: "UPDATE held SET place = ? WHERE number BETWEEN ? AND ?"}

// placing assigns the records of a page their positions in the list.
type placing struct {
	save  *saving
	db    *DB
	c     db.Conn
	page  *understudy.Page
	kind  *catalog.Kind
	order *order.Assigner
}

// placeRows finds the position of every observation. Each observation already has its record number.
func (s *placing) placeRows(sights []observation) error {
	standing := s.db.scratch.pageOrder[:0]
	for i := range sights { // the last row of a record decides its position
		standing = append(standing, i)
	}
	s.db.scratch.pageOrder = standing
	slices.SortFunc(standing, func(a, b int) int { return sights[a].lastRow - sights[b].lastRow })
	rows := make([]order.Assignment, len(standing))
	all := make([]*order.Assignment, len(standing))
	var first, last int64 = 1, 0 // the first and the last second of the clocks of records without a position
	unplaced := 0
	for i, n := range standing {
		k := &sights[n]
		r := &s.save.content.rows[k.lastRow]
		rows[i] = order.Assignment{At: k.stored.position.At, Shown: k.stored.position.Shown, Second: order.NoSecond}
		if all[i] = &rows[i]; k.stored.position.At != order.Nowhere {
			rows[i].Second = postings.PositionSecond(k.stored.position.At)
			continue
		}
		rows[i].Second = order.NaturalSecond(s.kind.Spec, r.Clock, s.page.Body[r.Start:r.End])
		if second := rows[i].Second; second != order.NoSecond {
			if unplaced == 0 {
				first, last = second, second
			}
			first, last = min(first, second), max(last, second)
			unplaced++
		}
	}
	if unplaced > 1 && first <= last {
		least, _ := postings.SecondBounds(first)
		_, most := postings.SecondBounds(last)
		if err := s.order.Read(least, most); err != nil {
			return err
		}
	}
	if !s.page.List || s.page.RequestKey().IsZero() || s.hasOtherOrder() {
		return s.placeByClock(sights, all)
	}
	page, err := s.buildPage(all)
	if err == nil {
		err = page.Place()
	}
	for i, n := range standing {
		sights[n].newPosition = order.Position{At: rows[i].At, Shown: true}
	}
	return err
}

// hasOtherOrder reports whether the page's list does not show the newest records first. Positions can't be learned
// from such a page.
func (s *placing) hasOtherOrder() bool {
	sp := s.db.o.Specs[s.page.Key.Source]
	if sp == nil || s.kind.Spec == nil || !s.kind.Spec.HasOtherOrders() {
		return false
	}
	t, err := sp.ResolveKey(s.page.RequestKey())
	return err == nil && t.List != nil && !t.IsNewestFirst()
}

// placeByClock gives positions to the rows that have none yet. It computes them from the clocks of the records,
// because no list page has shown the records.
func (s *placing) placeByClock(sights []observation, rows []*order.Assignment) error {
	page := &order.Page{Store: s.order}
	for _, p := range rows {
		if p.At == order.Nowhere {
			page.Rows = append(page.Rows, p)
		}
	}
	slices.SortStableFunc(page.Rows, func(a, b *order.Assignment) int { return cmp.Compare(b.Second, a.Second) })
	if err := page.Place(); err != nil {
		return err
	}
	for i, n := range s.db.scratch.pageOrder {
		if sights[n].newPosition = sights[n].stored.position; sights[n].stored.position.At == order.Nowhere {
			sights[n].newPosition = order.Position{At: rows[i].At}
		}
	}
	return nil
}

// buildPage returns the rows of the page together with the records known to be directly above or below them.
func (s *placing) buildPage(rows []*order.Assignment) (*order.Page, error) {
	page := &order.Page{Store: s.order, Rows: rows}
	f := order.ReadFollows(s.db.o.Specs[s.page.Key.Source], s.page.RequestKey())
	page.AfterUnknown = f.After
	if f.ID != "" {
		p, err := s.findPlace(f.ID)
		switch {
		case err != nil:
			return nil, err
		case p == nil:
		case f.Up:
			page.Bottom = p
		default:
			page.Top = p
		}
	}
	if !s.page.Next.IsZero() {
		page.Next = s.findNextRow
	}
	return page, nil
}

// findPlace returns the place of a record that is not in the page, or nil if it has none.
func (s *placing) findPlace(id string) (*order.Assignment, error) {
	stored := db.AppendID(nil, s.kind.Prefix(), id)
	if _, here := s.db.scratch.byID[string(stored)]; here {
		return nil, nil
	}
	at, err := order.FindPosition(s.c, s.kind.Number, stored)
	if err != nil || at.At == order.Nowhere {
		return nil, err
	}
	return &order.Assignment{At: at.At, Shown: at.Shown, Second: postings.PositionSecond(at.At)}, nil
}

// findNextRow returns the place of the first row of the next page, or nil if that page is not stored.
func (s *placing) findNextRow() (*order.Assignment, error) {
	row, sk, err := s.db.pages.Find(s.c, s.save.counters.source, s.page.Next)
	if err != nil || !row.List || row.Kind.Number != s.kind.Number || len(sk.Versions) == 0 {
		if errors.Is(err, understudy.ErrNotFound) {
			return nil, nil
		}
		return nil, records.SkipDamaged(err)
	}
	e, err := s.db.opener.Open(s.c).ReadEntry(sk.Versions[0])
	if err != nil {
		return nil, records.SkipDamaged(err)
	}
	return s.findPlace(e.ID)
}

// FindPlace returns the position of a record, also of a deleted or erased record. It returns ErrNotFound for a
// record that was never seen.
func (d *DB) FindPlace(ctx context.Context, source, kind, id string) (query.OrderKey, error) {
	var key query.OrderKey
	err := d.pool.Read(ctx, func(c db.Conn) error {
		k := d.catalog.Kind(source, kind)
		if k == nil {
			return understudy.ErrNotFound
		}
		at, err := order.FindPosition(c, k.Number, db.AppendID(nil, k.Prefix(), id))
		if err == nil && at.At == order.Nowhere {
			err = understudy.ErrNotFound
		}
		if err == nil {
			key = order.KeyOf(at.At, k.Number)
		}
		return err
	})
	return key, db.WrapError(false, err, "place of %s %s %s", source, kind, id)
}

// putPlaces writes the positions of the page's records. Their held rows are already written.
func (s *placing) putPlaces(sights []observation) error {
	var fresh []driver.Value
	type move struct {
		g    *observation
		sign int64
	}
	var moves []move
	for _, n := range s.db.scratch.pageOrder {
		g := &sights[n]
		was := s.order.CurrentPosition(g.stored.number, g.stored.position.At)
		if was == order.Nowhere {
			if !g.isNew {
				s.db.counts.changeSilently()
			}
			sign, err := s.writeFirstPlace(g)
			if err != nil {
				return err
			}
			if fresh == nil {
				fresh = make([]driver.Value, 0, 3*len(sights))
			}
			fresh = append(fresh, sign, g.newPosition.At, g.stored.number)
			continue
		}
		if g.newPosition != g.stored.position || was != g.newPosition.At {
			if err := s.writePlace(g); err != nil {
				return err
			}
		}
		// comes: the record was not present in this shape, so its place may be among those of deleted records
		comes := !g.late && !(g.stored.hasRow && g.stored.state&(records.Gone|records.Forgotten) == 0)
		if was == g.newPosition.At && was == g.stored.position.At && !comes {
			continue
		}
		sign, err := s.removePlace(g.stored.number, was)
		if err != nil {
			return err
		}
		if !g.late {
			if sign != s.kind.Number {
				s.db.counts.changeSilently() // the return of a forgotten record adds no change, so only this counter reports it
			}
			sign = s.kind.Number
		}
		moves = append(moves, move{g, sign})
	}
	for _, m := range moves {
		fresh = append(fresh, m.sign, m.g.newPosition.At, m.g.stored.number)
		if was := m.g.stored.position.At; was != m.g.newPosition.At {
			if err := s.addOtherEdits(m.g.stored.number, was, m.g.newPosition.At); err != nil {
				return err
			}
		}
	}
	if err := db.ExecuteMany(s.c, order.InsertPlace, 3, fresh); err != nil {
		return err
	}
	return s.addShiftEdits(sights)
}

func (s *placing) writePlace(g *observation) error {
	return s.c.Execute(updatePlace, 0, append([]driver.Value{g.newPosition.Value()}, rowsOf(g.stored.number)...)...)
}

// writeFirstPlace writes the position of a record that had no place into its held rows. It returns the kind
// number for the place. A record seen before has no place if its stored version cannot be read.
func (s *placing) writeFirstPlace(g *observation) (sign int64, err error) {
	if g.isNew {
		return s.kind.Number, nil
	}
	if err := s.writePlace(g); err != nil {
		return 0, err
	}
	present := int64(0)
	_, err = db.QueryRow(s.c, countPresent, rowsOf(g.stored.number), func(r []driver.Value) { present = r[0].(int64) })
	if present == 0 {
		return -s.kind.Number, err // it is present in no shape
	}
	return s.kind.Number, err
}
