// The versions of a record on its way out, in one transaction.

package store

import (
	"cmp"
	"database/sql/driver"
	"slices"

	"understudy/internal/store/codec"
	"understudy/internal/store/erase"
	"understudy/internal/store/records"
	"understudy/internal/store/sqlite"
)

// Versions implements erase.Rows.
func (e erasable) Versions(c *sqlite.Conn) erase.Versions {
	return erasableVersions{db: e.db, c: c, blocks: e.db.opener.Open(c)}
}

// erasableVersions is erase.Versions.
type erasableVersions struct {
	db     *DB
	c      *sqlite.Conn
	blocks *records.Blocks
}

var (
	selectCurrentOf  = &sqlite.Statement{Head: "SELECT number, state FROM held WHERE number BETWEEN ? AND ? AND version = ?"}
	updateErasedHeld = &sqlite.Statement{Head: "UPDATE held SET state = state | 8, hash = 0 WHERE number = ?"}
)

// rowsOf are the first and the last number of a record's held rows.
func rowsOf(record int64) []driver.Value {
	return []driver.Value{record * records.Slots, record*records.Slots + records.Slots - 1}
}

// Of implements erase.Versions.
func (v erasableVersions) Of(record int64) (present map[int64]bool, all []int64, err error) {
	present = map[int64]bool{}
	err = v.c.Query(selectShapesHeld, 0, rowsOf(record), func(r []driver.Value) error {
		if r[4].(int64)&records.Gone == 0 {
			present[r[1].(int64)] = true
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	all, err = v.all(record)
	return present, all, err
}

// all are the versions of a record whose bodies are held.
func (v erasableVersions) all(record int64) (all []int64, err error) {
	err = v.c.Query(selectRecordVersions, 0, rowsOf(record), func(r []driver.Value) error {
		all = append(all, r[0].(int64))
		return nil
	})
	return all, err
}

// Entry implements erase.Versions.
func (v erasableVersions) Entry(version int64) (*codec.Entry, error) { return v.blocks.Entry(version) }

// Erase implements erase.Versions.
func (v erasableVersions) Erase(source, kind string, record, version int64, sparePresent bool) (taken bool, err error) {
	var current []int64
	again := false
	err = v.c.Query(selectCurrentOf, 0, append(rowsOf(record), version), func(r []driver.Value) error {
		current = append(current, r[0].(int64))
		again = again || sparePresent && r[1].(int64)&records.Gone == 0
		return nil
	})
	if err != nil || again { // it came back meanwhile
		return false, err
	}
	k := v.db.catalog.Kind(source, kind)
	if err := v.db.hide(v.c, v.blocks, k, record, func(held int64) bool { return slices.Contains(current, held) }); err != nil {
		return false, err
	}
	for _, held := range current {
		if err := v.c.Exec(updateErasedHeld, 0, held); err != nil {
			return false, err
		}
	}
	taken, err = v.blocks.Erase(version, len(current) > 0)
	if records.IsMissing(err) {
		err = v.wentMeanwhile(record, version, err)
	}
	return taken, err
}

// wentMeanwhile is nil when a version whose block is missing is not its record's
// any more: a row of the same record in an earlier transaction took it out, or the
// record was forgotten, since the batch was read. Else err: it is damage.
func (v erasableVersions) wentMeanwhile(record, version int64, err error) error {
	all, rerr := v.all(record)
	if rerr != nil || slices.Contains(all, version) {
		return cmp.Or(rerr, err)
	}
	return nil
}

// Forget implements erase.Versions.
func (v erasableVersions) Forget(record int64) error {
	if err := v.c.Exec(updateForgotten, 0, rowsOf(record)...); err != nil {
		return err
	}
	return v.c.Exec(deleteRecord, 0, rowsOf(record)...)
}

// Write implements erase.Versions.
func (v erasableVersions) Write() error { return v.blocks.Write() }
