// This file keeps erased records, and records past their retention, from being stored again while the upstream
// still shows them.

package store

import (
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"slices"

	"understudy"
	"understudy/internal/store/db"
	"understudy/internal/store/erase"
	"understudy/internal/store/names"
	"understudy/internal/store/pages"
	"understudy/internal/store/records"
)

// Reasons why the mirror sends a page to the client without storing it. A header of the response states the reason.
const (
	reasonErased = "erased"
	reasonAged   = "older than its retention"
)

// Horizon returns the clock, in Unix seconds, before which records of a kind are not kept. It is the current
// time less the kind's retention, or 0 if the kind has none. A walk can stop there.
func (d *DB) Horizon(source, kind string) int64 { return d.o.horizon(source, kind) }

func (o *Options) horizon(source, kind string) int64 {
	keep := o.Retention[source][kind]
	if keep <= 0 {
		return 0
	}
	return o.Now().Add(-keep).Unix()
}

// isTooOld reports whether a record with that clock is past its retention. A record without a clock is too old
// only if it was erased for its age before.
func isTooOld(clock, horizon int64, erased int64) bool {
	return horizon != 0 && (clock != 0 && clock < horizon || clock == 0 && erased == names.Aged)
}

var selectErased = &db.Statement{Head: "SELECT id, erased FROM names WHERE kind = ? AND erased > 0 AND id IN (",
	Standard: "SELECT n.id, erased FROM " + fmt.Sprintf(eachName, "?1") + "WHERE erased > 0", Tuple: "?", Tail: ")"}

// refuseRecords removes from the save the records that must not be stored. If there are any, the page itself is
// not stored. Its other records are.
func (s *saving) refuseRecords() error {
	if s.kind == nil || len(s.content.rows) == 0 {
		return nil
	}
	horizon := s.db.o.horizon(s.p.Key.Source, s.p.Kind)
	var marks map[string]int64
	if s.db.counts.erased.Load() > 0 {
		var err error
		if marks, err = s.readMarks(); err != nil {
			return err
		}
	}
	if horizon == 0 && len(marks) == 0 {
		return nil
	}
	rows, hashes := s.content.rows[:0:0], s.content.hashes[:0:0]
	for i, r := range s.content.rows {
		mark := int64(0)
		if len(marks) > 0 {
			mark = marks[string(db.AppendID(nil, s.kind.Prefix(), r.ID))]
		}
		switch {
		case mark == names.Erased:
			s.content.refused = reasonErased
		case isTooOld(r.Clock, horizon, mark):
			s.content.refused = cmp.Or(s.content.refused, reasonAged)
		default:
			rows, hashes = append(rows, r), append(hashes, s.content.hashes[i])
		}
	}
	s.content.rows, s.content.hashes = rows, hashes
	return nil
}

// wholePage is added to the column list of a page that is stored whole.
const wholePage = 2

var selectWhole = &db.Statement{Head: "SELECT number, size, body FROM page WHERE kind = ? AND list > 1"}

// deleteWhole deletes the pages of a kind that are stored whole and for whose rows mayNot returns true.
func deleteWhole(c db.Conn, loader *pages.Loader, kind int64, mayNot func([]understudy.Row) bool) error {
	var gone []int64
	err := c.Query(selectWhole, 0, []driver.Value{kind}, func(r []driver.Value) error {
		sk, err := loader.UnpackSkeleton(r[2].([]byte), r[1].(int64))
		if err != nil {
			return records.SkipDamaged(err)
		}
		if rows, _ := understudy.OutageRows(sk.Kept); mayNot(rows) {
			gone = append(gone, r[0].(int64))
		}
		return nil
	})
	for part := range slices.Chunk(gone, db.MaxTuples) {
		if err == nil {
			_, err = deletePagesOf(c, part)
		}
	}
	return err
}

