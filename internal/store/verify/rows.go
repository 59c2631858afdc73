// This file verifies rows of the database: blocks, states of records, names and pages.

package verify

import (
	"database/sql/driver"
	"errors"
	"fmt"

	"understudy"
	"understudy/internal/store/codec"
	"understudy/internal/store/db"
	"understudy/internal/store/pages"
	"understudy/internal/store/records"
)

var (
	selectAllBlocks = &db.Statement{Head: "SELECT b.number, b.shape, b.count, b.size, b.body, h.slot FROM block b LEFT " +
		"JOIN shape h ON h.number = b.shape ORDER BY b.number", Whole: true}
	selectHeldRow = &db.Statement{Head: "SELECT version, hash FROM held WHERE number = ?"}
	selectPastTag = &db.Statement{Head: "SELECT tag FROM past WHERE held = ? AND number = ?"}
)

// checkBlocks unpacks every block. Each version in it must be its record's current version, or table past must have it
// with its hash.
func (v *verifying) checkBlocks() error {
	all := v.db.records.Open(v.c)
	return v.visitRows(selectAllBlocks, func(r []driver.Value) error {
		number, count := r[0].(int64), r[2].(int64)
		v.report.Blocks++
		v.done += count
		b, err := all.UnpackAndKeep(&records.Packed{Block: records.Block{Number: number, Shape: r[1].(int64)}, Count: int(count),
			Size: int(r[3].(int64)), Body: r[4].([]byte)})
		switch {
		case err != nil:
			v.addProblem("block %d: %v", number, err)
		case r[5] == nil:
			v.addProblem("block %d: its shape %d does not exist", number, r[1])
		default:
			for i := range b.Entries {
				version := number*codec.PerBlock + int64(i)
				if e, err := all.ReadEntry(version); err != nil {
					v.addProblem("%v", err)
				} else if err := v.checkVersion(e, version, r[5].(int64)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// errStop ends a scan of rows after enough problems were found.
var errStop = errors.New("enough")

// checkVersion checks one version of a block against the row of its record in table held or table past.
func (v *verifying) checkVersion(e *codec.Entry, number, slot int64) error {
	if e.IsPruned() {
		return nil // the version was deleted; other checks report what still needs it
	}
	v.report.Versions++
	held, hash := e.Record*records.Slots+slot, records.BodyHash(e.Body)
	current, same := int64(0), false
	_, err := db.QueryRow(v.c, selectHeldRow, []driver.Value{held}, func(r []driver.Value) {
		current, same = r[0].(int64), r[1].(int64) == hash
	})
	if err != nil {
		return err
	}
	if current == number {
		if !same {
			v.addProblem("record %d (%s): the hash of its current version %d is wrong", e.Record, e.ID, number)
		}
		return nil
	}
	var tag driver.Value
	found, err := db.QueryRow(v.c, selectPastTag, []driver.Value{held, number}, func(r []driver.Value) { tag = r[0] })
	switch {
	case err != nil:
		return err
	case !found:
		v.addProblem("record %d (%s): version %d is neither its current version nor an earlier one", e.Record, e.ID, number)
	case tag != records.ShortHash(hash):
		v.addProblem("record %d (%s): the contents of its version %d have changed", e.Record, e.ID, number)
	}
	return nil
}

var (
	selectAllHeld = &db.Statement{Head: "SELECT number, version, state, hash FROM held ORDER BY version", Whole: true}
	selectAllPast = &db.Statement{Head: "SELECT held, coalesce(version, number), tag, since FROM past " +
		"WHERE tag IS NOT NULL OR version IS DISTINCT FROM 0 ORDER BY 2", Whole: true}
	selectClocked = &db.Statement{Head: "SELECT max(1 - old) FROM clock WHERE shape = ? AND parent = ? AND clock = ? " +
		"AND record = ? AND old IN (0, 1)"}
	selectAllClock = &db.Statement{Head: `SELECT c.record, c.clock, c.parent, h.version, h.state, coalesce(p.id, '')
		FROM clock c JOIN shape s ON s.number = c.shape
		LEFT JOIN held h ON h.number = c.record * 64 + s.slot LEFT JOIN parent p ON p.number = c.parent WHERE c.old = 0`, Whole: true}
)

// checkClock checks that the index of clocks has the clock of a version. newest means that it must be the record's
// current clock.
func (v *verifying) checkClock(blocks *records.Blocks, e *codec.Entry, version int64, newest bool) error {
	b, err := blocks.ReadBlock(version / codec.PerBlock)
	if err != nil {
		return err
	}
	return records.VisitClockParents(v.c, e.Parent, func(parent int64) error {
		var now driver.Value
		_, err := db.QueryRow(v.c, selectClocked, []driver.Value{b.Shape, parent, e.Clock, e.Record}, func(r []driver.Value) { now = r[0] })
		if err == nil && (now == nil || newest && now != int64(1)) {
			v.addProblem("record %d (%s): the index of times lacks its time %d", e.Record, e.ID, e.Clock)
		}
		return err
	})
}

// checkPast checks the earlier versions of records.
func (v *verifying) checkPast() error {
	blocks := v.db.records.Open(v.c)
	return v.visitRows(selectAllPast, func(r []driver.Value) error {
		record, version := r[0].(int64)/records.Slots, r[1].(int64)
		if r[2] == nil {
			return nil // the body of this version was deleted
		}
		switch e, err := blocks.ReadEntry(version); {
		case err != nil:
			v.addProblem("record %d: %v", record, err)
		case e.Record != record || records.ShortHash(records.BodyHash(e.Body)) != r[2].(int64):
			v.addProblem("record %d: the contents of its version %d have changed", record, version)
		case r[3] != int64(records.NeverNewest):
			if err := v.checkClock(blocks, e, version, false); err != nil {
				return err
			}
		}
		if r[3] == nil {
			if _, err := records.ReadCreation(v.c, version); err != nil {
				v.addProblem("record %d: %v", record, err)
			}
		}
		return nil
	})
}

// checkClocks checks that each record in the index of clocks is present and has that clock.
func (v *verifying) checkClocks() error {
	blocks := v.db.records.Open(v.c)
	return v.visitRows(selectAllClock, func(r []driver.Value) error {
		record := r[0].(int64)
		if r[3] == nil || r[4].(int64)&(records.Gone|records.Forgotten) != 0 {
			v.addProblem("record %d: the index of times contains it, but it is not stored", record)
			return nil
		}
		switch e, err := blocks.ReadEntry(r[3].(int64)); {
		case err != nil:
			v.addProblem("record %d: %v", record, err)
		case e.Clock != r[1].(int64) || r[2].(int64) != 0 && e.Parent != r[5].(string):
			v.addProblem("record %d (%s): its time is %d, but the index of times has %d", record, e.ID, e.Clock, r[1])
		}
		return nil
	})
}

// checkHeld checks the current version of every record.
func (v *verifying) checkHeld() error {
	blocks := v.db.records.Open(v.c)
	return v.visitRows(selectAllHeld, func(r []driver.Value) error {
		e, err := blocks.ReadEntry(r[1].(int64))
		switch record := r[0].(int64) / records.Slots; {
		case err != nil:
			v.addProblem("record %d: %v", record, err)
		case e.Record != record:
			v.addProblem("record %d: its version %d belongs to record %d", record, r[1], e.Record)
		case e.IsPruned() != (r[2].(int64)&records.Forgotten != 0):
			v.addProblem("record %d: the body of its version %d is missing", record, r[1])
		case !e.IsPruned():
			if err := v.checkClock(blocks, e, r[1].(int64), r[2].(int64)&records.Gone == 0); err != nil {
				return err
			}
		}
		return nil
	})
}

var selectAllNames = &db.Statement{Head: `SELECT n.record, n.id, k.prefix, (SELECT version FROM held
	WHERE number BETWEEN n.record * 64 AND n.record * 64 + 63 LIMIT 1)
	FROM names n JOIN kind k ON k.number = n.kind ORDER BY n.record`, Whole: true}

// checkNames compares every id with the id in a version of its record.
func (v *verifying) checkNames() error {
	blocks, last := v.db.records.Open(v.c), int64(0)
	return v.visitRows(selectAllNames, func(r []driver.Value) error {
		v.report.Gone++ // counts all names; the number of present records is subtracted later
		if r[0] == last {
			v.addProblem("record %d has two ids", last)
		}
		last = r[0].(int64)
		id, err := db.DecodeID(r[2].(string), r[1].([]byte))
		if err != nil || r[3] == nil {
			v.addProblem("record %d: it has no version, or its id cannot be read (%v)", r[0], err)
		} else if e, err := blocks.ReadEntry(r[3].(int64)); err != nil {
			v.addProblem("record %d: %v", r[0], err)
		} else if e.ID != id {
			v.addProblem("record %d has the id %s, but its version has the id %s", r[0], id, e.ID)
		}
		return nil
	})
}

var selectAllPages = &db.Statement{Head: `SELECT p.list, p.status, p.generation, p.at, p.version, p.sum, p.size, p.body, p.kind,
	k.name, k.prefix, k.generation, h.name, h.slot, p.number, p.read, p.key, s.name
	FROM page p LEFT JOIN kind k ON k.number = p.kind LEFT JOIN shape h ON h.number = p.shape LEFT
	JOIN source s ON s.number = p.source ORDER BY p.number`, Whole: true}

// checkPages rebuilds every page from its versions.
func (v *verifying) checkPages() error {
	blocks := v.db.records.Open(v.c)
	return v.visitRows(selectAllPages, func(r []driver.Value) error {
		v.report.Pages++
		var row pages.Row
		row.Scan(r)
		name := fmt.Sprintf("page %d", r[14])
		sk, err := v.db.pages.UnpackSkeleton(row.Body, row.Size)
		if err == nil {
			source, _ := r[17].(string)
			key := understudy.Key{Source: source, URI: sk.URI}
			name = "page " + key.String()
			if pages.KeyHash(key) != r[16].(int64) {
				v.addProblem("%s: it cannot be found by its key", name)
			}
			_, err = v.db.pages.Assemble(&row, sk, blocks)
		}
		if err != nil {
			v.addProblem("%s: %v", name, err)
		}
		return nil
	})
}
