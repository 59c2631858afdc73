// This file writes the past of records: their earlier versions, and when each version became current.

package store

import (
	"bytes"
	"database/sql/driver"

	"understudy"
	"understudy/internal/store/codec"
	"understudy/internal/store/db"
	"understudy/internal/store/records"
)

var (
	insertPast = &db.Statement{Head: "INSERT INTO past (held, number, version, since, tag) VALUES ", Tuple: "(?, ?, ?, ?, ?)",
		Tail: " ON CONFLICT DO NOTHING"}
	selectTag = &db.Statement{Head: `SELECT coalesce(version, number) FROM (SELECT number, version, tag FROM past
		WHERE held = ? ORDER BY number DESC LIMIT 256) newest
		WHERE tag = ? ORDER BY number DESC`}
)

// replaceClock adds the clock and the parent of row r to the tables that find a record by clock and parent. If
// before, the replaced version, is not nil, its entries move to the earlier clocks.
func (s *saving) replaceClock(record int64, before *codec.Entry, r *understudy.Row) error {
	if before != nil {
		if before.Clock == r.Clock && before.Parent == r.Parent {
			return nil
		}
		if err := records.MoveClock(s.c, s.shape.Number, record, before); err != nil {
			return err
		}
	}
	s.periods.clocks = append(s.periods.clocks, s.shape.Number, int64(0), int64(0), r.Clock, record)
	if r.Parent == "" {
		return nil
	}
	parent, err := records.PutParent(s.c, r.Parent)
	s.periods.clocks = append(s.periods.clocks, s.shape.Number, parent, int64(0), r.Clock, record)
	return err
}

// findEarlierVersion returns the version with the same body as row i among the record's last 256 periods, or 0
// if there is none.
func (s *saving) findEarlierVersion(g *observation, i int) (version int64, err error) {
	same, err := db.ListNumbers(s.c, selectTag, reads{s}.tagArgs(g, i)...)
	if err != nil {
		return 0, err
	}
	body := s.p.Body[s.content.rows[i].Start:s.content.rows[i].End]
	for _, v := range same {
		e, err := s.blocks.ReadEntry(v)
		switch {
		case err != nil && !db.IsDamaged(err):
			return 0, err
		case err == nil && bytes.Equal(e.Body, body):
			return v, nil
		}
	}
	return 0, nil
}

func (r reads) tagArgs(g *observation, i int) []driver.Value {
	s := r.save
	return []driver.Value{g.stored.number*records.Slots + s.shape.Slot, records.ShortHash(s.content.hashes[i])}
}

// newPeriodNumber returns the number for all periods of this save that begin without a new version.
func (s *saving) newPeriodNumber() int64 {
	if s.periods.number == 0 {
		s.counters.block++
		s.counters.changed.store = true
		s.periods.number = s.counters.block * codec.PerBlock
	}
	return s.periods.number
}

// beginPeriod ends the current period of a record if row r begins another. It returns the new values of the columns
// stretch and since for the record's row in table held.
func (s *saving) beginPeriod(g *observation, r *understudy.Row) (stretch, since driver.Value, err error) {
	present := g.stored.hasRow && g.stored.state&(records.Gone|records.Forgotten) == 0
	if present && g.stored.version == r.Version {
		if g.stored.period != g.stored.version {
			stretch = g.stored.period
		}
		if g.stored.since != 0 {
			since = g.stored.since
		}
		return stretch, since, nil
	}
	var before *codec.Entry
	if present {
		if before, err = s.readReplaced(g.stored.version); err != nil {
			return nil, nil, err
		}
	}
	if g.stored.hasRow && g.stored.since != records.NeverNewest {
		s.endPeriod(g.stored.number*records.Slots+s.shape.Slot, &g.stored)
	}
	if err := s.replaceClock(g.stored.number, before, r); err != nil {
		return nil, nil, err
	}
	if s.writes.firstNew != 0 && r.Version >= s.writes.firstNew {
		return nil, nil, nil
	}
	return s.newPeriodNumber(), s.at, nil
}

// readReplaced returns a version that is being replaced, or nil if its body is not stored.
func (s *saving) readReplaced(version int64) (*codec.Entry, error) {
	e, err := s.blocks.ReadEntry(version)
	if err == nil && !e.IsPruned() {
		return e, nil
	}
	if db.IsDamaged(err) {
		err = nil // a damaged old version must not stop this save
	}
	return nil, err
}

// endPeriod adds a row of the past for a period that ended.
func (s *saving) endPeriod(held int64, p *currentState) {
	var version, since, tag driver.Value
	if p.since != 0 {
		since = p.since
	}
	switch {
	case p.state&records.Gone != 0:
		version = int64(0)
	case p.version != p.period:
		version = p.version
	}
	if p.state&(records.Gone|records.Forgotten) == 0 {
		tag = records.ShortHash(p.hash)
	}
	s.periods.past = append(s.periods.past, held, p.period, version, since, tag)
}

// putPast writes the periods that ended. It also writes new versions that are not their record's newest. Such a
// version is late, or its record has a later row in the same page.
func (s *saving) putPast(sights []observation) error {
	x := &s.db.scratch
	for i := range s.content.rows {
		r, g := &s.content.rows[i], &sights[x.sightOf[i]]
		if s.writes.firstNew == 0 || r.Version < s.writes.firstNew || !g.late && r.Version == s.content.rows[g.lastRow].Version {
			continue
		}
		s.periods.past = append(s.periods.past, g.stored.number*records.Slots+s.shape.Slot, r.Version, nil, int64(records.NeverNewest),
			records.ShortHash(s.content.hashes[i]))
	}
	return db.ExecuteMany(s.c, insertPast, 5, s.periods.past)
}

// markGone marks a record as gone in the shapes where it is present.
func (s *saving) markGone(record int64, present []currentState) error {
	if s.periods.past = nil; s.blocks == nil {
		s.blocks = s.db.opener.Open(s.c)
	}
	for i := range present {
		p := &present[i]
		if p.since != records.NeverNewest {
			s.endPeriod(p.number, p)
		}
		e, err := s.readReplaced(p.version)
		if err != nil {
			return err
		}
		if e == nil {
			continue
		}
		shape, err := s.findShape(p.number % records.Slots)
		if err != nil {
			return err
		}
		s.addRemoval(shape, p, e)
		if err := records.MoveClock(s.c, shape, p.number/records.Slots, e); err != nil {
			return err
		}
	}
	if err := db.ExecuteMany(s.c, insertPast, 5, s.periods.past); err != nil {
		return err
	}
	if err := moveToDeletedPlace(s.c, s.kind.Number, present[0].position); err != nil {
		return err
	}
	return s.c.Execute(updateGone, 0, s.at, s.newPeriodNumber(), s.at, record*records.Slots, record*records.Slots+records.Slots-1)
}

// compareFields returns the names of the fields that differ between a record's previous version and row r.
func (s *saving) compareFields(g *observation, r *understudy.Row) (understudy.Names, error) {
	if g.stored.state&records.Forgotten != 0 {
		return "", nil
	}
	e, err := s.readReplaced(g.stored.version)
	if err != nil || e == nil {
		return "", err
	}
	return records.FieldsBetween(e.Body, s.p.Body[r.Start:r.End]), nil
}