// readMarks returns the marks of those records of the save that were erased, by stored id.
func (s *saving) readMarks() (map[string]int64, error) {
	marks := map[string]int64{}
	err := reads{s}.visitErasedArgs(func(n int, args []driver.Value) error {
		return s.c.Query(selectErased, n, args, func(r []driver.Value) error {
			marks[string(r[0].([]byte))] = r[1].(int64)
			return nil
		})
	})
	return marks, err
}

// visitErasedArgs calls do with the arguments of selectErased for the records of the save, some at a time.
func (r reads) visitErasedArgs(do func(n int, args []driver.Value) error) error {
	s := r.save
	for part := range slices.Chunk(s.content.rows, db.MaxTuples) {
		args := []driver.Value{s.kind.Number}
		for i := range part {
			args = append(args, db.AppendID(nil, s.kind.Prefix(), part[i].ID))
		}
		if err := do(len(part), args); err != nil {
			return err
		}
	}
	return nil
}

// canStorePage reports whether the page itself may be stored.
func (s *saving) canStorePage() bool { return s.content.refused == "" && canStorePage(s.p) }

var selectErasedCount = &db.Statement{Head: "SELECT erased FROM counter"}

// loadErased reads how many records were erased, so that a save need not look for marks if there are none.
func (n *counts) loadErased(c db.Conn) error {
	_, err := db.QueryRow(c, selectErasedCount, nil, func(r []driver.Value) { n.erased.Store(r[0].(int64)) })
	return err
}

var updateErased = &db.Statement{Head: "UPDATE counter SET erased = erased + ?"}

// marking is a transaction that marks records for erasing.
type marking struct {
	save   *saving
	cause  erase.Cause
	marked int64
}

// markBatch is the number of records that one transaction marks.
const markBatch = 256

var (
	selectUnmarked = &db.Statement{Head: "SELECT g.number, g.record, k.name, s.name FROM erasing g " +
		"JOIN kind k ON k.number = g.kind JOIN source s ON s.number = g.source WHERE g.state = 2 AND g.erasure = ? ORDER BY g.number LIMIT ?"}
	updateMarked = &db.Statement{Head: "UPDATE erasing SET state = 0 WHERE number = ?"}
)

