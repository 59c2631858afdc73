// Where records stand in the database: kept by every save.

package store

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"slices"

	"understudy"
)

var (
	updatePlace      = &statement{head: "UPDATE held SET place = ? WHERE number BETWEEN ? AND ?"}
	selectNamedPlace = &statement{head: "SELECT n.record, (SELECT place FROM held WHERE number BETWEEN n.record * 64 AND n.record * 64 + 63 AND place IS NOT NULL LIMIT 1) FROM name n WHERE n.kind = ? AND n.id = ?"}
)

// stand is where a record stands and whether a page has shown it there.
type stand struct {
	at    int64 // noPosition: nowhere yet
	shown bool
}

// standOf reads held.place.
func standOf(v driver.Value) stand {
	place, ok := v.(int64)
	if !ok {
		return stand{at: noPosition}
	}
	return stand{place >> 1, place&1 != 0}
}

// value is what held.place says.
func (s stand) value() driver.Value {
	if s.at == noPosition {
		return nil
	}
	if s.shown {
		return s.at<<1 | 1
	}
	return s.at << 1
}

// placeRows finds the place of every sight, of which each has its number.
func (s *saving) placeRows(sights []sighting) error {
	g := &placer{db: s.db, c: s.c, kind: s.kind.number}
	s.placer = g
	order := s.db.scratch.standing[:0]
	for i := range sights { // a record that stands twice counts as it stands last
		order = append(order, i)
	}
	s.db.scratch.standing = order
	slices.SortFunc(order, func(a, b int) int { return sights[a].last - sights[b].last })
	rows := make([]placing, len(order))
	all := make([]*placing, len(order))
	var first, last int64 = 1, 0 // the seconds of those without a place
	unplaced := 0
	for i, n := range order {
		k := &sights[n]
		r := &s.rows[k.last]
		rows[i] = placing{at: k.stand.at, shown: k.stand.shown, second: noSecond}
		if all[i] = &rows[i]; k.stand.at != noPosition {
			rows[i].second = secondOf(k.stand.at)
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
		least, _ := secondBounds(first)
		_, most := secondBounds(last)
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
		sights[n].to = stand{rows[i].at, true}
	}
	return err
}

// placeAlone places those of the rows that stand nowhere yet, by their clocks:
// no page has shown them.
func (s *saving) placeAlone(g *placer, sights []sighting, rows []*placing) error {
	page := &placedPage{ground: g}
	for _, p := range rows {
		if p.at == noPosition {
			page.rows = append(page.rows, p)
		}
	}
	slices.SortStableFunc(page.rows, func(a, b *placing) int { return cmp.Compare(b.second, a.second) })
	if err := page.place(); err != nil {
		return err
	}
	for i, n := range s.db.scratch.standing {
		if sights[n].to = sights[n].stand; sights[n].stand.at == noPosition {
			sights[n].to = stand{at: rows[i].at}
		}
	}
	return nil
}

// placedPage is the page with what it follows.
func (s *saving) placedPage(g *placer, rows []*placing) (*placedPage, error) {
	page := &placedPage{ground: g, rows: rows}
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
func (s *saving) placingOf(id string) (*placing, error) {
	stored := appendID(nil, s.kind.prefix, id)
	if _, here := s.db.scratch.byID[string(stored)]; here {
		return nil, nil
	}
	at := stand{at: noPosition}
	_, err := s.c.one(selectNamedPlace, []driver.Value{s.kind.number, stored}, func(r []driver.Value) { at = standOf(r[1]) })
	if err != nil || at.at == noPosition {
		return nil, err
	}
	return &placing{at: at.at, shown: at.shown, second: secondOf(at.at)}, nil
}

// nextRow is where the first row of the next page stands, if that is held.
func (s *saving) nextRow() (*placing, error) {
	row, sk, err := s.db.findPage(s.c, s.counters.source, s.p.Next)
	if err != nil || !row.list || row.kind != s.kind.number || len(sk.versions) == 0 {
		return nil, skipNotFound(err)
	}
	e, err := s.db.blocks(s.c).entry(sk.versions[0])
	if err != nil {
		return nil, skipDamaged(err)
	}
	return s.placingOf(e.id)
}

// PlaceOf is where a record stands, also when it is gone, or erased. Errors:
// ErrNotFound, it was never seen; ErrIndexing, it has none yet.
func (db *DB) PlaceOf(ctx context.Context, source, kind, id string) (understudy.Place, error) {
	leave, err := db.enter()
	if err != nil {
		return 0, err
	}
	defer leave()
	k := db.kind(source, kind)
	if k == nil {
		return 0, failed(false, understudy.ErrNotFound, "place of %s %s %s", source, kind, id)
	}
	at := stand{at: noPosition}
	err = db.read(ctx, func(c *conn) error {
		known, err := c.one(selectNamedPlace, []driver.Value{k.number, appendID(nil, k.prefix, id)}, func(r []driver.Value) { at = standOf(r[1]) })
		if u := db.built.places.Load(); err == nil && known && at.at == noPosition && u != builtAll {
			err = c.indexing(u)
		}
		return err
	})
	if err == nil && at.at == noPosition {
		err = understudy.ErrNotFound
	}
	if err != nil {
		return 0, failed(false, err, "place of %s %s %s", source, kind, id)
	}
	return placeOf(at.at, k.number), nil
}

// stood is where a record stands in the rows now: where it stood, unless it had
// to make room.
func (g *placer) stood(record, before int64) int64 {
	if at, ok := g.stands[record]; ok {
		return at
	}
	return before
}

// putPlaces writes where the records of the page stand, once they are held.
func (s *saving) putPlaces(sights []sighting) error {
	var fresh []driver.Value
	type move struct {
		g    *sighting
		sign int64
	}
	var moves []move
	for _, n := range s.db.scratch.standing {
		g := &sights[n]
		was := s.placer.stood(g.number, g.stand.at)
		if was == noPosition {
			sign, err := s.firstPlace(g)
			if err != nil {
				return err
			}
			fresh = append(fresh, sign, g.to.at, g.number)
			continue
		}
		if g.to != g.stand || was != g.to.at {
			if err := s.c.exec(updatePlace, 0, g.to.value(), g.number*slots, g.number*slots+slots-1); err != nil {
				return err
			}
		}
		// It is where it is not any more, or among those that are gone.
		comes := !g.late && !(g.held && g.state&(stateGone|stateForgotten) == 0)
		if was == g.to.at && was == g.stand.at && !comes {
			continue
		}
		sign, err := s.takePlace(g.number, was)
		if err != nil {
			return err
		}
		if !g.late {
			sign = s.kind.number
		}
		moves = append(moves, move{g, sign})
	}
	for _, m := range moves {
		fresh = append(fresh, m.sign, m.g.to.at, m.g.number)
		if was := m.g.stand.at; was != m.g.to.at {
			if err := s.editOthers(m.g.number, was, m.g.to.at); err != nil {
				return err
			}
		}
	}
	if err := s.c.many(insertPlace, 3, fresh); err != nil {
		return err
	}
	return s.editShifted(sights)
}

// firstPlace writes the place of a record that stood nowhere into its rows, and
// says under which kind that is. One that was seen before stands nowhere when
// what it was then cannot be read.
func (s *saving) firstPlace(g *sighting) (sign int64, err error) {
	if g.fresh {
		return s.kind.number, nil
	}
	first, last := g.number*slots, g.number*slots+slots-1
	if err := s.c.exec(updatePlace, 0, g.to.value(), first, last); err != nil {
		return 0, err
	}
	return s.c.signOf(s.kind.number, g.number)
}

var countPresent = &statement{head: "SELECT count(*) FROM held WHERE number BETWEEN ? AND ? AND state & 12 = 0"}

// signOf is the kind under which a record stands: negative when it is held in
// no shape.
func (c *conn) signOf(kind, record int64) (int64, error) {
	present := int64(0)
	_, err := c.one(countPresent, []driver.Value{record * slots, record*slots + slots - 1}, func(r []driver.Value) { present = r[0].(int64) })
	if present == 0 {
		return -kind, err
	}
	return kind, err
}

var takePlace = &statement{head: "DELETE FROM place WHERE kind = ? AND at = ? AND record = ? RETURNING kind"}

// takePlace takes a record from where it stands, and says under which kind that
// was.
func (s *saving) takePlace(record, at int64) (sign int64, err error) {
	for _, kind := range []int64{s.kind.number, -s.kind.number} {
		found, err := s.c.one(takePlace, []driver.Value{kind, at, record}, func([]driver.Value) {})
		if err != nil || found {
			return kind, err
		}
	}
	return 0, damaged("record %d does not stand at %d", record, at)
}

// edit tells the indexes what becomes of a sight whose row is r.
func (s *saving) edit(g *sighting, r *understudy.Row) error {
	present := g.held && g.state&(stateGone|stateForgotten) == 0
	if present && g.version == r.Version && g.stand.at == g.to.at {
		return nil
	}
	e := edit{kind: s.kind, shape: s.shape.number, was: spotOf(g.stand.at, s.shape.number), is: spotOf(g.to.at, s.shape.number)}
	e.new = &entry{record: g.number, id: r.ID, clock: r.Clock, final: r.Final, parent: r.Parent, body: s.p.Body[r.Start:r.End]}
	if present && g.stand.at != noPosition { // else no index knows it
		var err error
		if e.old, err = s.before(g.version); err != nil {
			return err
		}
		if e.old != nil {
			old := *e.old // its block may be written anew before it is looked at
			e.old = &old
		}
	}
	s.edits = append(s.edits, e)
	return nil
}

// editOthers tells the indexes that a record has moved in the shapes that the
// page does not show.
func (s *saving) editOthers(record, was, is int64) error {
	return s.c.query(selectShapesHeld, 0, []driver.Value{record * slots, record*slots + slots - 1}, func(r []driver.Value) error {
		p := priorOf(r)
		if s.shape != nil && p.number == record*slots+s.shape.slot && s.touched(record) || p.state&(stateGone|stateForgotten) != 0 {
			return nil
		}
		return s.editMoved(p.number, p.version, was, is)
	})
}

// touched reports whether an edit of a record in the page's shape is there.
func (s *saving) touched(record int64) bool {
	return slices.ContainsFunc(s.edits, func(e edit) bool { return e.shape == s.shape.number && e.new != nil && e.new.record == record })
}

// editMoved tells the indexes that a held row's record has moved.
func (s *saving) editMoved(held, version, was, is int64) error {
	e, err := s.before(version)
	if err != nil || e == nil {
		return err
	}
	shape, err := s.c.shapeNumber(s.kind.number, held%slots)
	if err != nil {
		return err
	}
	old := *e
	s.edits = append(s.edits, edit{kind: s.kind, shape: shape, was: spotOf(was, shape), is: spotOf(is, shape), old: &old, new: &old})
	return nil
}

// editShifted tells the indexes of the records that made room, but for those in
// the page.
func (s *saving) editShifted(sights []sighting) error {
	if len(s.placer.shifted) == 0 {
		return nil
	}
	here := map[int64]bool{}
	for i := range sights {
		here[sights[i].number] = true
	}
	for record, was := range s.placer.shifted {
		if here[record] {
			continue
		}
		if err := s.editOthers(record, was, s.placer.stands[record]); err != nil {
			return err
		}
	}
	return nil
}

// leave tells the indexes that a record is no more in a shape, whose held row
// is p.
func (s *saving) leave(p *prior, e *entry) error {
	shape, err := s.c.shapeNumber(s.kind.number, p.number%slots)
	if err != nil || p.stand.at == noPosition {
		return err
	}
	old := *e
	s.edits = append(s.edits, edit{kind: s.kind, shape: shape, was: spotOf(p.stand.at, shape), is: spotOf(p.stand.at, shape), old: &old})
	return nil
}

var movePlace = &statement{head: "UPDATE place SET kind = -kind WHERE kind = ? AND at = ?"}

// goes puts a record that is held in no shape now among those that are gone.
func (c *conn) goes(kind int64, at stand) error {
	if at.at == noPosition {
		return nil
	}
	return c.exec(movePlace, 0, kind, at.at)
}

// skipNotFound passes over what is not held.
func skipNotFound(err error) error {
	if errors.Is(err, understudy.ErrNotFound) {
		return nil
	}
	return skipDamaged(err)
}

// hide tells the indexes that a record is about to be no more in those of its
// shapes that are meant; in a transaction, while its bodies are there.
func (db *DB) hide(c *conn, blocks *opened, kind *kindRow, record int64, meant func(held int64) bool) error {
	s := &saving{db: db, c: c, kind: kind, blocks: blocks}
	at, stays := stand{at: noPosition}, false
	err := c.query(selectShapesHeld, 0, []driver.Value{record * slots, record*slots + slots - 1}, func(r []driver.Value) error {
		p := priorOf(r)
		if p.state&(stateGone|stateForgotten) != 0 {
			return nil
		}
		if !meant(p.number) {
			stays = true
			return nil
		}
		at = p.stand
		e, err := s.before(p.version)
		if err != nil || e == nil {
			return err
		}
		return s.leave(&p, e)
	})
	if err == nil && !stays {
		err = c.goes(kind.number, at)
	}
	if err == nil {
		err = db.index(c, s.edits)
	}
	return err
}
