// Where records stand in the database: kept by every save.

package store

import (
	"cmp"
	"context"
	"database/sql/driver"
	"slices"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store/catalog"
	"understudy/internal/store/order"
	"understudy/internal/store/postings"
	"understudy/internal/store/records"
	"understudy/internal/store/sqlite"
)

var updatePlace = &sqlite.Statement{Head: "UPDATE held SET place = ? WHERE number BETWEEN ? AND ?"}

// placing gives the records of a page their positions in the list.
type placing struct {
	save  *saving
	db    *DB
	c     *sqlite.Conn
	page  *understudy.Page
	kind  *catalog.Kind
	order *order.Assigner
}

// placeRows finds the place of every observation, of which each has its number.
func (s *placing) placeRows(sights []observation) error {
	standing := s.db.scratch.standing[:0]
	for i := range sights { // a record that stands twice counts as it stands last
		standing = append(standing, i)
	}
	s.db.scratch.standing = standing
	slices.SortFunc(standing, func(a, b int) int { return sights[a].last - sights[b].last })
	rows := make([]order.Assignment, len(standing))
	all := make([]*order.Assignment, len(standing))
	var first, last int64 = 1, 0 // the seconds of those without a place
	unplaced := 0
	for i, n := range standing {
		k := &sights[n]
		r := &s.save.content.rows[k.last]
		rows[i] = order.Assignment{At: k.was.position.At, Shown: k.was.position.Shown, Second: order.NoSecond}
		if all[i] = &rows[i]; k.was.position.At != order.Nowhere {
			rows[i].Second = postings.Second(k.was.position.At)
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
	if !s.page.List || s.page.Asked().Zero() || s.otherOrder() {
		return s.placeAlone(sights, all)
	}
	page, err := s.placedPage(all)
	if err == nil {
		err = page.Place()
	}
	for i, n := range standing {
		sights[n].to = order.Position{At: rows[i].At, Shown: true}
	}
	return err
}

// otherOrder reports whether the page's list does not show the newest records first, so that
// it does not tell where they stand.
func (s *placing) otherOrder() bool {
	sp := s.db.o.Specs[s.page.Key.Source]
	if sp == nil || s.kind.Spec == nil || !s.kind.Spec.Orders() {
		return false
	}
	t, err := sp.TargetOf(s.page.Asked())
	return err == nil && t.List != nil && !t.NewestFirst()
}

// placeAlone places those of the rows that stand nowhere yet, by their clocks:
// no page has shown them.
func (s *placing) placeAlone(sights []observation, rows []*order.Assignment) error {
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
	for i, n := range s.db.scratch.standing {
		if sights[n].to = sights[n].was.position; sights[n].was.position.At == order.Nowhere {
			sights[n].to = order.Position{At: rows[i].At}
		}
	}
	return nil
}

// placedPage is the page with what it follows.
func (s *placing) placedPage(rows []*order.Assignment) (*order.Page, error) {
	page := &order.Page{Store: s.order, Rows: rows}
	f := order.FollowedBy(s.db.o.Specs[s.page.Key.Source], s.page.Asked())
	page.After = f.After
	if f.ID != "" {
		p, err := s.placingOf(f.ID)
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
	if !s.page.Next.Zero() {
		page.Next = s.nextRow
	}
	return page, nil
}

// placingOf is where a record stands that is not in the page, nil when it does
// not stand.
func (s *placing) placingOf(id string) (*order.Assignment, error) {
	stored := sqlite.AppendID(nil, s.kind.Prefix, id)
	if _, here := s.db.scratch.byID[string(stored)]; here {
		return nil, nil
	}
	at, err := order.PositionOf(s.c, s.kind.Number, stored)
	if err != nil || at.At == order.Nowhere {
		return nil, err
	}
	return &order.Assignment{At: at.At, Shown: at.Shown, Second: postings.Second(at.At)}, nil
}

// nextRow is where the first row of the next page stands, if that is held.
func (s *placing) nextRow() (*order.Assignment, error) {
	row, sk, err := s.db.pages.Find(s.c, s.save.counters.source, s.page.Next)
	if err != nil || !row.List || row.Kind.Number != s.kind.Number || len(sk.Versions) == 0 {
		return nil, skipNotFound(err)
	}
	e, err := s.db.opener.Open(s.c).Entry(sk.Versions[0])
	if err != nil {
		return nil, records.SkipDamaged(err)
	}
	return s.placingOf(e.ID)
}

// PlaceOf is where a record stands, also when it is gone, or erased. Errors:
// ErrNotFound, it was never seen.
func (db *DB) PlaceOf(ctx context.Context, source, kind, id string) (query.OrderKey, error) {
	leave, err := db.pool.Begin()
	if err != nil {
		return 0, err
	}
	defer leave()
	k := db.catalog.Kind(source, kind)
	if k == nil {
		return 0, sqlite.Failed(false, understudy.ErrNotFound, "place of %s %s %s", source, kind, id)
	}
	var at order.Position
	err = db.pool.Read(ctx, func(c *sqlite.Conn) (err error) {
		at, err = order.PositionOf(c, k.Number, sqlite.AppendID(nil, k.Prefix, id))
		return err
	})
	if err == nil && at.At == order.Nowhere {
		err = understudy.ErrNotFound
	}
	if err != nil {
		return 0, sqlite.Failed(false, err, "place of %s %s %s", source, kind, id)
	}
	return order.KeyOf(at.At, k.Number), nil
}

// putPlaces writes where the records of the page stand, once they are held.
func (s *placing) putPlaces(sights []observation) error {
	var fresh []driver.Value
	type move struct {
		g    *observation
		sign int64
	}
	var moves []move
	for _, n := range s.db.scratch.standing {
		g := &sights[n]
		was := s.order.Stood(g.was.number, g.was.position.At)
		if was == order.Nowhere {
			if !g.fresh {
				s.db.counts.changeSilently()
			}
			sign, err := s.firstPlace(g)
			if err != nil {
				return err
			}
			if fresh == nil {
				fresh = make([]driver.Value, 0, 3*len(sights))
			}
			fresh = append(fresh, sign, g.to.At, g.was.number)
			continue
		}
		if g.to != g.was.position || was != g.to.At {
			if err := s.writePlace(g); err != nil {
				return err
			}
		}
		// It is where it is not any more, or among those that are gone.
		comes := !g.late && !(g.was.held && g.was.state&(records.Gone|records.Forgotten) == 0)
		if was == g.to.At && was == g.was.position.At && !comes {
			continue
		}
		sign, err := s.takePlace(g.was.number, was)
		if err != nil {
			return err
		}
		if !g.late {
			if sign != s.kind.Number {
				s.db.counts.changeSilently() // it was forgotten: that it is back is no change
			}
			sign = s.kind.Number
		}
		moves = append(moves, move{g, sign})
	}
	for _, m := range moves {
		fresh = append(fresh, m.sign, m.g.to.At, m.g.was.number)
		if was := m.g.was.position.At; was != m.g.to.At {
			if err := s.editOthers(m.g.was.number, was, m.g.to.At); err != nil {
				return err
			}
		}
	}
	if err := s.c.ExecMany(order.InsertPlace, 3, fresh); err != nil {
		return err
	}
	return s.editShifted(sights)
}

// writePlace writes where a record is to stand into its rows.
func (s *placing) writePlace(g *observation) error {
	return s.c.Exec(updatePlace, 0, append([]driver.Value{g.to.Value()}, rowsOf(g.was.number)...)...)
}

// firstPlace writes the place of a record that stood nowhere into its rows, and
// says under which kind that is. One that was seen before stands nowhere when
// what it was then cannot be read.
func (s *placing) firstPlace(g *observation) (sign int64, err error) {
	if g.fresh {
		return s.kind.Number, nil
	}
	if err := s.writePlace(g); err != nil {
		return 0, err
	}
	return signOf(s.c, s.kind.Number, g.was.number)
}
