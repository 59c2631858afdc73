// The records of a page: which bodies are new, which records came or changed.

package store

import (
	"database/sql/driver"
	"slices"
	"time"

	"understudy"
	"understudy/internal/store/catalog"
	"understudy/internal/store/names"
	"understudy/internal/store/order"
	"understudy/internal/store/records"
	"understudy/internal/store/sqlite"
)

// observation is one record of the page being saved.
type observation struct {
	was   currentState
	id    []byte         // stored form
	rows  int            // how often it stands in the page
	last  int            // where it stands last: that row counts
	fresh bool           // never seen before
	late  bool           // lost a race
	to    order.Position // where it is to stand
}

var (
	selectHeld = &sqlite.Statement{Head: "SELECT n.id, n.record, h.version, h.hash, h.seen, h.state, coalesce(h.stretch, " +
		"h.version), coalesce(h.since, 0), h.place FROM names n LEFT JOIN held h ON h.number = n.record * 64 + ? WHERE n.kind = ? AND n.id IN (",
		Tuple: "?", Tail: ")"}
	selectShapesHeld = &sqlite.Statement{Head: "SELECT number, version, hash, seen, state, coalesce(stretch, version), " +
		"coalesce(since, 0), place FROM held WHERE number BETWEEN ? AND ?"}
	insertHeld = &sqlite.Statement{Head: "INSERT INTO held (number, version, hash, seen, state, stretch, since, place) " +
		"VALUES ", Tuple: "(?, ?, ?, ?, ?, ?, ?, ?)"}
	updateHeld = &sqlite.Statement{Head: "UPDATE held SET version = ?, hash = ?, seen = ?, state = ?, stretch = ?, since = ? " +
		"WHERE number = ?"}
	updateSeen = &sqlite.Statement{Head: "UPDATE held SET seen = ? WHERE number IN (", Tuple: "?", Tail: ")"}
)

// observe saves the records of the page.
func (s *saving) observe() error {
	if field := s.kind.ParentField(); field != "" {
		for i := range s.content.rows {
			if r := &s.content.rows[i]; r.Parent == "" {
				r.Parent = catalog.ParentOf(field, s.p.Body[r.Start:r.End])
			}
		}
	}
	sights, err := s.lookUp()
	if err != nil {
		return err
	}
	s.blocks = s.db.opener.Open(s.c)
	if err := s.versions(sights); err != nil {
		return err
	}
	place := &placing{save: s, db: s.db, c: s.c, page: s.p, kind: s.kind, order: order.NewAssigner(s.c, s.kind.Number, &s.db.counts.epoch)}
	if err := place.placeRows(sights); err != nil {
		return err
	}
	if err := s.settle(sights); err != nil {
		return err
	}
	if err := place.putPlaces(sights); err != nil {
		return err
	}
	return s.blocks.Write()
}

