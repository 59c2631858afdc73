// This file saves the records of a page: their new bodies, and which records are new or have changed.

package store

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"time"

	"understudy"
	"understudy/internal/store/catalog"
	"understudy/internal/store/db"
	"understudy/internal/store/names"
	"understudy/internal/store/order"
	"understudy/internal/store/records"
)

// observation is one record of the page being saved.
type observation struct {
	stored      currentState   // the record's stored state before this save
	id          []byte         // the record's id in its stored form
	rowCount    int            // the number of rows of the page that show the record
	lastRow     int            // the index of the last row of the page that shows the record; only this row counts
	isNew       bool           // the record was never saved before
	late        bool           // the store already has a newer observation of the record
	newPosition order.Position // the record's new position in the list
}

// eachName looks up each name by itself. PostgreSQL would otherwise read all names of a kind: it has no statistics for the tables of
// new names, which are empty at times.
const eachName = "(SELECT CAST(%s AS bigint)) of(kind) CROSS JOIN unnest(CAST(ARRAY[{}] AS bytea[])) wanted(id) CROSS JOIN LATERAL " +
	"(SELECT id, record, erased FROM names WHERE kind = of.kind AND id = wanted.id OFFSET 0) n "

const heldColumns = "n.id, n.record, h.version, h.hash, h.seen, h.state, coalesce(h.stretch, h.version), coalesce(h.since, 0), h.place"

var (
	selectHeld = &db.Statement{
		Head:     "SELECT " + heldColumns + " FROM names n LEFT JOIN held h ON h.number = n.record * 64 + ? WHERE n.kind = ? AND n.id IN (",
		Standard: "SELECT " + heldColumns + " FROM " + fmt.Sprintf(eachName, "?2") + "LEFT JOIN held h ON h.number = n.record * 64 + ?1",
		Tuple:    "?", Tail: ")"}
	selectShapesHeld = &db.Statement{Head: "SELECT number, version, hash, seen, state, coalesce(stretch, version), " +
		"coalesce(since, 0), place FROM held WHERE number BETWEEN ? AND ?"}
	insertHeld = &db.Statement{Head: "INSERT INTO held (number, version, hash, seen, state, stretch, since, place) " +
		"VALUES ", Tuple: "(?, ?, ?, ?, ?, ?, ?, ?)"}
	updateHeld = &db.Statement{Head: "UPDATE held SET version = ?, hash = ?, seen = ?, state = ?, stretch = ?, since = ? " +
		"WHERE number = ?"}
	updateSeen = &db.Statement{Head: "UPDATE held SET seen = ? WHERE number IN (", Tuple: "?", Tail: ")"}
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
	sights, err := s.findRecords()
	if err != nil {
		return err
	}
	s.blocks = s.db.opener.Open(s.c)
	if s.db.pool.Engine.IsDistant() {
		if err := (reads{s}).expectVersions(sights); err != nil {
			return err
		}
	}
	if err := s.assignVersions(sights); err != nil {
		return err
	}
	place := &placing{save: s, db: s.db, c: s.c, page: s.p, kind: s.kind, order: order.NewAssigner(s.c, s.kind.Number, s.db.counts.noteMoves)}
	if err := place.placeRows(sights); err != nil {
		return err
	}
	if err := s.writeObservations(sights); err != nil {
		return err
	}
	if err := place.putPlaces(sights); err != nil {
		return err
	}
	return s.blocks.Write()
}

