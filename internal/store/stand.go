// Where records stand in the database: kept by every save.

package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"

	"understudy"
)

var (
	selectBelow      = &statement{head: "SELECT at FROM place WHERE kind = ? AND at < ? AND at >= ? ORDER BY at DESC LIMIT 1"}
	selectAbove      = &statement{head: "SELECT at FROM place WHERE kind = ? AND at > ? AND at <= ? ORDER BY at ASC LIMIT 1"}
	selectStanding   = &statement{head: "SELECT at FROM place WHERE kind = ? AND at BETWEEN ? AND ? LIMIT ?"}
	selectLeft       = &statement{head: "SELECT 1 FROM place WHERE kind = ? LIMIT 1"}
	countPlaces      = &statement{head: "SELECT count(*) FROM place WHERE kind IN (?1, -?1) AND at >= ?2 AND at < ?3"}
	selectPlaces     = &statement{head: "SELECT kind, at, record FROM place WHERE kind IN (?1, -?1) AND at >= ?2 AND at < ?3 ORDER BY at"}
	insertPlace      = &statement{head: "INSERT INTO place (kind, at, record) VALUES ", tuple: "(?, ?, ?)"}
	deletePlace      = &statement{head: "DELETE FROM place WHERE kind = ? AND at = ?"}
	updatePlace      = &statement{head: "UPDATE held SET place = ? WHERE number BETWEEN ? AND ?"}
	updateStand      = &statement{head: "UPDATE held SET place = ?1 * 2 + (place & 1) WHERE number BETWEEN ?2 AND ?3"}
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

// placer is the places of one kind in one transaction.
type placer struct {
	db   *DB
	c    *conn
	kind int64
	left int8 // whether records of the kind are gone: 0 not known, 1 yes, -1 no

	// What is taken from least to most, if that was read at once.
	known       bool
	least, most int64
	taken       []int64 // rising

	// shifted are records that had to make room, and where they stood before.
	shifted map[int64]int64
	stands  map[int64]int64 // where they stand now
}

// signs are the kinds to look under: present records, and those that are gone.
func (g *placer) signs() ([]int64, error) {
	if g.left == 0 {
		g.left = -1
		if _, err := g.c.one(selectLeft, []driver.Value{-g.kind}, func([]driver.Value) { g.left = 1 }); err != nil {
			return nil, err
		}
	}
	if g.left > 0 {
		return []int64{g.kind, -g.kind}, nil
	}
	return []int64{g.kind}, nil
}

// maxTaken is how many positions are read at once.
const maxTaken = 1000

// read reads what is taken in a stretch, if that is not too much.
func (g *placer) read(least, most int64) error {
	signs, err := g.signs()
	if err != nil || least > most {
		return err
	}
	g.taken = g.taken[:0]
	for _, kind := range signs {
		err := g.c.query(selectStanding, 0, []driver.Value{kind, least, most, int64(maxTaken)}, func(r []driver.Value) error {
			g.taken = append(g.taken, r[0].(int64))
			return nil
		})
		if err != nil {
			return err
		}
	}
	if g.known = len(g.taken) < maxTaken; g.known {
		slices.Sort(g.taken)
		g.least, g.most = least, most
	}
	return nil
}

func (g *placer) below(position, least int64) (int64, error) {
	if g.known && least >= g.least && position-1 <= g.most {
		i, _ := slices.BinarySearch(g.taken, position)
		if i == 0 || g.taken[i-1] < least {
			return noPosition, nil
		}
		return g.taken[i-1], nil
	}
	return g.nearest(selectBelow, position, least, func(a, b int64) bool { return a > b })
}

func (g *placer) above(position, most int64) (int64, error) {
	if g.known && position+1 >= g.least && most <= g.most {
		i, found := slices.BinarySearch(g.taken, position)
		if found {
			i++
		}
		if i == len(g.taken) || g.taken[i] > most {
			return noPosition, nil
		}
		return g.taken[i], nil
	}
	return g.nearest(selectAbove, position, most, func(a, b int64) bool { return a < b })
}

func (g *placer) nearest(st *statement, position, bound int64, nearer func(a, b int64) bool) (int64, error) {
	found := int64(noPosition)
	signs, err := g.signs()
	for _, kind := range signs {
		if err != nil {
			break
		}
		_, err = g.c.one(st, []driver.Value{kind, position, bound}, func(r []driver.Value) {
			if at := r[0].(int64); found == noPosition || nearer(at, found) {
				found = at
			}
		})
	}
	return found, err
}

func (g *placer) widen(position int64, n int, moved func(to map[int64]int64)) error {
	g.known = false
	var cerr error
	first, low, step := widened(position, n, func(low int64) (n int) {
		_, err := g.c.one(countPlaces, []driver.Value{g.kind, low, position}, func(r []driver.Value) { n = int(r[0].(int64)) })
		if err != nil {
			cerr = err
		}
		return n
	})
	if cerr != nil {
		return cerr
	}
	type row struct{ kind, at, record int64 }
	var rows []row
	err := g.c.query(selectPlaces, 0, []driver.Value{g.kind, low, position}, func(r []driver.Value) error {
		rows = append(rows, row{r[0].(int64), r[1].(int64), r[2].(int64)})
		return nil
	})
	if err != nil {
		return err
	}
	for _, r := range rows {
		if err := g.c.exec(deletePlace, 0, r.kind, r.at); err != nil {
			return err
		}
	}
	if g.shifted == nil {
		g.shifted, g.stands = map[int64]int64{}, map[int64]int64{}
	}
	tos := make([]int64, len(rows))
	for i, r := range rows {
		tos[i] = first - int64(len(rows)-1-i)*step
		if err := g.c.exec(insertPlace, 1, r.kind, tos[i], r.record); err != nil {
			return err
		}
		if err := g.c.exec(updateStand, 0, tos[i], r.record*slots, r.record*slots+slots-1); err != nil {
			return err
		}
		if _, again := g.shifted[r.record]; !again {
			g.shifted[r.record] = r.at
		}
		g.stands[r.record] = tos[i]
	}
	told := make(map[int64]int64, len(rows))
	for i, r := range rows {
		told[r.at] = tos[i]
	}
	moved(told)
	g.db.widened.Add(1)
	return nil
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
	if !s.p.List || s.p.Key.Zero() {
		for i, n := range order {
			if rows[i].at != noPosition {
				continue
			}
			at, err := natural(g, rows[i].second)
			if err != nil {
				return err
			}
			sights[n].to = stand{at: at}
			g.known = false
		}
		for i, n := range order {
			if rows[i].at != noPosition {
				sights[n].to = sights[n].stand
			}
		}
		return nil
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

// placedPage is the page with what it follows.
func (s *saving) placedPage(g *placer, rows []*placing) (*placedPage, error) {
	page := &placedPage{ground: g, rows: rows}
	f := followed(s.db.o.Specs[s.p.Key.Source], s.p.Key)
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
// ErrNotFound, it was never seen.
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
		_, err := c.one(selectNamedPlace, []driver.Value{k.number, appendID(nil, k.prefix, id)}, func(r []driver.Value) { at = standOf(r[1]) })
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
		if g.fresh || was == noPosition {
			fresh = append(fresh, s.kind.number, g.to.at, g.number)
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
	if present {
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
		if p.number == record*slots+s.shape.slot && s.touched(record) || p.state&(stateGone|stateForgotten) != 0 {
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
