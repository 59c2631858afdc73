// Where records stand in the database: kept by every save.

package store

import (
	"cmp"
	"context"
	"database/sql/driver"
	"slices"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store/postings"
	"understudy/internal/store/sqlite"
)

var (
	updatePlace      = &sqlite.Statement{Head: "UPDATE held SET place = ? WHERE number BETWEEN ? AND ?"}
	selectNamedPlace = &sqlite.Statement{Head: "SELECT n.record, (SELECT place FROM held WHERE number BETWEEN n.record * 64 " +
		"AND n.record * 64 + 63 AND place IS NOT NULL LIMIT 1) FROM names n WHERE n.kind = ? AND n.id = ?"}
)

// listPosition is where a record stands and whether a page has shown it there.
type listPosition struct {
	at    int64 // noPosition: nowhere yet
	shown bool
}

// standOf reads held.place.
func standOf(v driver.Value) listPosition {
	place, ok := v.(int64)
	if !ok {
		return listPosition{at: noPosition}
	}
	return listPosition{place >> 1, place&1 != 0}
}

// value is what held.place says.
func (s listPosition) value() driver.Value {
	if s.at == noPosition {
		return nil
	}
	if s.shown {
		return s.at<<1 | 1
	}
	return s.at << 1
}

// placing gives the records of a page their positions in the list.
type placing struct{ *saving }

