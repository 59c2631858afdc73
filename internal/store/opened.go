// Opened blocks: versions of records unpacked once for what one caller does.

package store

import (
	"database/sql/driver"
	"errors"
	"fmt"

	"understudy/internal/store/codec"
	"understudy/internal/store/sqlite"
)

// opened is the blocks one call has unpacked, and may change.
type opened struct {
	db     *DB
	c      *sqlite.Conn
	blocks map[int64]*block
}

// block is a block taken apart.
type block struct {
	number, shape int64
	slot          int64 // of its shape
	entries       []codec.Entry
	changed       bool
}

func (db *DB) blocks(c *sqlite.Conn) *opened {
	return &opened{db: db, c: c, blocks: map[int64]*block{}}
}

// maxOpened bounds how many unpacked blocks one call holds at once; the walk
// of a page meets them in order, so hardly anything is unpacked twice.
const maxOpened = 64

var (
	selectBlock = &sqlite.Statement{Head: "SELECT b.count, b.size, b.body, h.slot, b.shape, b.number, NULL " +
		"FROM block b LEFT JOIN shape h ON h.number = b.shape WHERE b.number IN (", Tuple: "?", Tail: ")"}
	selectBlockMade = &sqlite.Statement{Head: "SELECT b.count, b.size, b.body, h.slot, b.shape, b.number, (SELECT at " +
		"FROM made WHERE block <= b.number ORDER BY block DESC LIMIT 1) FROM block b LEFT JOIN shape h ON h.number = b.shape " +
		"WHERE b.number IN (", Tuple: "?", Tail: ")"}
)

// block is one block; what is done to it write writes.
func (o *opened) block(number int64) (*block, error) {
	if b := o.blocks[number]; b != nil {
		return b, nil
	}
	b, err := o.open(number)
	if err != nil {
		return nil, err
	}
	if len(o.blocks) >= maxOpened {
		for n, b := range o.blocks {
			if !b.changed {
				delete(o.blocks, n)
			}
		}
	}
	o.blocks[number] = b
	return b, nil
}

// entry is one version, with its body.
func (o *opened) entry(version int64) (*codec.Entry, error) { return o.rested(version, 0) }

// maxChain is more than any version rests on.
const maxChain = 4 * codec.MaxDepth

// rested is entry for a version that depth others rest on.
func (o *opened) rested(version int64, depth int) (*codec.Entry, error) {
	number, place := version/codec.PerBlock, int(version%codec.PerBlock)
	b, err := o.block(number)
	if err != nil {
		return nil, err
	}
	if place >= len(b.entries) {
		return nil, sqlite.Damaged("version %d: block %d has %d bodies", version, number, len(b.entries))
	}
	e := &b.entries[place]
	if e.Delta == nil || e.Delta.Completed {
		return e, nil
	}
	if e.Delta.Base <= version || depth == maxChain {
		return nil, sqlite.Damaged("version %d rests on version %d", version, e.Delta.Base)
	}
	base, err := o.rested(e.Delta.Base, depth+1)
	if err == nil {
		err = e.Complete(base)
	}
	if err != nil {
		return nil, sqlite.Damaged("version %d, which rests on version %d: %w", version, e.Delta.Base, err)
	}
	return e, nil
}

func (o *opened) open(number int64) (*block, error) {
	all, err := o.packed(selectBlock, number)
	if err != nil {
		return nil, err
	}
	p := &all[0]
	raw, err := o.db.packer.Unpack(nil, p.body, p.size)
	if err != nil {
		return nil, sqlite.Damaged("block %d: %w", number, err)
	}
	if err := p.take(raw, p.count, o.db.parentField(p.shape)); err != nil {
		return nil, sqlite.Damaged("block %d: %w", number, err)
	}
	b := p.block
	return &b, nil
}

// take takes the unpacked form apart. Blocks saved before parents were known
// have none: they are in the bodies.
func (b *block) take(raw []byte, count int, parent string) (err error) {
	b.entries, err = codec.ParseBlock(raw)
	if err == nil && len(b.entries) != count {
		err = fmt.Errorf("%d bodies, want %d", len(b.entries), count)
	}
	if err != nil || parent == "" {
		return err
	}
	for i := range b.entries {
		if e := &b.entries[i]; e.Delta == nil && e.Parent == "" {
			e.Parent = parentOf(parent, e.Body)
		}
	}
	return nil
}

// isMissing reports that a version's body is not there any more.
func isMissing(err error) bool { return errors.Is(err, errMissing) }

// errMissing: there is no such block.
var errMissing = errors.New("is missing")

var selectAnyVersion = &sqlite.Statement{Head: "SELECT version FROM held WHERE number BETWEEN ? AND ? LIMIT 1"}

// id is the id of a record, by one of its versions: that, or, when nobody
// needed it any more, the newest.
func (o *opened) id(record, version int64) (string, error) {
	e, err := o.entry(version)
	if err == nil && e.ID != "" {
		return e.ID, nil
	}
	if err != nil && !errors.Is(err, errMissing) {
		return "", err
	}
	_, err = o.c.One(selectAnyVersion, []driver.Value{record * slots, record*slots + slots - 1},
		func(r []driver.Value) { version = r[0].(int64) })
	if err == nil {
		e, err = o.entry(version)
	}
	if err != nil {
		return "", err
	}
	return e.ID, nil
}