func (e erasable) Mark(ctx context.Context, erasure int64) error {
	for n := markBatch; n == markBatch; {
		err := e.db.pool.ReleaseChange(ctx, func(c db.Conn) (err error) {
			n, err = e.markSome(c, erasure)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// markSome marks up to markBatch records and returns how many.
func (e erasable) markSome(c db.Conn, erasure int64) (n int, err error) {
	type row struct {
		number, record int64
		kind, source   string
	}
	var rows []row
	err = db.VisitRows(c, selectUnmarked, []driver.Value{erasure, int64(markBatch)}, func(r []driver.Value) {
		rows = append(rows, row{r[0].(int64), r[1].(int64), r[2].(string), r[3].(string)})
	})
	var m *marking
	kind := ""
	for _, one := range rows {
		if err == nil && (m == nil || one.kind != kind) {
			if m != nil {
				err = m.finish()
			}
			if err == nil {
				m, err = newMarking(e.db, c, one.source, one.kind, erase.CauseAsked)
				kind = one.kind
			}
		}
		var id string
		if err == nil {
			id, _, err = m.save.readNewest(one.record)
		}
		if err == nil {
			err = m.markRecord(id, one.record)
		}
		if err == nil {
			err = c.Execute(updateMarked, 0, one.number)
		}
		if err != nil {
			return 0, err
		}
	}
	if m != nil && err == nil {
		err = m.finish()
	}
	return len(rows), err
}

// newMarking begins to mark records of a kind. The caller has the writing connection, is in a transaction and
// ends with finish.
func newMarking(d *DB, c db.Conn, source, kind string, cause erase.Cause) (*marking, error) {
	p := &understudy.Page{Key: understudy.Key{Source: source}, Kind: kind}
	s := &saving{db: d, c: c, p: p, at: d.o.Now().UnixNano(), kind: d.catalog.Kind(source, kind)}
	return &marking{save: s, cause: cause}, s.readCounters()
}

// markRecord marks a listed record. If a person asked for the erasing, it adds a change, so that subscribers
// delete their copies. A record erased for its age causes no change.
func (m *marking) markRecord(id string, record int64) error {
	s := m.save
	mark := int64(names.Erased)
	if m.cause == erase.CauseAged {
		mark = names.Aged
	}
	changed, err := names.MarkErased(s.c, s.kind.Number, db.AppendID(nil, s.kind.Prefix(), id), mark)
	if err != nil {
		return err
	}
	if changed {
		m.marked++
	}
	version, present := int64(0), []currentState(nil)
	err = s.c.Query(selectShapesHeld, 0, rowsOf(record),
		func(r []driver.Value) error {
			if r[4].(int64)&records.Gone == 0 {
				version = max(version, r[1].(int64))
				present = append(present, stateFromRow(r))
			}
			return nil
		})
	if err != nil {
		return err
	}
	if version != 0 {
		if err := s.markGone(record, present); err != nil {
			return err
		}
		if m.cause == erase.CauseAged {
			s.counters.records--
			s.counters.changed.kind = true
			s.db.counts.changeSilently()
		} else {
			s.addChange(understudy.Deleted, id, record, version, "")
		}
	}
	return nil
}

// finish stores what the transaction has marked, and its changes.
func (m *marking) finish() error {
	s := m.save
	if err := s.db.Index.Update(s.c, s.indexes.edits); err != nil {
		return err
	}
	if err := s.putChanges(); err != nil {
		return err
	}
	if err := s.db.Nodes.ForgetWritten(s.c, s.kind.Number); err != nil {
		return err
	}
	s.db.pool.MarkChanged(db.Erasures)
	if err := s.c.Execute(updateErased, 0, m.marked); err != nil {
		return err
	}
	s.db.pool.CallAfterCommit(func() { s.db.counts.erased.Add(m.marked) }) // before the next save begins, which reads this number
	return s.writeCounters()
}

// listAndMark lists and marks aged records of one kind in one transaction.
func (d *DB) listAndMark(ctx context.Context, source, kind string, all []eraseTarget) error {
	return d.pool.ReleaseChange(ctx, func(c db.Conn) error {
		m, err := newMarking(d, c, source, kind, erase.CauseAged)
		if err != nil {
			return err
		}
		for _, f := range all {
			if err := m.markRecord(f.id, f.record); err != nil {
				return err
			}
			s := m.save
			err := c.Execute(insertErasing, 0, int64(0), s.counters.source, s.kind.Number, f.record, int64(m.cause), int64(0), "", s.at)
			if err != nil {
				return err
			}
		}
		return m.finish()
	})
}

// eraseTarget is a record to erase.
type eraseTarget struct {
	kind, id string
	record   int64
}

// IsErased reports whether a record must not be stored again. An empty kind means a record with that id of any kind.
func (d *DB) IsErased(ctx context.Context, source, kind, id string) (erased bool, err error) {
	err = d.pool.Read(ctx, func(c db.Conn) error {
		if d.counts.erased.Load() == 0 {
			return nil
		}
		for _, k := range d.catalog.Kinds() {
			if k.Source != source || kind != "" && kind != k.Name {
				continue
			}
			found, err := db.QueryRow(c, selectErasedOne, []driver.Value{k.Number, db.AppendID(nil, k.Prefix(), id)}, func([]driver.Value) {})
			if erased = erased || found; err != nil || erased {
				return err
			}
		}
		return nil
	})
	return erased, db.WrapError(false, err, "record %s %s %s", source, kind, id)
}

var selectErasedOne = &db.Statement{Head: "SELECT 1 FROM names WHERE kind = ? AND id = ? AND erased > 0"}
