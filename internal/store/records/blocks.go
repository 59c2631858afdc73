// Package records reads and changes the stored data of single records: their versions in packed blocks, their
// rows and states, the periods in which they looked the same, and the clocks by which they can be found.
//
// A record has one row for each shape in which it was seen. The number of the row is the record's number times
// Slots plus the slot of the shape. A row refers to a version. The number of a version is its block's number
// times codec.PerBlock plus its position in the block.
package records

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"slices"

	"understudy/internal/store/catalog"
	"understudy/internal/store/codec"
	"understudy/internal/store/db"
)

// Opener opens the blocks of a file. It is safe for concurrent use, except that only one goroutine at a time may write.
type Opener struct {
	Packer       codec.Packer
	catalog      *catalog.Catalog
	raw, written []byte // buffers that only the writing goroutine uses
}

// New returns an Opener for as many goroutines as unpack at the same time.
func New(catalog *catalog.Catalog, goroutines int) *Opener {
	return &Opener{Packer: codec.NewPacker(goroutines), catalog: catalog}
}

// Blocks are the blocks that one call has unpacked and may have changed.
type Blocks struct {
	From *Opener
	c    db.Conn
	open map[int64]*Block
}

// Block is an unpacked block.
type Block struct {
	Number, Shape int64
	Slot          int64 // the slot of the block's shape
	Entries       []codec.Entry
	Changed       bool
}

// Open returns an empty set of blocks that reads through a connection.
func (o *Opener) Open(c db.Conn) *Blocks {
	return &Blocks{From: o, c: c, open: map[int64]*Block{}}
}

// maxOpened is the maximum number of unpacked blocks that one call keeps. A page refers to few blocks and mostly in
// order, so few blocks are unpacked twice.
const maxOpened = 64

var (
	selectBlock = &db.Statement{Head: "SELECT b.count, b.size, b.body, h.slot, b.shape, b.number, NULL " +
		"FROM block b LEFT JOIN shape h ON h.number = b.shape WHERE b.number IN (", Tuple: "?", Tail: ")", Reads: db.Blocks}
	// BlockWithCreation reads blocks together with the times when they were created.
	BlockWithCreation = &db.Statement{Head: "SELECT b.count, b.size, b.body, h.slot, b.shape, b.number, (SELECT at " +
		"FROM made WHERE block <= b.number ORDER BY block DESC LIMIT 1) FROM block b LEFT JOIN shape h ON h.number = b.shape " +
		"WHERE b.number IN (", Tuple: "?", Tail: ")", Reads: db.Blocks}
)

// ReadBlock returns one block. Write stores the changes that callers make to it.
func (o *Blocks) ReadBlock(number int64) (*Block, error) {
	if b := o.open[number]; b != nil {
		return b, nil
	}
	return o.read(number)
}

// Expect announces that the open transaction will read a version, which is not unpacked yet.
func (o *Blocks) Expect(version int64) error {
	return o.c.Expect(selectBlock, 1, version/codec.PerBlock)
}

// UnpackAndKeep unpacks a block that was read before and keeps it.
func (o *Blocks) UnpackAndKeep(p *Packed) (*Block, error) {
	if _, err := o.From.Unpack(p, nil); err != nil {
		return nil, err
	}
	for i := range p.Block.Entries {
		if e := &p.Block.Entries[i]; e.Delta == nil && e.Parent == "" {
			e.Parent = o.From.ParentOf(p.Block.Shape, e.Body)
		}
	}
	b := p.Block
	if len(o.open) >= maxOpened { // drop the unchanged blocks
		maps.DeleteFunc(o.open, func(_ int64, b *Block) bool { return !b.Changed })
	}
	o.open[b.Number] = &b
	return &b, nil
}

// ReadEntry returns one version with its body.
func (o *Blocks) ReadEntry(version int64) (*codec.Entry, error) { return o.completeEntry(version, 0) }

// maxChain is an upper limit for the length of a chain of deltas.
const maxChain = 4 * codec.MaxDepth

