// The past: which versions a record had before, and since when.

package store

import (
	"bytes"
	"database/sql/driver"
	"time"

	"understudy"
	"understudy/internal/store/codec"
	"understudy/internal/store/sqlite"
)

var (
	insertPast = &sqlite.Statement{Head: "INSERT OR IGNORE INTO past (held, number, version, since, tag) VALUES ", Tuple: "(?, ?, ?, ?, ?)"}
	insertMade = &sqlite.Statement{Head: "INSERT INTO made (block, at) VALUES (?, ?)"}
	selectMade = &sqlite.Statement{Head: "SELECT at FROM made WHERE block <= ? ORDER BY block DESC LIMIT 1"}
	selectTag  = &sqlite.Statement{Head: `SELECT coalesce(version, number) FROM (SELECT number, version, tag FROM past
		WHERE held = ? ORDER BY number DESC LIMIT 256)
		WHERE tag = ? ORDER BY number DESC`}
)

// shortHash is what is kept of a body's hash in the past.
func shortHash(hash int64) int64 { return hash & (1<<15 - 1) }

// never is the since of a version that was never its record's newest, and of
// what is to be as if it had never been.
const never = -1

// madeAt is when a version was saved first, in Unix nanoseconds.
func madeAt(c *sqlite.Conn, version int64) (at int64, err error) {
	found, err := c.One(selectMade, []driver.Value{version / codec.PerBlock}, func(r []driver.Value) { at = r[0].(int64) })
	if err == nil && !found {
		err = sqlite.Damaged("nothing says when version %d was made", version)
	}
	return at, err
}

// returned is the version among a record's last ones that has the body of row
// i, 0 when there is none.
func (s *saving) returned(g *observation, i int) (version int64, err error) {
	var same []int64
	err = s.c.Query(selectTag, 0, []driver.Value{g.number*slots + s.shape.slot, shortHash(s.hashes[i])}, func(r []driver.Value) error {
		same = append(same, r[0].(int64))
		return nil
	})
	if err != nil {
		return 0, err
	}
	body := s.p.Body[s.rows[i].Start:s.rows[i].End]
	for _, v := range same {
		e, err := s.blocks.entry(v)
		switch {
		case err != nil && !sqlite.IsDamaged(err):
			return 0, err
		case err == nil && bytes.Equal(e.Body, body):
			return v, nil
		}
	}
	return 0, nil
}

// newMark is a number for stretches of this save that begin without a new
// version.
func (s *saving) newMark() int64 {
	if s.mark == 0 {
		s.counters.block++
		s.counters.given.store = true
		s.mark = s.counters.block * codec.PerBlock
	}
	return s.mark
}

// begin ends the stretch of a record that lasts, if another one begins with
// row r, and gives what the held row says of the one that lasts then.
func (s *saving) begin(g *observation, r *understudy.Row) (stretch, since driver.Value, err error) {
	present := g.held && g.state&(stateGone|stateForgotten) == 0
	if present && g.version == r.Version {
		if g.period != g.version {
			stretch = g.period
		}
		if g.since != 0 {
			since = g.since
		}
		return stretch, since, nil
	}
	var before *codec.Entry
	if present {
		if before, err = s.before(g.version); err != nil {
			return nil, nil, err
		}
	}
	if g.held && g.since != never {
		s.end(g.number*slots+s.shape.slot, &g.currentState)
	}
	if err := s.reclock(g.number, before, r); err != nil {
		return nil, nil, err
	}
	if s.firstNew != 0 && r.Version >= s.firstNew {
		return nil, nil, nil
	}
	return s.newMark(), s.at, nil
}

// before is a version that is being replaced, nil when its body is not there.
func (s *saving) before(version int64) (*codec.Entry, error) {
	e, err := s.blocks.entry(version)
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
	case p.state&stateGone != 0:
		version = int64(0)
	case p.version != p.period:
		version = p.version
	}
	if p.state&(stateGone|stateForgotten) == 0 {
		tag = shortHash(p.hash)
	}
	s.past = append(s.past, held, p.period, version, since, tag)
}

// putPast notes the stretches that ended, and the new versions that are not
// their record's newest: a late one, and one that stands further up in a page
// in which its record stands twice.
func (s *saving) putPast(sights []observation) error {
	x := &s.db.scratch
	for i := range s.rows {
		r, g := &s.rows[i], &sights[x.of[i]]
		if s.firstNew == 0 || r.Version < s.firstNew || !g.late && r.Version == s.rows[g.last].Version {
			continue
		}
		s.past = append(s.past, g.number*slots+s.shape.slot, r.Version, nil, int64(never), shortHash(s.hashes[i]))
	}
	return s.c.ExecMany(insertPast, 5, s.past)
}

// went notes that a record is no more in the shapes in which it is present.
func (s *saving) went(record int64, present []currentState) error {
	if s.past = nil; s.blocks == nil {
		s.blocks = s.db.blocks(s.c)
	}
	for i := range present {
		p := &present[i]
		if p.since != never {
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
		shape, err := shapeNumber(s.c, s.kind.number, p.number%slots)
		if err == nil {
			err = retireClock(s.c, shape, p.number/slots, e)
		}
		if err != nil {
			return err
		}
	}
	if err := s.c.ExecMany(insertPast, 5, s.past); err != nil {
		return err
	}
	if err := leavePlace(s.c, s.kind.number, present[0].position); err != nil {
		return err
	}
	return s.c.Exec(updateGone, 0, s.at, s.newMark(), s.at, record*slots, record*slots+slots-1)
}

// fields names what differs between a record's version before and row r.
func (s *saving) fields(g *observation, r *understudy.Row) (understudy.Names, error) {
	if g.state&stateForgotten != 0 {
		return "", nil
	}
	e, err := s.before(g.version)
	if err != nil || e == nil {
		return "", err
	}
	return fieldsBetween(e.Body, s.p.Body[r.Start:r.End]), nil
}

// period is a time in which a record looked the same in one shape, or was
// gone (version 0).
type period struct {
	held, number, version int64
	since                 int64 // Unix nanoseconds
	until                 int64 // 0: it lasts
	seen, state           int64 // of the one that lasts
}

var (
	selectPast = &sqlite.Statement{Head: `SELECT held, number, coalesce(version, number), since, 0, 0 FROM past
		WHERE held BETWEEN ?1 AND ?2 AND since IS NOT -1
		UNION ALL SELECT number, coalesce(stretch, version), CASE WHEN state & 4 THEN 0 ELSE version END, since, seen, state FROM held
		WHERE number BETWEEN ?1 AND ?2 AND since IS NOT -1 ORDER BY 1, 2 DESC`}
)

// stretchesOf are those of held rows from first to last: row by row, the newest
// first. One that began while the clock was ahead is taken to have begun when
// a later one did.
func stretchesOf(c *sqlite.Conn, first, last int64) (all []period, err error) {
	err = c.Query(selectPast, 0, []driver.Value{first, last}, func(r []driver.Value) error {
		one := period{held: r[0].(int64), number: r[1].(int64), version: r[2].(int64), seen: r[4].(int64), state: r[5].(int64)}
		if r[3] != nil {
			one.since = r[3].(int64)
		} else if one.since, err = madeAt(c, one.version); err != nil {
			return err
		}
		if n := len(all); n > 0 && all[n-1].held == one.held {
			one.until = all[n-1].since
			one.since = min(one.since, one.until)
		}
		all = append(all, one)
		return nil
	})
	return all, err
}

// unix is a time the store keeps; the zero time for 0.
func unix(at int64) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return time.Unix(0, at).UTC()
}
