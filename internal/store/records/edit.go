// Editing opened blocks: versions are taken out, and what is left is written back.

package records

import (
	"database/sql/driver"
	"slices"

	"understudy/internal/store/codec"
	"understudy/internal/store/sqlite"
)

var (
	// selectNewer answers when a version is its record's newest.
	selectNewer = &sqlite.Statement{Head: "SELECT 1 FROM held WHERE number = ? AND version = ?"}
	deleteLate  = &sqlite.Statement{Head: "DELETE FROM past WHERE held = ? AND number = ? AND since = -1"}
	updateTaken = &sqlite.Statement{Head: "UPDATE past SET tag = NULL WHERE held = ? AND coalesce(version, number) = ?"}
	selectKept  = &sqlite.Statement{Head: `SELECT version FROM held WHERE number = ?1 AND state & 8 = 0
		UNION SELECT coalesce(version, number) FROM past WHERE held = ?1 AND tag IS NOT NULL`}
	selectIsOld = &sqlite.Statement{Head: "SELECT 1 FROM clock WHERE shape = ? AND parent = ? AND old = 1 AND clock = ? AND record = ?"}
	takeBlock   = &sqlite.Statement{Head: "DELETE FROM block WHERE number = ? RETURNING shape"}
	insertBlock = &sqlite.Statement{Head: "INSERT INTO block (number, shape, count, size, body) VALUES (?, ?, ?, ?, ?)"}
	deleteBlock = &sqlite.Statement{Head: "DELETE FROM block WHERE number = ?"}
)

// TakeOut takes an older version's body out, of which the past will know no
// more than when it was.
func (o *Blocks) TakeOut(version int64) (taken bool, err error) {
	e, err := o.Entry(version)
	if err != nil || e.Pruned() {
		return false, err
	}
	b, err := o.Block(version / codec.PerBlock)
	if err != nil {
		return false, err
	}
	was, held := *e, e.Record*Slots+b.Slot
	newest, err := o.c.One(selectNewer, []driver.Value{held, version}, func([]driver.Value) {})
	if err != nil || newest {
		return false, err
	}
	if err := o.empty(version, false); err != nil {
		return false, err
	}
	if err := o.c.Exec(deleteLate, 0, held, version); err != nil {
		return false, err
	}
	if err := o.c.Exec(updateTaken, 0, held, version); err != nil {
		return false, err
	}
	return true, o.unclockOld(b.Shape, held, &was)
}

// Erase takes a version's body out, and with it what its record is found by;
// named, for a newest one that is marked as forgotten: its record's id stays.
// taken says that it was there.
func (o *Blocks) Erase(version int64, named bool) (taken bool, err error) {
	if !named {
		return o.TakeOut(version)
	}
	e, err := o.Entry(version)
	if err != nil || e.Pruned() {
		return false, err
	}
	b, err := o.Block(version / codec.PerBlock)
	if err != nil {
		return false, err
	}
	was, held := *e, e.Record*Slots+b.Slot
	if err := o.empty(version, true); err != nil {
		return false, err
	}
	if err := o.c.Exec(updateTaken, 0, held, version); err != nil {
		return false, err
	}
	if err := RetireClock(o.c, b.Shape, was.Record, &was); err != nil {
		return false, err
	}
	return true, o.unclockOld(b.Shape, held, &was)
}

// unclockOld makes a record not be found by the clock of a version that was
// taken out, unless another one had it too.
func (o *Blocks) unclockOld(shape, held int64, was *codec.Entry) error {
	found, err := o.c.One(selectIsOld, []driver.Value{shape, int64(0), was.Clock, was.Record}, func([]driver.Value) {})
	if err != nil || !found {
		return err
	}
	kept, err := heldVersions(o.c, held)
	if err != nil {
		return err
	}
	for _, v := range kept {
		e, err := o.Entry(v)
		if err != nil {
			return err
		}
		if e.Clock == was.Clock && e.Parent == was.Parent {
			return nil
		}
	}
	return EachClock(o.c, was.Parent, func(parent int64) error {
		return o.c.Exec(deleteClock, 0, shape, parent, int64(1), was.Clock, was.Record)
	})
}