// findRecords reads the stored state of each record of the page and gives new records their numbers.
func (s *saving) findRecords() ([]observation, error) {
	x := &s.db.scratch
	x.groupRows(s.kind.Prefix(), s.content.rows)
	err := reads{s}.visitHeldArgs(func(n int, args []driver.Value) error {
		return s.c.Query(selectHeld, n, args, func(r []driver.Value) error {
			g := &x.sights[x.byID[string(r[0].([]byte))]]
			g.stored.number = r[1].(int64)
			if r[2] != nil {
				g.stored.hasRow, g.stored.version, g.stored.hash = true, r[2].(int64), r[3].(int64)
				g.stored.seen, g.stored.state = r[4].(int64), r[5].(int64)
				g.stored.period, g.stored.since, g.stored.position = r[6].(int64), r[7].(int64), order.ReadPosition(r[8])
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	for i := range x.sights {
		g := &x.sights[i]
		switch {
		case g.stored.number == 0:
			s.counters.record++
			s.counters.changed.store = true
			g.stored.number, g.isNew = s.counters.record, true
		case !g.stored.hasRow || g.stored.state&records.Gone != 0:
			if err := s.readOtherShapes(&g.stored); err != nil {
				return nil, err
			}
		}
	}
	return x.sights, nil
}

// visitHeldArgs calls do with the arguments of selectHeld for the records that groupRows has collected, some at a time.
func (r reads) visitHeldArgs(do func(n int, args []driver.Value) error) error {
	s, x := r.save, &r.save.db.scratch
	for part := range slices.Chunk(x.sights, db.MaxTuples) {
		args := append(x.args[:0], s.shape.Slot, s.kind.Number)
		for i := range part {
			args = append(args, part[i].id)
		}
		x.args = args
		if err := do(len(part), args); err != nil {
			return err
		}
	}
	return nil
}

// groupRows collects the distinct records of rows, in the order of their first row.
func (x *scratch) groupRows(prefix string, rows []understudy.Row) {
	if x.byID == nil {
		x.byID = map[string]int32{}
	}
	clear(x.byID)
	// The ids are slices of one buffer. The buffer gets its full size first, because growing it later would move it.
	need := 0
	for i := range rows {
		need += len(rows[i].ID) + 1
	}
	if cap(x.ids) < need {
		x.ids = make([]byte, 0, need)
	}
	x.ids, x.sights, x.sightOf = x.ids[:0], x.sights[:0], x.sightOf[:0]
	for i := range rows {
		start := len(x.ids)
		x.ids = db.AppendID(x.ids, prefix, rows[i].ID)
		id := x.ids[start:]
		n, ok := x.byID[string(id)]
		if !ok {
			n = int32(len(x.sights))
			x.byID[string(id)] = n
			x.sights = append(x.sights, observation{id: id, stored: currentState{position: order.Position{At: order.Nowhere}}})
		}
		x.sightOf = append(x.sightOf, n)
		x.sights[n].rowCount++
		x.sights[n].lastRow = i
	}
}

// readOtherShapes reads whether the record is present in other shapes, and its position.
func (s *saving) readOtherShapes(p *currentState) error {
	return s.c.Query(selectShapesHeld, 0, rowsOf(p.number),
		func(r []driver.Value) error {
			switch {
			case r[0].(int64) == p.number*records.Slots+s.shape.Slot:
				return nil
			case r[4].(int64)&records.Gone == 0:
				p.inOtherShape = true
			default:
				p.lastGone = max(p.lastGone, r[3].(int64))
			}
			if p.position.At == order.Nowhere {
				p.position = order.ReadPosition(r[7])
			}
			return nil
		})
}

// writeObservations writes names, held rows and times, and collects the changes.
func (s *saving) writeObservations(sights []observation) error {
	x := &s.db.scratch
	args := x.args[:0]
	for i := range sights {
		if sights[i].isNew {
			args = append(args, s.kind.Number, sights[i].id, sights[i].stored.number)
		}
	}
	x.args = args
	if err := x.names.Put(s.c, args, s.counters.record); err != nil {
		return err
	}
	var held, touched []driver.Value
	for i := range sights {
		g := &sights[i]
		r := &s.content.rows[g.lastRow]
		v := decide(&g.stored, s.content.hashes[g.lastRow], s.at, r.Final, s.p.IsWriteAnswer())
		number := g.stored.number*records.Slots + s.shape.Slot
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
			stretch, since, err := s.beginPeriod(g, r)
			if err != nil {
				return err
			}
			if !g.stored.hasRow {
				if held == nil {
					held = make([]driver.Value, 0, 8*(len(sights)-i))
					s.periods.clocks = slices.Grow(s.periods.clocks, 5*(len(sights)-i))
				}
				held = append(held, number, r.Version, s.content.hashes[g.lastRow], s.at, v.state, stretch, since, g.newPosition.Value())
			} else if err := s.c.Execute(updateHeld, 0, r.Version, s.content.hashes[g.lastRow], s.at, v.state, stretch, since, number); err != nil {
				return err
			}
			if err := s.addEdit(g, r); err != nil {
				return err
			}
			if v.change == understudy.Changed {
				if fields, err = s.compareFields(g, r); err != nil {
					return err
				}
			}
		}
		if v.change != 0 {
			s.addChange(v.change, r.ID, g.stored.number, r.Version, fields)
		}
		if v.write && !g.isNew {
			if err := s.listRedacted(g.stored.number, s.p.Body[r.Start:r.End]); err != nil {
				return err
			}
		}
	}
	if err := db.ExecuteMany(s.c, insertHeld, 8, held); err != nil {
		return err
	}
	if err := db.ExecuteMany(s.c, records.InsertClock, 5, s.periods.clocks); err != nil {
		return err
	}
	for len(touched) > 0 {
		n := min(db.MaxTuples, len(touched))
		if err := s.c.Execute(updateSeen, n, append([]driver.Value{s.at}, touched[:n]...)...); err != nil {
			return err
		}
		touched = touched[n:]
	}
	return s.putPast(sights)
}

// addChange adds a change with the next change number.
func (s *saving) addChange(what understudy.ChangeType, id string, record, version int64, fields understudy.Names) {
	n := &s.counters
	n.change++
	n.kindChanges++
	n.changed.source, n.changed.kind = true, true
	switch what {
	case understudy.Appeared:
		n.records++
	case understudy.Deleted:
		n.records--
	}
	if s.outcome.changes == nil {
		s.outcome.changes = make([]understudy.Change, 0, max(1, len(s.content.rows)))
	}
	s.outcome.changes = append(s.outcome.changes, understudy.Change{N: n.change, Source: s.p.Key.Source, Kind: s.p.Kind, ID: id, Type: what,
		Record: record, Version: version, At: time.Unix(0, s.at).UTC(), Fields: fields})
}

// stateFromRow converts a result row of selectShapesHeld. The field number is then the number of the row in table
// held, not the record's number.
func stateFromRow(r []driver.Value) currentState {
	return currentState{number: r[0].(int64), version: r[1].(int64), hash: r[2].(int64), state: r[4].(int64), period: r[5].(int64),
		since: r[6].(int64), position: order.ReadPosition(r[7])}
}

// removeRecord marks the record that the page names as gone.
func (s *saving) removeRecord() error {
	err := deleteWhole(s.c, s.db.pages, s.kind.Number, func(rows []understudy.Row) bool { return hasID(rows, s.p.ID) })
	if err != nil {
		return err
	}
	id := db.AppendID(nil, s.kind.Prefix(), s.p.ID)
	record, err := names.FindRecord(s.c, s.kind.Number, id)
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
			present = append(present, stateFromRow(r))
			return nil
		})
	if err != nil || len(present) == 0 || s.p.Status != 204 && isLate(s.at, last) {
		return err
	}
	if err := s.markGone(record, present); err != nil {
		return err
	}
	s.addChange(understudy.Deleted, s.p.ID, record, version, "")
	return s.listGone(record)
}

var (
	updateGone = &db.Statement{Head: `UPDATE held SET seen = ?1, state = state | 4,
		stretch = CASE WHEN state & 4 <> 0 THEN stretch ELSE ?2 END, since = CASE WHEN state & 4 <> 0 THEN since ELSE ?3 END
		WHERE number BETWEEN ?4 AND ?5`}
)