// lookUp finds out what is known of each record of the page, and gives new
// records their numbers.
func (s *saving) lookUp() ([]observation, error) {
	x := &s.db.scratch
	x.group(s.kind.Prefix, s.content.rows)
	for from := 0; from < len(x.sights); from += sqlite.MaxTuples {
		part := x.sights[from:min(from+sqlite.MaxTuples, len(x.sights))]
		args := append(x.args[:0], s.shape.Slot, s.kind.Number)
		for i := range part {
			args = append(args, part[i].id)
		}
		x.args = args
		err := s.c.Query(selectHeld, len(part), args, func(r []driver.Value) error {
			g := &x.sights[x.byID[string(r[0].([]byte))]]
			g.was.number = r[1].(int64)
			if r[2] != nil {
				g.was.held, g.was.version, g.was.hash, g.was.seen, g.was.state = true, r[2].(int64), r[3].(int64), r[4].(int64), r[5].(int64)
				g.was.period, g.was.since, g.was.position = r[6].(int64), r[7].(int64), order.ReadPosition(r[8])
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for i := range x.sights {
		g := &x.sights[i]
		switch {
		case g.was.number == 0:
			s.counters.record++
			s.counters.given.store = true
			g.was.number, g.fresh = s.counters.record, true
		case !g.was.held || g.was.state&records.Gone != 0:
			if err := s.elsewhere(&g.was); err != nil {
				return nil, err
			}
		}
	}
	return x.sights, nil
}

// group collects the distinct records of rows, in the order they first stand.
func (x *scratch) group(prefix string, rows []understudy.Row) {
	if x.byID == nil {
		x.byID = map[string]int32{}
	}
	clear(x.byID)
	// Ids are parts of one buffer, which must not move once they are cut.
	need := 0
	for i := range rows {
		need += len(rows[i].ID) + 1
	}
	if cap(x.ids) < need {
		x.ids = make([]byte, 0, need)
	}
	x.ids, x.sights, x.of = x.ids[:0], x.sights[:0], x.of[:0]
	for i := range rows {
		start := len(x.ids)
		x.ids = sqlite.AppendID(x.ids, prefix, rows[i].ID)
		id := x.ids[start:]
		n, ok := x.byID[string(id)]
		if !ok {
			n = int32(len(x.sights))
			x.byID[string(id)] = n
			x.sights = append(x.sights, observation{id: id, was: currentState{position: order.Position{At: order.Nowhere}}})
		}
		x.of = append(x.of, n)
		x.sights[n].rows++
		x.sights[n].last = i
	}
}

// elsewhere looks at the record's other shapes.
func (s *saving) elsewhere(p *currentState) error {
	return s.c.Query(selectShapesHeld, 0, rowsOf(p.number),
		func(r []driver.Value) error {
			switch {
			case r[0].(int64) == p.number*records.Slots+s.shape.Slot:
				return nil
			case r[4].(int64)&records.Gone == 0:
				p.elsewhere = true
			default:
				p.left = max(p.left, r[3].(int64))
			}
			if p.position.At == order.Nowhere {
				p.position = order.ReadPosition(r[7])
			}
			return nil
		})
}

// settle writes what the observations change: names, held rows, times, and the list
// of changes.
func (s *saving) settle(sights []observation) error {
	x := &s.db.scratch
	args := x.args[:0]
	for i := range sights {
		if sights[i].fresh {
			args = append(args, s.kind.Number, sights[i].id, sights[i].was.number)
		}
	}
	x.args = args
	if err := x.names.Put(s.c, args, s.counters.record); err != nil {
		return err
	}
	var held, touched []driver.Value
	for i := range sights {
		g := &sights[i]
		r := &s.content.rows[g.last]
		v := judge(&g.was, s.content.hashes[g.last], s.at, r.Final, s.p.OfWrite())
		number := g.was.number*records.Slots + s.shape.Slot
		if g.late = v.late; v.late {
			if err := s.listLate(g, s.p.Body[r.Start:r.End]); err != nil {
				return err
			}
			continue
		}
		if v.touch {
			touched = append(touched, number)
		}
		var fields understudy.Names
		if v.write {
			stretch, since, err := s.begin(g, r)
			if err != nil {
				return err
			}
			if !g.was.held {
				if held == nil {
					held = make([]driver.Value, 0, 8*(len(sights)-i))
					s.periods.clocks = slices.Grow(s.periods.clocks, 5*(len(sights)-i))
				}
				held = append(held, number, r.Version, s.content.hashes[g.last], s.at, v.state, stretch, since, g.to.Value())
			} else if err := s.c.Exec(updateHeld, 0, r.Version, s.content.hashes[g.last], s.at, v.state, stretch, since, number); err != nil {
				return err
			}
			if err := s.edit(g, r); err != nil {
				return err
			}
			if v.what == understudy.Changed {
				if fields, err = s.fields(g, r); err != nil {
					return err
				}
			}
		}
		if v.what != 0 {
			s.change(v.what, r.ID, g.was.number, r.Version, fields)
		}
		if v.write && !g.fresh {
			if err := s.listRedacted(g.was.number, s.p.Body[r.Start:r.End]); err != nil {
				return err
			}
		}
	}
	if err := s.c.ExecMany(insertHeld, 8, held); err != nil {
		return err
	}
	if err := s.c.ExecMany(records.InsertClock, 5, s.periods.clocks); err != nil {
		return err
	}
	for len(touched) > 0 {
		n := min(sqlite.MaxTuples, len(touched))
		if err := s.c.Exec(updateSeen, n, append([]driver.Value{s.at}, touched[:n]...)...); err != nil {
			return err
		}
		touched = touched[n:]
	}
	return s.putPast(sights)
}

// change notes a change; it gets its number when all are known.
func (s *saving) change(what understudy.ChangeType, id string, record, version int64, fields understudy.Names) {
	n := &s.counters
	n.change++
	n.kinds++
	n.given.source, n.given.kind = true, true
	switch what {
	case understudy.Came:
		n.records++
	case understudy.Went:
		n.records--
	}
	if s.outcome.changes == nil {
		s.outcome.changes = make([]understudy.Change, 0, max(1, len(s.content.rows)))
	}
	s.outcome.changes = append(s.outcome.changes, understudy.Change{N: n.change, Source: s.p.Key.Source, Kind: s.p.Kind, ID: id, Type: what,
		Record: record, Version: version, At: time.Unix(0, s.at).UTC(), Fields: fields})
}

// priorOf is a row of selectShapesHeld; its number is the held row's.
func priorOf(r []driver.Value) currentState {
	return currentState{number: r[0].(int64), version: r[1].(int64), hash: r[2].(int64), state: r[4].(int64), period: r[5].(int64),
		since: r[6].(int64), position: order.ReadPosition(r[7])}
}

// remove notes that the record the page names is no more.
func (s *saving) remove() error {
	err := deleteWhole(s.c, s.db.pages, s.kind.Number, func(rows []understudy.Row) bool { return showsID(rows, s.p.ID) })
	if err != nil {
		return err
	}
	id := sqlite.AppendID(nil, s.kind.Prefix, s.p.ID)
	record, err := names.Record(s.c, s.kind.Number, id)
	if err != nil || record == 0 {
		return err
	}
	var version, last int64
	var present []currentState
	err = s.c.Query(selectShapesHeld, 0, rowsOf(record),
		func(r []driver.Value) error {
			last = max(last, r[3].(int64))
			if r[4].(int64)&records.Gone != 0 {
				return nil
			}
			if len(present) == 0 || r[0].(int64) == record*records.Slots+s.shape.Slot {
				version = r[1].(int64)
			}
			present = append(present, priorOf(r))
			return nil
		})
	if err != nil || len(present) == 0 || s.p.Status != 204 && observedLate(s.at, last) {
		return err
	}
	if err := s.went(record, present); err != nil {
		return err
	}
	s.change(understudy.Went, s.p.ID, record, version, "")
	return s.listGone(record)
}

var (
	updateGone = &sqlite.Statement{Head: `UPDATE held SET seen = ?1, state = state | 4,
		stretch = CASE WHEN state & 4 THEN stretch ELSE ?2 END, since = CASE WHEN state & 4 THEN since ELSE ?3 END
		WHERE number BETWEEN ?4 AND ?5`}
)