// completeEntry returns a version with its body. depth is the number of deltas already followed.
func (o *Blocks) completeEntry(version int64, depth int) (*codec.Entry, error) {
	number, place := version/codec.PerBlock, int(version%codec.PerBlock)
	b, err := o.ReadBlock(number)
	if err != nil {
		return nil, err
	}
	if place >= len(b.Entries) {
		return nil, db.NewDamageError("version %d: block %d has %d bodies", version, number, len(b.Entries))
	}
	e := &b.Entries[place]
	if e.Delta == nil || e.Delta.Completed {
		return e, nil
	}
	if e.Delta.Base <= version || depth == maxChain {
		return nil, db.NewDamageError("version %d is stored as a difference to version %d, which cannot be", version, e.Delta.Base)
	}
	base, err := o.completeEntry(e.Delta.Base, depth+1)
	if err == nil {
		err = e.Complete(base)
	}
	if err != nil {
		return nil, db.NewDamageError("version %d, which is stored as a difference to version %d: %w", version, e.Delta.Base, err)
	}
	return e, nil
}

func (o *Blocks) read(number int64) (*Block, error) {
	all, err := o.ReadPacked(selectBlock, number)
	if err != nil {
		return nil, err
	}
	b, err := o.UnpackAndKeep(&all[0])
	if err != nil {
		return nil, db.NewDamageError("block %d: %w", number, err)
	}
	return b, nil
}

// Unpack unpacks a block. Its entries use the buffer room, which Unpack returns, grown if needed. It does not
// add parents that the block does not store; see ParentOf.
func (o *Opener) Unpack(p *Packed, room []byte) ([]byte, error) {
	raw, err := o.Packer.Unpack(room, p.Body, p.Size)
	if err != nil {
		return room, err
	}
	p.Block.Entries, err = codec.ParseBlock(raw)
	if err == nil && len(p.Block.Entries) != p.Count {
		err = fmt.Errorf("%d bodies, want %d", len(p.Block.Entries), p.Count)
	}
	return raw, err
}

// ParentOf returns the parent that a body in a shape names, or "" if it names none. Blocks written before
// parents were known do not store them.
func (o *Opener) ParentOf(shape int64, body []byte) string {
	return catalog.ParentOf(o.catalog.ParentField(shape), body)
}

// Packed is a block as stored in the file.
type Packed struct {
	Block       Block
	Body        []byte
	Count, Size int
	CreatedAt   int64 // when the block was created, in Unix nanoseconds, or 0 if that was not read
}

// ReadPacked reads several different blocks. It returns an error if a block is missing.
func (o *Blocks) ReadPacked(st *db.Statement, numbers ...int64) ([]Packed, error) {
	if len(numbers) == 0 {
		return nil, nil
	}
	args := make([]driver.Value, len(numbers))
	for i, n := range numbers {
		args[i] = n
	}
	all := make([]Packed, 0, len(numbers))
	err := o.c.Query(st, len(args), args, func(r []driver.Value) error {
		p := Packed{Count: int(r[0].(int64)), Size: int(r[1].(int64)), Body: r[2].([]byte)}
		p.Block.Shape, p.Block.Number = r[4].(int64), r[5].(int64)
		p.Block.Slot, _ = r[3].(int64)
		p.CreatedAt, _ = r[6].(int64)
		all = append(all, p)
		return nil
	})
	for _, n := range numbers {
		i := slices.IndexFunc(all, func(p Packed) bool { return p.Block.Number == n })
		if err == nil && i < 0 {
			err = db.NewDamageError("block %d %w", n, errMissing)
		}
	}
	return all, err
}

// IsMissing reports whether err says that a version's block no longer exists.
func IsMissing(err error) bool { return errors.Is(err, errMissing) }

// errMissing means that a block with the given number does not exist.
var errMissing = errors.New("is missing")

var selectAnyVersion = &db.Statement{Head: "SELECT version FROM held WHERE number BETWEEN ? AND ? LIMIT 1"}

// FindID returns the id of a record. It reads the id from the given version or, if that body is no longer
// stored, from the newest version.
func (o *Blocks) FindID(record, version int64) (string, error) {
	e, err := o.ReadEntry(version)
	if err == nil && e.ID != "" {
		return e.ID, nil
	}
	if err != nil && !errors.Is(err, errMissing) {
		return "", err
	}
	_, err = db.QueryRow(o.c, selectAnyVersion, []driver.Value{record * Slots, record*Slots + Slots - 1},
		func(r []driver.Value) { version = r[0].(int64) })
	if err == nil {
		e, err = o.ReadEntry(version)
	}
	if err != nil {
		return "", err
	}
	return e.ID, nil
}
