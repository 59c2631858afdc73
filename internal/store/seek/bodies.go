// This file unpacks the bodies of the records that a Seek finds. Records that are far apart are in different blocks,
// and unpacking a block takes longer than finding it. So other goroutines unpack while the connection reads on.
//
//	request:  read packed blocks and queue them
//	takeNext: return the body of the record requested first; unpack it here
//	          if no helper has begun

package seek

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"understudy/internal/store/codec"
	"understudy/internal/store/db"
	"understudy/internal/store/records"
)

const (
	// readAhead is the number of records that are found before the first body is used. Twice as many unpacked blocks are kept.
	readAhead = 16
	// MaxHelpers is the maximum number of goroutines that unpack for one Seek, besides the reading goroutine.
	MaxHelpers = 3
)

// bodies are the bodies of requested records, in the order of the requests. They belong to one read transaction. The
// caller must call end.
type bodies struct {
	o       *records.Blocks
	waiting []awaited
	blocks  map[int64]*unpacking
	order   []*unpacking // the blocks being unpacked, in the order in which they were read
	buffers *sync.Pool   // a pool of buffers (*[]byte) for unpacked blocks
	free    [][]byte     // buffers that this read has used and may use again
	queue   chan *unpacking
	helpers sync.WaitGroup
	running int
}

// awaited is a record whose body was requested.
type awaited struct {
	held *heldAt
	in   *unpacking
}

// unpacking is a block that is being unpacked.
type unpacking struct {
	packed  records.Packed
	buffer  []byte
	users   int         // the number of requested records in the block that are not returned yet
	claimed atomic.Bool // a goroutine is unpacking the block or has unpacked it
	done    chan struct{}
	err     error
}

// request reads the blocks of some records and queues them.
func (b *bodies) request(some []*heldAt) error {
	var numbers []int64
	for _, h := range some {
		if n := h.version / codec.PerBlock; b.blocks[n] == nil && !slices.Contains(numbers, n) {
			numbers = append(numbers, n)
		}
	}
	read, err := b.o.ReadPacked(records.BlockWithCreation, numbers...)
	if err != nil {
		return err
	}
	for i := range read {
		b.blocks[read[i].Block.Number] = &unpacking{packed: read[i]}
	}
	for _, h := range some {
		u := b.blocks[h.version/codec.PerBlock]
		u.users++
		b.waiting = append(b.waiting, awaited{h, u})
	}
	// drop the oldest blocks that no requested record needs, if the new blocks would exceed the limit
	for len(b.order)+len(read) > 2*readAhead && len(b.order) > 0 && b.order[0].users == 0 {
		u := b.order[0]
		b.free = append(b.free, u.buffer)
		delete(b.blocks, u.packed.Block.Number)
		b.order = b.order[1:]
	}
	for _, n := range numbers {
		u := b.blocks[n]
		u.buffer, u.done = b.takeBuffer(u.packed.Size), make(chan struct{})
		b.order = append(b.order, u)
		b.enqueue(u)
	}
	return nil
}

// takeBuffer returns an empty buffer for size bytes.
func (b *bodies) takeBuffer(size int) []byte {
	if size < 0 || size > codec.MaxUnpacked {
		return nil // the size is impossible, for which Unpack returns an error
	}
	if n := len(b.free); n > 0 {
		room := b.free[n-1]
		if b.free = b.free[:n-1]; cap(room) >= size {
			return room
		}
	} else if room, ok := b.buffers.Get().(*[]byte); ok && cap(*room) >= size {
		return *room
	}
	return make([]byte, 0, max(size, records.MaxBlock+records.MaxBlock/4))
}

// enqueue gives a block to the helpers. It starts another helper if two blocks are waiting.
func (b *bodies) enqueue(u *unpacking) {
	if b.queue == nil {
		b.queue = make(chan *unpacking, 2*readAhead)
	}
	select {
	case b.queue <- u:
	default: // the queue is full, so takeNext unpacks the block when it is needed
	}
	if len(b.queue) < 2 || b.running >= min(MaxHelpers, runtime.GOMAXPROCS(0)-1) {
		return
	}
	b.running++
	b.helpers.Go(func() {
		for u := range b.queue {
			b.unpack(u)
		}
	})
}

// unpack unpacks a block, unless another goroutine has already begun.
func (b *bodies) unpack(u *unpacking) {
	if u.claimed.Swap(true) {
		return
	}
	defer close(u.done)
	err := db.Guard(func() (err error) { u.buffer, err = b.o.From.Unpack(&u.packed, u.buffer); return err })
	if err != nil {
		u.err = db.NewDamageError("block %d: %w", u.packed.Block.Number, err)
	}
}

// takeNext returns the record that was requested first, with its entry. The entry is valid until the next call of
// request. At least one requested record must be left.
func (b *bodies) takeNext() (*heldAt, *codec.Entry, error) {
	one := b.waiting[0]
	b.waiting = b.waiting[1:]
	u, version := one.in, one.held.version
	b.unpack(u)
	<-u.done
	if u.users--; u.err != nil {
		return nil, nil, u.err
	}
	one.held.since = cmp.Or(one.held.since, u.packed.CreatedAt)
	place := int(version % codec.PerBlock)
	if place >= len(u.packed.Block.Entries) || u.packed.Block.Entries[place].Delta != nil {
		e, err := b.o.ReadEntry(version)
		return one.held, e, err
	}
	e := &u.packed.Block.Entries[place]
	if e.Parent == "" {
		e.Parent = b.o.From.ParentOf(u.packed.Block.Shape, e.Body)
	}
	return one.held, e, nil
}

// end waits for the helpers and returns the buffers to the pool.
func (b *bodies) end() {
	for _, u := range b.order {
		if !u.claimed.Swap(true) {
			close(u.done)
		}
	}
	if b.queue != nil {
		close(b.queue)
	}
	b.helpers.Wait()
	for _, u := range b.order {
		b.free = append(b.free, u.buffer)
	}
	for _, room := range b.free {
		if cap(room) > 0 && cap(room) <= 4*records.MaxBlock {
			room = room[:0]
			b.buffers.Put(&room)
		}
	}
}
