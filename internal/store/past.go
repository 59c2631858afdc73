// The past: which versions a record had before, and since when.

package store

import (
	"bytes"
	"database/sql/driver"

	"understudy"
	"understudy/internal/store/codec"
	"understudy/internal/store/records"
	"understudy/internal/store/sqlite"
)

var (
	insertPast = &sqlite.Statement{Head: "INSERT OR IGNORE INTO past (held, number, version, since, tag) VALUES ", Tuple: "(?, ?, ?, ?, ?)"}
	selectTag  = &sqlite.Statement{Head: `SELECT coalesce(version, number) FROM (SELECT number, version, tag FROM past
		WHERE held = ? ORDER BY number DESC LIMIT 256)
		WHERE tag = ? ORDER BY number DESC`}
)

// reclock makes a record found by the clock and the parent of row r, in place
// of those of the version before, if that was found.
func (s *saving) reclock(record int64, before *codec.Entry, r *understudy.Row) error {
	if before != nil {
		if before.Clock == r.Clock && before.Parent == r.Parent {
			return nil
		}
		if err := records.RetireClock(s.c, s.shape.Number, record, before); err != nil {
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

// returned is the version among a record's last ones that has the body of row
// i, 0 when there is none.
func (s *saving) returned(g *observation, i int) (version int64, err error) {
	var same []int64
	err = s.c.Query(selectTag, 0, []driver.Value{g.was.number*records.Slots + s.shape.Slot, records.ShortHash(s.content.hashes[i])},
		func(r []driver.Value) error {
			same = append(same, r[0].(int64))
			return nil
		})
	if err != nil {
		return 0, err
	}
	body := s.p.Body[s.content.rows[i].Start:s.content.rows[i].End]
	for _, v := range same {
		e, err := s.blocks.Entry(v)
		switch {
		case err != nil && !sqlite.IsDamaged(err):
			return 0, err
		case err == nil && bytes.Equal(e.Body, body):
			return v, nil
		}
	}
	return 0, nil
}

// newMark is a number for periods of this save that begin without a new
// version.
func (s *saving) newMark() int64 {
	if s.periods.mark == 0 {
		s.counters.block++
		s.counters.given.store = true
		s.periods.mark = s.counters.block * codec.PerBlock
	}
	return s.periods.mark
}

// begin ends the stretch of a record that lasts, if another one begins with
// row r, and gives what the held row says of the one that lasts then.
func (s *saving) begin(g *observation, r *understudy.Row) (stretch, since driver.Value, err error) {
	present := g.was.held && g.was.state&(records.Gone|records.Forgotten) == 0
	if present && g.was.version == r.Version {
		if g.was.period != g.was.version {
			stretch = g.was.period
		}
		if g.was.since != 0 {
			since = g.was.since
		}
		return stretch, since, nil
	}
	var before *codec.Entry
	if present {
		if before, err = s.before(g.was.version); err != nil {
			return nil, nil, err
		}
	}
	if g.was.held && g.was.since != records.Never {
		s.end(g.was.number*records.Slots+s.shape.Slot, &g.was)
	}
	if err := s.reclock(g.was.number, before, r); err != nil {
		return nil, nil, err
	}
	if s.writes.firstNew != 0 && r.Version >= s.writes.firstNew {
		return nil, nil, nil
	}
	return s.newMark(), s.at, nil
}

// before is a version that is being replaced, nil when its body is not there.
func (s *saving) before(version int64) (*codec.Entry, error) {
	e, err := s.blocks.Entry(version)
	if err == nil && !e.Pruned() {
		return e, nil
	}
	if sqlite.IsDamaged(err) {
		err = nil // what is saved now does not suffer for it
	}
	return nil, err
}

// end notes a stretch that ended.
func (s *saving) end(held int64, p *currentState) {
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

// putPast notes the periods that ended, and the new versions that are not
// their record's newest: a late one, and one that stands further up in a page
// in which its record stands twice.
func (s *saving) putPast(sights []observation) error {
	x := &s.db.scratch
	for i := range s.content.rows {
		r, g := &s.content.rows[i], &sights[x.of[i]]
		if s.writes.firstNew == 0 || r.Version < s.writes.firstNew || !g.late && r.Version == s.content.rows[g.last].Version {
			continue
		}
		s.periods.past = append(s.periods.past, g.was.number*records.Slots+s.shape.Slot, r.Version, nil, int64(records.Never),
			records.ShortHash(s.content.hashes[i]))
	}
	return s.c.ExecMany(insertPast, 5, s.periods.past)
}

// went notes that a record is no more in the shapes in which it is present.
func (s *saving) went(record int64, present []currentState) error {
	if s.periods.past = nil; s.blocks == nil {
		s.blocks = s.db.opener.Open(s.c)
	}
	for i := range present {
		p := &present[i]
		if p.since != records.Never {
			s.end(p.number, p)
		}
		e, err := s.before(p.version)
		if err != nil {
			return err
		}
		if e == nil {
			continue
		}
		if err := s.leaveOrder(p, e); err != nil {
			return err
		}
		shape, err := records.ShapeNumber(s.c, s.kind.Number, p.number%records.Slots)
		if err == nil {
			err = records.RetireClock(s.c, shape, p.number/records.Slots, e)
		}
		if err != nil {
			return err
		}
	}
	if err := s.c.ExecMany(insertPast, 5, s.periods.past); err != nil {
		return err
	}
	if err := leavePlace(s.c, s.kind.Number, present[0].position); err != nil {
		return err
	}
	return s.c.Exec(updateGone, 0, s.at, s.newMark(), s.at, record*records.Slots, record*records.Slots+records.Slots-1)
}

// fields names what differs between a record's version before and row r.
func (s *saving) fields(g *observation, r *understudy.Row) (understudy.Names, error) {
	if g.was.state&records.Forgotten != 0 {
		return "", nil
	}
	e, err := s.before(g.was.version)
	if err != nil || e == nil {
		return "", err
	}
	return records.FieldsBetween(e.Body, s.p.Body[r.Start:r.End]), nil
}
