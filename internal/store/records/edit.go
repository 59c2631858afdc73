// This file changes opened blocks: it deletes versions and writes the rest back.

package records

import (
	"database/sql/driver"
	"slices"

	"understudy/internal/store/codec"
	"understudy/internal/store/db"
)

var (
	// selectNewer returns a row if a version is its record's newest.
	selectNewer = &db.Statement{Head: "SELECT 1 FROM held WHERE number = ? AND version = ?"}
	deleteLate  = &db.Statement{Head: "DELETE FROM past WHERE held = ? AND number = ? AND since = -1"}
	updateTaken = &db.Statement{Head: "UPDATE past SET tag = NULL WHERE held = ? AND coalesce(version, number) = ?"}
	selectKept  = &db.Statement{Head: `SELECT version FROM held WHERE number = ?1 AND state & 8 = 0
		UNION SELECT coalesce(version, number) FROM past WHERE held = ?1 AND tag IS NOT NULL`}
	selectIsOld = &db.Statement{Head: "SELECT 1 FROM clock WHERE shape = ? AND parent = ? AND old = 1 AND clock = ? AND record = ?"}
	insertBlock = &db.Statement{Head: "INSERT INTO block (number, shape, count, size, body) VALUES (?, ?, ?, ?, ?)"}
	deleteBlock = &db.Statement{Head: "DELETE FROM block WHERE number = ?"}
)

// DeleteOlder deletes the body of an older version. The history then knows only when the version was current. taken
// reports whether the body was there.
func (o *Blocks) DeleteOlder(version int64) (taken bool, err error) { return o.Erase(version, false) }

// Erase deletes the body of a version and its entries in the clock index. Set named for a newest version that
// is marked as forgotten; then the record's id is kept. Without named it does what DeleteOlder does. taken reports whether the body was
// there.
func (o *Blocks) Erase(version int64, named bool) (taken bool, err error) {
	e, err := o.ReadEntry(version)
	if err != nil || e.IsPruned() {
		return false, err
	}
	b, err := o.ReadBlock(version / codec.PerBlock)
	if err != nil {
		return false, err
	}
	was, held := *e, e.Record*Slots+b.Slot
	if !named {
		newest, err := db.QueryRow(o.c, selectNewer, []driver.Value{held, version}, func([]driver.Value) {})
		if err != nil || newest {
			return false, err
		}
	}
	err = o.eraseBody(version, named)
	if err == nil && !named {
		err = o.c.Execute(deleteLate, 0, held, version)
	}
	if err == nil {
		err = o.c.Execute(updateTaken, 0, held, version)
	}
	if err == nil && named {
		err = MoveClock(o.c, b.Shape, was.Record, &was)
	}
	if err != nil {
		return false, err
	}
	return true, o.removeOldClock(b.Shape, held, &was)
}

// removeOldClock removes a deleted version's clock from the earlier clocks of its record, unless another stored
// version has the same clock.
func (o *Blocks) removeOldClock(shape, held int64, was *codec.Entry) error {
	found, err := db.QueryRow(o.c, selectIsOld, []driver.Value{shape, int64(0), was.Clock, was.Record}, func([]driver.Value) {})
	if err != nil || !found {
		return err
	}
	kept, err := db.ListNumbers(o.c, selectKept, held)
	if err != nil {
		return err
	}
	for _, v := range kept {
		e, err := o.ReadEntry(v)
		if err != nil {
			return err
		}
		if e.Clock == was.Clock && e.Parent == was.Parent {
			return nil
		}
	}
	return VisitClockParents(o.c, was.Parent, func(parent int64) error {
		return o.c.Execute(deleteClock, 0, shape, parent, int64(1), was.Clock, was.Record)
	})
}

// ChangeBlock returns a block and marks it as changed.
func (o *Blocks) ChangeBlock(number int64) (*Block, error) {
	b, err := o.ReadBlock(number)
	if err == nil {
		b.Changed = true
	}
	return b, err
}

// eraseBody deletes a body. First it completes the deltas against this body, so that no part of the body is
// left anywhere. If named is set, the record's id is kept.
func (o *Blocks) eraseBody(version int64, named bool) error {
	e, err := o.ReadEntry(version)
	if err != nil {
		return err
	}
	if e.Depth > 0 {
		if err := o.completeDependents(version, e.Record); err != nil {
			return err
		}
	}
	b, err := o.ChangeBlock(version / codec.PerBlock)
	if err != nil {
		return err
	}
	if e = &b.Entries[version%codec.PerBlock]; named {
		if e, err = o.ReadEntry(version); err != nil {
			return err
		}
		*e = codec.Entry{Record: e.Record, ID: e.ID}
		return nil
	}
	*e = codec.Entry{}
	return nil
}

// completeDependents stores those versions whole that are deltas against the given version.
func (o *Blocks) completeDependents(version, record int64) error {
	b, err := o.ReadBlock(version / codec.PerBlock)
	if err != nil {
		return err
	}
	kept, err := db.ListNumbers(o.c, selectKept, record*Slots+b.Slot)
	if err != nil {
		return err
	}
	for _, v := range kept {
		if v >= version {
			continue
		}
		e, err := o.ReadEntry(v)
		if err != nil {
			return err
		}
		if e.Delta == nil || e.Delta.Base != version {
			continue
		}
		b, err := o.ChangeBlock(v / codec.PerBlock)
		if err != nil {
			return err
		}
		if e, err = o.ReadEntry(v); err != nil {
			return err
		}
		e.Delta = nil
		b.Entries[v%codec.PerBlock] = *e
	}
	return nil
}

// Write writes the changed blocks. It deletes a block that is empty.
func (o *Blocks) Write() error {
	for _, b := range o.open {
		if !b.Changed {
			continue
		}
		if err := o.From.put(o.c, b); err != nil {
			return err
		}
		b.Changed = false
	}
	return nil
}

// put writes a block back, or deletes it if it is empty.
func (o *Opener) put(c db.Conn, b *Block) error {
	if !slices.ContainsFunc(b.Entries, func(e codec.Entry) bool { return !e.IsPruned() || e.ID != "" }) {
		return c.Execute(deleteBlock, 0, b.Number)
	}
	// Most blocks shrink when they are written back. An UPDATE would leave each alone on its leaf of the tree.
	// A DELETE makes SQLite join leaves.
	if err := c.Execute(deleteBlock, 0, b.Number); err != nil {
		return err
	}
	return o.Insert(c, b.Number, b.Shape, b.Entries)
}

// Insert writes a new block.
func (o *Opener) Insert(c db.Conn, number, shape int64, entries []codec.Entry) error {
	o.raw = codec.AppendBlock(o.raw[:0], entries)
	o.written = o.Packer.Pack(o.written[:0], o.raw)
	err := c.Execute(insertBlock, 0, number, shape, int64(len(entries)), int64(len(o.raw)), o.written)
	if cap(o.raw) > maxRoom {
		o.raw, o.written = nil, nil
	}
	return err
}

// maxRoom is how many bytes of memory one large block may leave in the buffers.
const maxRoom = 1 << 20

// MaxBlock is about how many bytes of bodies one block takes, even if there are fewer than codec.PerBlock,
// because reading a record unpacks its whole block. A page of 50 calls makes four blocks of a dozen, and two
// packed blocks fill a page of the file. Reading 51 scattered calls then takes less than half the time that one
// large block needs, for about 45 bytes more per call. Half of this size gains little and costs another 30
// bytes.
const MaxBlock = 28 << 10
