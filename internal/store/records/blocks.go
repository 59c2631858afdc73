// Package records reads and changes what the file has of single records: their versions
// in packed blocks, their rows and states, the times they looked the same, and the
// clocks they are found by.
//
// A record has a row for each shape it was seen in, whose number is that of the
// record times Slots and the shape's slot. A row refers to a version: a block's number
// times codec.PerBlock and the place in it.
package records

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"understudy/internal/store/catalog"
	"understudy/internal/store/codec"
	"understudy/internal/store/sqlite"
)

// Opener opens the blocks of a file. Many goroutines may use it at once; one at a time
// writes what it has changed.
type Opener struct {
	Packer       codec.Packer
	catalog      *catalog.Catalog
	raw, written []byte // of the one that writes
}

// New makes one for as many goroutines as unpack at once.
func New(catalog *catalog.Catalog, goroutines int) *Opener {
	return &Opener{Packer: codec.NewPacker(goroutines), catalog: catalog}
}

// Blocks is the blocks one call has unpacked, and may change.
type Blocks struct {
	From *Opener
	c    *sqlite.Conn
	open map[int64]*Block
}

// Block is a block taken apart.
type Block struct {
	Number, Shape int64
	Slot          int64 // of its shape
	Entries       []codec.Entry
	Changed       bool
}

// Open is no blocks yet, of what a connection sees.
func (o *Opener) Open(c *sqlite.Conn) *Blocks {
	return &Blocks{From: o, c: c, open: map[int64]*Block{}}
}

// maxOpened bounds how many unpacked blocks one call holds at once; the walk
// of a page meets them in order, so hardly anything is unpacked twice.
const maxOpened = 64

var (
	selectBlock = &sqlite.Statement{Head: "SELECT b.count, b.size, b.body, h.slot, b.shape, b.number, NULL " +
		"FROM block b LEFT JOIN shape h ON h.number = b.shape WHERE b.number IN (", Tuple: "?", Tail: ")", Reads: sqlite.Blocks}
	// BlockMade reads blocks with the times they were made at.
	BlockMade = &sqlite.Statement{Head: "SELECT b.count, b.size, b.body, h.slot, b.shape, b.number, (SELECT at " +
		"FROM made WHERE block <= b.number ORDER BY block DESC LIMIT 1) FROM block b LEFT JOIN shape h ON h.number = b.shape " +
		"WHERE b.number IN (", Tuple: "?", Tail: ")", Reads: sqlite.Blocks}
)

// Block is one block; what is done to it write writes.
func (o *Blocks) Block(number int64) (*Block, error) {
	if b := o.open[number]; b != nil {
		return b, nil
	}
	return o.read(number)
}

// keep keeps a block among those that are unpacked. Where they are many, those that
// are not changed go.
func (o *Blocks) keep(b *Block) {
	if len(o.open) >= maxOpened {
		for n, b := range o.open {
			if !b.Changed {
				delete(o.open, n)
			}
		}
	}
	o.open[b.Number] = b
}

// Take takes a block apart that lies in the file so, and keeps it.
func (o *Blocks) Take(p *Packed) (*Block, error) {
	if _, err := o.From.Unpack(p, nil); err != nil {
		return nil, err
	}
	for i := range p.Block.Entries {
		if e := &p.Block.Entries[i]; e.Delta == nil && e.Parent == "" {
			e.Parent = o.From.ParentOf(p.Block.Shape, e.Body)
		}
	}
	b := p.Block
	o.keep(&b)
	return &b, nil
}

// Entry is one version, with its body.
func (o *Blocks) Entry(version int64) (*codec.Entry, error) { return o.rested(version, 0) }

// maxChain is more than any version rests on.
const maxChain = 4 * codec.MaxDepth

// rested is entry for a version that depth others rest on.
func (o *Blocks) rested(version int64, depth int) (*codec.Entry, error) {
	number, place := version/codec.PerBlock, int(version%codec.PerBlock)
	b, err := o.Block(number)
	if err != nil {
		return nil, err
	}
	if place >= len(b.Entries) {
		return nil, sqlite.Damaged("version %d: block %d has %d bodies", version, number, len(b.Entries))
	}
	e := &b.Entries[place]
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

func (o *Blocks) read(number int64) (*Block, error) {
	all, err := o.Packed(selectBlock, number)
	if err != nil {
		return nil, err
	}
	b, err := o.Take(&all[0])
	if err != nil {
		return nil, sqlite.Damaged("block %d: %w", number, err)
	}
	return b, nil
}

// Unpack takes a block apart; its entries lie in room, which is returned as it has
// grown. Parents that it does not tell are left to ParentOf.
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

// ParentOf is the parent that a body in a shape tells, which a block saved before
// parents were known does not say; "" when it tells none.
func (o *Opener) ParentOf(shape int64, body []byte) string {
	return catalog.ParentOf(o.catalog.ParentField(shape), body)
}

// Packed is a block as it lies in the file.
type Packed struct {
	Block       Block
	Body        []byte
	Count, Size int
	Made        int64 // when, in Unix nanoseconds; 0: that was not asked
}

// Packed reads blocks, no two the same.
func (o *Blocks) Packed(st *sqlite.Statement, numbers ...int64) ([]Packed, error) {
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
		p.Made, _ = r[6].(int64)
		all = append(all, p)
		return nil
	})
	for _, n := range numbers {
		i := slices.IndexFunc(all, func(p Packed) bool { return p.Block.Number == n })
		if err == nil && i < 0 {
			err = sqlite.Damaged("block %d %w", n, errMissing)
		}
	}
	return all, err
}

// IsMissing reports that a version's body is not there any more.
func IsMissing(err error) bool { return errors.Is(err, errMissing) }

// errMissing: there is no such block.
var errMissing = errors.New("is missing")

var selectAnyVersion = &sqlite.Statement{Head: "SELECT version FROM held WHERE number BETWEEN ? AND ? LIMIT 1"}

// ID is the id of a record, by one of its versions: that one or, when its body
// is not kept any more, the newest.
func (o *Blocks) ID(record, version int64) (string, error) {
	e, err := o.Entry(version)
	if err == nil && e.ID != "" {
		return e.ID, nil
	}
	if err != nil && !errors.Is(err, errMissing) {
		return "", err
	}
	_, err = o.c.One(selectAnyVersion, []driver.Value{record * Slots, record*Slots + Slots - 1},
		func(r []driver.Value) { version = r[0].(int64) })
	if err == nil {
		e, err = o.Entry(version)
	}
	if err != nil {
		return "", err
	}
	return e.ID, nil
}