// placeRows finds the place of every sight, of which each has its number.
func (s placing) placeRows(sights []observation) error {
	g := &orderAssigner{db: s.db, c: s.c, kind: s.kind.number}
	s.order = g
	order := s.db.scratch.standing[:0]
	for i := range sights { // a record that stands twice counts as it stands last
		order = append(order, i)
	}
	s.db.scratch.standing = order
	slices.SortFunc(order, func(a, b int) int { return sights[a].last - sights[b].last })
	rows := make([]orderAssignment, len(order))
	all := make([]*orderAssignment, len(order))
	var first, last int64 = 1, 0 // the seconds of those without a place
	unplaced := 0
	for i, n := range order {
		k := &sights[n]
		r := &s.rows[k.last]
		rows[i] = orderAssignment{at: k.position.at, shown: k.position.shown, second: noSecond}
		if all[i] = &rows[i]; k.position.at != noPosition {
			rows[i].second = postings.Second(k.position.at)
			continue
		}
		rows[i].second = naturalSecond(s.kind.spec, r.Clock, s.p.Body[r.Start:r.End])
		if second := rows[i].second; second != noSecond {
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
		if err := g.read(least, most); err != nil {
			return err
		}
	}
	if !s.p.List || s.p.Asked().Zero() {
		return s.placeAlone(g, sights, all)
	}
	page, err := s.placedPage(g, all)
	if err == nil {
		err = page.place()
	}
	for i, n := range order {
		sights[n].to = listPosition{rows[i].at, true}
	}
	return err
}

// placeAlone places those of the rows that stand nowhere yet, by their clocks:
// no page has shown them.
func (s placing) placeAlone(g *orderAssigner, sights []observation, rows []*orderAssignment) error {
	page := &placedPage{orderStore: g}
	for _, p := range rows {
		if p.at == noPosition {
			page.rows = append(page.rows, p)
		}
	}
	slices.SortStableFunc(page.rows, func(a, b *orderAssignment) int { return cmp.Compare(b.second, a.second) })
	if err := page.place(); err != nil {
		return err
	}
	for i, n := range s.db.scratch.standing {
		if sights[n].to = sights[n].position; sights[n].position.at == noPosition {
			sights[n].to = listPosition{at: rows[i].at}
		}
	}
	return nil
}

// placedPage is the page with what it follows.
func (s placing) placedPage(g *orderAssigner, rows []*orderAssignment) (*placedPage, error) {
	page := &placedPage{orderStore: g, rows: rows}
	f := followed(s.db.o.Specs[s.p.Key.Source], s.p.Asked())
	page.after = f.after
	if f.id != "" {
		p, err := s.placingOf(f.id)
		switch {
		case err != nil:
			return nil, err
		case p == nil:
		case f.up:
			page.bottom = p
		default:
			page.top = p
		}
	}
	if !s.p.Next.Zero() {
		page.next = s.nextRow
	}
	return page, nil
}

// placingOf is where a record stands that is not in the page, nil when it does
// not stand.
func (s placing) placingOf(id string) (*orderAssignment, error) {
	stored := sqlite.AppendID(nil, s.kind.prefix, id)
	if _, here := s.db.scratch.byID[string(stored)]; here {
		return nil, nil
	}
	at := listPosition{at: noPosition}
	_, err := s.c.One(selectNamedPlace, []driver.Value{s.kind.number, stored}, func(r []driver.Value) { at = standOf(r[1]) })
	if err != nil || at.at == noPosition {
		return nil, err
	}
	return &orderAssignment{at: at.at, shown: at.shown, second: postings.Second(at.at)}, nil
}

// nextRow is where the first row of the next page stands, if that is held.
func (s placing) nextRow() (*orderAssignment, error) {
	row, sk, err := pageLoader{s.db}.findPage(s.c, s.counters.source, s.p.Next)
	if err != nil || !row.list || row.kind != s.kind.number || len(sk.Versions) == 0 {
		return nil, skipNotFound(err)
	}
	e, err := s.db.blocks(s.c).entry(sk.Versions[0])
	if err != nil {
		return nil, skipDamaged(err)
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
	k := db.kind(source, kind)
	if k == nil {
		return 0, sqlite.Failed(false, understudy.ErrNotFound, "place of %s %s %s", source, kind, id)
	}
	at := listPosition{at: noPosition}
	err = db.pool.Read(ctx, func(c *sqlite.Conn) error {
		_, err := c.One(selectNamedPlace, []driver.Value{k.number, sqlite.AppendID(nil, k.prefix, id)},
			func(r []driver.Value) { at = standOf(r[1]) })
		return err
	})
	if err == nil && at.at == noPosition {
		err = understudy.ErrNotFound
	}
	if err != nil {
		return 0, sqlite.Failed(false, err, "place of %s %s %s", source, kind, id)
	}
	return placeOf(at.at, k.number), nil
}

// stood is where a record stands in the rows now: where it stood, unless it had
// to make room.
func (g *orderAssigner) stood(record, before int64) int64 {
	if at, ok := g.stands[record]; ok {
		return at
	}
	return before
}

// putPlaces writes where the records of the page stand, once they are held.
func (s placing) putPlaces(sights []observation) error {
	var fresh []driver.Value
	type move struct {
		g    *observation
		sign int64
	}
	var moves []move
	for _, n := range s.db.scratch.standing {
		g := &sights[n]
		was := s.order.stood(g.number, g.position.at)
		if was == noPosition {
			if !g.fresh {
				s.db.changeSilently()
			}
			sign, err := s.firstPlace(g)
			if err != nil {
				return err
			}
			fresh = append(fresh, sign, g.to.at, g.number)
			continue
		}
		if g.to != g.position || was != g.to.at {
			if err := s.c.Exec(updatePlace, 0, g.to.value(), g.number*slots, g.number*slots+slots-1); err != nil {
				return err
			}
		}
		// It is where it is not any more, or among those that are gone.
		comes := !g.late && !(g.held && g.state&(stateGone|stateForgotten) == 0)
		if was == g.to.at && was == g.position.at && !comes {
			continue
		}
		sign, err := s.takePlace(g.number, was)
		if err != nil {
			return err
		}
		if !g.late {
			if sign != s.kind.number {
				s.db.changeSilently() // it was forgotten: that it is back is no change
			}
			sign = s.kind.number
		}
		moves = append(moves, move{g, sign})
	}
	for _, m := range moves {
		fresh = append(fresh, m.sign, m.g.to.at, m.g.number)
		if was := m.g.position.at; was != m.g.to.at {
			if err := s.editOthers(m.g.number, was, m.g.to.at); err != nil {
				return err
			}
		}
	}
	if err := s.c.ExecMany(insertPlace, 3, fresh); err != nil {
		return err
	}
	return s.editShifted(sights)
}

// firstPlace writes the place of a record that stood nowhere into its rows, and
// says under which kind that is. One that was seen before stands nowhere when
// what it was then cannot be read.
func (s placing) firstPlace(g *observation) (sign int64, err error) {
	if g.fresh {
		return s.kind.number, nil
	}
	first, last := g.number*slots, g.number*slots+slots-1
	if err := s.c.Exec(updatePlace, 0, g.to.value(), first, last); err != nil {
		return 0, err
	}
	return signOf(s.c, s.kind.number, g.number)
}