// heldVersions are the versions of a held row whose bodies are there.
func heldVersions(c *sqlite.Conn, held int64) (versions []int64, err error) {
	err = c.Query(selectKept, 0, []driver.Value{held}, func(r []driver.Value) error {
		versions = append(versions, r[0].(int64))
		return nil
	})
	return versions, err
}

// Edit is block for one that is going to be changed.
func (o *Blocks) Edit(number int64) (*Block, error) {
	b, err := o.Block(number)
	if err == nil {
		b.Changed = true
	}
	return b, err
}

// empty takes a body out. What rests on it gets its body whole, so that
// nothing of this one is left anywhere; its record's id stays when named.
func (o *Blocks) empty(version int64, named bool) error {
	e, err := o.Entry(version)
	if err != nil {
		return err
	}
	if e.Depth > 0 {
		if err := o.raise(version, e.Record); err != nil {
			return err
		}
	}
	b, err := o.Edit(version / codec.PerBlock)
	if err != nil {
		return err
	}
	if e = &b.Entries[version%codec.PerBlock]; named {
		if e, err = o.Entry(version); err != nil {
			return err
		}
		*e = codec.Entry{Record: e.Record, ID: e.ID}
		return nil
	}
	*e = codec.Entry{}
	return nil
}

// raise makes the versions whole that rest on one.
func (o *Blocks) raise(version, record int64) error {
	b, err := o.Block(version / codec.PerBlock)
	if err != nil {
		return err
	}
	kept, err := heldVersions(o.c, record*Slots+b.Slot)
	if err != nil {
		return err
	}
	for _, v := range kept {
		if v >= version {
			continue
		}
		e, err := o.Entry(v)
		if err != nil {
			return err
		}
		if e.Delta == nil || e.Delta.Base != version {
			continue
		}
		b, err := o.Edit(v / codec.PerBlock)
		if err != nil {
			return err
		}
		if e, err = o.Entry(v); err != nil {
			return err
		}
		e.Delta = nil
		b.Entries[v%codec.PerBlock] = *e
	}
	return nil
}

// Write writes what was changed; a block in which nothing is left is deleted.
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

// put writes a block back, or deletes it when nothing is left in it.
func (o *Opener) put(c *sqlite.Conn, b *Block) error {
	if !slices.ContainsFunc(b.Entries, func(e codec.Entry) bool { return !e.Pruned() || e.ID != "" }) {
		return c.Exec(deleteBlock, 0, b.Number)
	}
	// Most blocks shrink when they are written back. An update would leave each
	// alone on its leaf of the tree; a row that goes makes SQLite join leaves.
	var shape int64
	found, err := c.One(takeBlock, []driver.Value{b.Number}, func(r []driver.Value) { shape = r[0].(int64) })
	if err == nil && !found {
		err = sqlite.Damaged("block %d is missing", b.Number)
	}
	if err != nil {
		return err
	}
	return o.Insert(c, b.Number, shape, b.Entries)
}

// Insert writes a new block.
func (o *Opener) Insert(c *sqlite.Conn, number, shape int64, entries []codec.Entry) error {
	o.raw = codec.AppendBlock(o.raw[:0], entries)
	o.written = o.Packer.Pack(o.written[:0], o.raw)
	err := c.Exec(insertBlock, 0, number, shape, int64(len(entries)), int64(len(o.raw)), o.written)
	if cap(o.raw) > maxRoom {
		o.raw, o.written = nil, nil
	}
	return err
}

// maxRoom is how much memory one large block may leave behind.
const maxRoom = 1 << 20

// MaxBlock is about how many bytes of bodies are packed as one, even when
// they are fewer than perBlock: a record looked for unpacks all of its block.
// A page of 50 calls makes four blocks of a dozen, of which two, packed, fill
// a page of the file; 51 calls that are far from each other are read in less
// than half the time that one block takes, for about 45 bytes a call more.
// Half of it gains little and costs 30 bytes more.
const MaxBlock = 28 << 10
