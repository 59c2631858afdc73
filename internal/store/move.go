// Moves: what becomes of a place, and of the indexes, when a record comes, moves or goes.

package store

import (
	"database/sql/driver"
	"errors"
	"maps"
	"slices"

	"understudy"
	"understudy/internal/store/codec"
	"understudy/internal/store/index"
	"understudy/internal/store/order"
	"understudy/internal/store/postings"
	"understudy/internal/store/records"
	"understudy/internal/store/sqlite"
)

var countPresent = &sqlite.Statement{Head: "SELECT count(*) FROM held WHERE number BETWEEN ? AND ? AND state & 12 = 0"}

// signOf is the kind under which a record stands: negative when it is held in
// no shape.
func signOf(c *sqlite.Conn, kind, record int64) (int64, error) {
	present := int64(0)
	_, err := c.One(countPresent, rowsOf(record),
		func(r []driver.Value) { present = r[0].(int64) })
	if present == 0 {
		return -kind, err
	}
	return kind, err
}

var takePlace = &sqlite.Statement{Head: "DELETE FROM place WHERE kind = ? AND at = ? AND record = ? RETURNING kind"}

// takePlace takes a record from where it stands, and says under which kind that
// was.
func (s *placing) takePlace(record, at int64) (sign int64, err error) {
	for _, kind := range []int64{s.kind.Number, -s.kind.Number} {
		found, err := s.c.One(takePlace, []driver.Value{kind, at, record}, func([]driver.Value) {})
		if err != nil || found {
			return kind, err
		}
	}
	return 0, sqlite.Damaged("record %d does not stand at %d", record, at)
}

// edit tells the indexes what becomes of an observation whose row is r.
func (s *saving) edit(g *observation, r *understudy.Row) error {
	present := g.was.held && g.was.state&(records.Gone|records.Forgotten) == 0
	if present && g.was.version == r.Version && g.was.position.At == g.to.At {
		return nil
	}
	e := index.Edit{Kind: s.kind, Shape: s.shape.Number, Was: postings.At(g.was.position.At, s.shape.Number),
		Is: postings.At(g.to.At, s.shape.Number)}
	e.New = &codec.Entry{Record: g.was.number, ID: r.ID, Clock: r.Clock, Final: r.Final, Parent: r.Parent, Body: s.p.Body[r.Start:r.End]}
	if present && g.was.position.At != order.Nowhere { // else no index knows it
		var err error
		if e.Old, err = s.before(g.was.version); err != nil {
			return err
		}
		if e.Old != nil {
			old := *e.Old // its block may be written anew before it is looked at
			e.Old = &old
		}
	}
	if s.indexes.edits == nil {
		s.indexes.edits = make([]index.Edit, 0, len(s.content.rows))
	}
	s.indexes.edits = append(s.indexes.edits, e)
	if s.indexes.edited == nil {
		s.indexes.edited = make(map[int64]bool, len(s.content.rows))
	}
	s.indexes.edited[g.was.number] = true
	return nil
}

// editOthers tells the indexes that a record has moved in the shapes that the
// page does not show.
func (s *placing) editOthers(record, was, is int64) error {
	return s.c.Query(selectShapesHeld, 0, rowsOf(record),
		func(r []driver.Value) error {
			p := priorOf(r)
			if s.save.shape != nil && p.number == record*records.Slots+s.save.shape.Slot && s.save.indexes.edited[record] ||
				p.state&(records.Gone|records.Forgotten) != 0 {
				return nil
			}
			return s.editMoved(p.number, p.version, was, is)
		})
}

// editMoved tells the indexes that a held row's record has moved.
func (s *placing) editMoved(held, version, was, is int64) error {
	e, err := s.save.before(version)
	if err != nil || e == nil {
		return err
	}
	shape, err := records.ShapeNumber(s.c, s.kind.Number, held%records.Slots)
	if err != nil {
		return err
	}
	old := *e
	x := &s.save.indexes
	x.edits = append(x.edits, index.Edit{Kind: s.kind, Shape: shape, Was: postings.At(was, shape), Is: postings.At(is, shape), Old: &old,
		New: &old})
	return nil
}

// editShifted tells the indexes of the records that made room, but for those in
// the page.
func (s *placing) editShifted(sights []observation) error {
	if len(s.order.Shifted) == 0 {
		return nil
	}
	here := map[int64]bool{}
	for i := range sights {
		here[sights[i].was.number] = true
	}
	// In the order of their numbers, so that a block is hardly ever unpacked twice.
	for _, record := range slices.Sorted(maps.Keys(s.order.Shifted)) {
		if here[record] {
			continue
		}
		if err := s.editOthers(record, s.order.Shifted[record], s.order.Stands[record]); err != nil {
			return err
		}
	}
	return nil
}

// leave tells the indexes that a record is no more in a shape, whose held row
// is p.
func (s *saving) leaveOrder(p *currentState, e *codec.Entry) error {
	shape, err := records.ShapeNumber(s.c, s.kind.Number, p.number%records.Slots)
	if err != nil || p.position.At == order.Nowhere {
		return err
	}
	old := *e
	s.indexes.edits = append(s.indexes.edits, index.Edit{Kind: s.kind, Shape: shape, Was: postings.At(p.position.At, shape),
		Is:  postings.At(p.position.At, shape),
		Old: &old})
	return nil
}

var movePlace = &sqlite.Statement{Head: "UPDATE place SET kind = -kind WHERE kind = ? AND at = ?"}

// leavePlace puts a record that is held in no shape now among those that are gone.
func leavePlace(c *sqlite.Conn, kind int64, at order.Position) error {
	if at.At == order.Nowhere {
		return nil
	}
	return c.Exec(movePlace, 0, kind, at.At)
}

// skipNotFound passes over what is not held.
func skipNotFound(err error) error {
	if errors.Is(err, understudy.ErrNotFound) {
		return nil
	}
	return records.SkipDamaged(err)
}

// hide tells the indexes that a record is about to be no more in those of its
// shapes that are meant; in a transaction, while its bodies are there.
func (s *saving) hide(record int64, meant func(held int64) bool) error {
	at, stays := order.Position{At: order.Nowhere}, false
	err := s.c.Query(selectShapesHeld, 0, rowsOf(record),
		func(r []driver.Value) error {
			p := priorOf(r)
			if p.state&(records.Gone|records.Forgotten) != 0 {
				return nil
			}
			if !meant(p.number) {
				stays = true
				return nil
			}
			at = p.position
			s.db.counts.changeSilently()
			e, err := s.before(p.version)
			if err != nil || e == nil {
				return err
			}
			return s.leaveOrder(&p, e)
		})
	if err == nil && !stays {
		err = leavePlace(s.c, s.kind.Number, at)
	}
	if err == nil {
		err = s.db.Index.Update(s.c, s.indexes.edits)
	}
	return err
}
