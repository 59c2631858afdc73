// This file updates places and indexes when a record appears, moves or disappears.

package store

import (
	"database/sql/driver"
	"maps"
	"slices"

	"understudy"
	"understudy/internal/store/codec"
	"understudy/internal/store/db"
	"understudy/internal/store/index"
	"understudy/internal/store/order"
	"understudy/internal/store/postings"
	"understudy/internal/store/records"
)

var countPresent = &db.Statement{Head: "SELECT count(*) FROM held WHERE number BETWEEN ? AND ? AND state & 12 = 0"}

var deletePlace = &db.Statement{Head: "DELETE FROM place WHERE kind = ? AND at = ? AND record = ? RETURNING kind"}

// removePlace deletes the place of a record and returns the kind number that it was stored under, which may be
// negative.
func (s *placing) removePlace(record, at int64) (sign int64, err error) {
	for _, kind := range []int64{s.kind.Number, -s.kind.Number} {
		found, err := db.QueryRow(s.c, deletePlace, []driver.Value{kind, at, record}, func([]driver.Value) {})
		if err != nil || found {
			return kind, err
		}
	}
	return 0, db.NewDamageError("record %d is not at position %d", record, at)
}

// addEdit adds an index edit for an observation whose row is r. It adds none if neither the version nor the
// place changes.
func (s *saving) addEdit(g *observation, r *understudy.Row) error {
	present := g.stored.hasRow && g.stored.state&(records.Gone|records.Forgotten) == 0
	if present && g.stored.version == r.Version && g.stored.position.At == g.newPosition.At {
		return nil
	}
	e := index.Edit{Kind: s.kind, Was: postings.New(g.stored.position.At, s.shape.Number),
		Is: postings.New(g.newPosition.At, s.shape.Number)}
	e.New = &codec.Entry{Record: g.stored.number, ID: r.ID, Clock: r.Clock, Final: r.Final, Parent: r.Parent, Body: s.p.Body[r.Start:r.End]}
	if present && g.stored.position.At != order.Nowhere { // a record without a place is in no index
		var err error
		if e.Old, err = s.readReplaced(g.stored.version); err != nil {
			return err
		}
		if e.Old != nil {
			old := *e.Old // a copy of the old entry, because its block may be rewritten before the index reads it
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
	s.indexes.edited[g.stored.number] = true
	return nil
}

// addOtherEdits adds index edits for a record that moved, in those shapes that the page does not show.
func (s *placing) addOtherEdits(record, was, is int64) error {
	return s.c.Query(selectShapesHeld, 0, rowsOf(record),
		func(r []driver.Value) error {
			p := stateFromRow(r)
			if s.save.shape != nil && p.number == record*records.Slots+s.save.shape.Slot && s.save.indexes.edited[record] ||
				p.state&(records.Gone|records.Forgotten) != 0 {
				return nil
			}
			return s.addMoveEdit(p.number, p.version, was, is)
		})
}

// addMoveEdit adds an index edit for a moved record in one shape. held is the record's row number in table held.
func (s *placing) addMoveEdit(held, version, was, is int64) error {
	e, err := s.save.readReplaced(version)
	if err != nil || e == nil {
		return err
	}
	shape, err := s.save.findShape(held % records.Slots)
	if err != nil {
		return err
	}
	old := *e
	x := &s.save.indexes
	x.edits = append(x.edits, index.Edit{Kind: s.kind, Was: postings.New(was, shape), Is: postings.New(is, shape), Old: &old, New: &old})
	return nil
}

// addShiftEdits adds index edits for records that were moved to make room for others. It leaves out the records of
// the page being saved.
func (s *placing) addShiftEdits(sights []observation) error {
	if len(s.order.FormerPositions) == 0 {
		return nil
	}
	here := map[int64]bool{}
	for i := range sights {
		here[sights[i].stored.number] = true
	}
	// In ascending order of record numbers a block is rarely unpacked more than once.
	for _, record := range slices.Sorted(maps.Keys(s.order.FormerPositions)) {
		if here[record] {
			continue
		}
		if err := s.addOtherEdits(record, s.order.FormerPositions[record], s.order.CurrentPositions[record]); err != nil {
			return err
		}
	}
	return nil
}

func (s *saving) findShape(slot int64) (number int64, err error) {
	if s.shape != nil && slot == s.shape.Slot {
		return s.shape.Number, nil
	}
	return records.FindShapeNumber(s.c, s.kind.Number, slot)
}

// addRemoval adds an index edit for a record that is no longer present in the shape of its row p.
func (s *saving) addRemoval(shape int64, p *currentState, e *codec.Entry) {
	if p.position.At == order.Nowhere {
		return
	}
	old := *e
	s.indexes.edits = append(s.indexes.edits, index.Edit{Kind: s.kind, Was: postings.New(p.position.At, shape),
		Is: postings.New(p.position.At, shape), Old: &old})
}

var negatePlaceKind = &db.Statement{Head: "UPDATE place SET kind = -kind WHERE kind = ? AND at = ?"}

// moveToDeletedPlace moves a record that is no longer present in any shape to the places of deleted records.
func moveToDeletedPlace(c db.Conn, kind int64, at order.Position) error {
	if at.At == order.Nowhere {
		return nil
	}
	return c.Execute(negatePlaceKind, 0, kind, at.At)
}

// removeFromIndexes removes a record from the indexes in those of its shapes for which meant returns true. Call it in a
// transaction, while the record's bodies are still stored.
func (s *saving) removeFromIndexes(record int64, meant func(held int64) bool) error {
	at, stays := order.Position{At: order.Nowhere}, false
	err := s.c.Query(selectShapesHeld, 0, rowsOf(record),
		func(r []driver.Value) error {
			p := stateFromRow(r)
			if p.state&(records.Gone|records.Forgotten) != 0 {
				return nil
			}
			if !meant(p.number) {
				stays = true
				return nil
			}
			at = p.position
			s.db.counts.changeSilently()
			e, err := s.readReplaced(p.version)
			if err != nil || e == nil {
				return err
			}
			shape, err := s.findShape(p.number % records.Slots)
			if err == nil {
				s.addRemoval(shape, &p, e)
			}
			return err
		})
	if err == nil && !stays {
		err = moveToDeletedPlace(s.c, s.kind.Number, at)
	}
	if err == nil {
		err = s.db.Index.Update(s.c, s.indexes.edits)
	}
	return err
}
