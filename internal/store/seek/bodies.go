// Bodies: those of the records a Seek meets. Records that stand far apart are each in a block of their own, and
// unpacking it takes longer than finding it: other cores unpack while the connection reads on.
//
//	ask:  read the blocks as they are packed, and queue them
//	next: the body of the record asked for first, unpacked here if no helper has
//	      begun to

package seek

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"understudy/internal/store/codec"
	"understudy/internal/store/records"
	"understudy/internal/store/sqlite"
)

const (
	// ahead is how many records are found before the body of the first of them is
	// looked at; twice as many blocks are kept unpacked.
	ahead = 16
	// MaxHelpers is how many goroutines at most unpack for one Seek, beside the one that reads.
	MaxHelpers = 3
)

// bodies are the bodies of some records, in the order they are asked for. They
// belong to one read transaction; end must be called.
type bodies struct {
	o       *records.Blocks
	waiting []awaited
	blocks  map[int64]*unpacking
	order   []*unpacking // the one that was read first comes first
	buffers *sync.Pool   // *[]byte to unpack into
	free    [][]byte     // those of this read
	queue   chan *unpacking
	helpers sync.WaitGroup
	running int
}

// awaited is a record whose body was asked for.
type awaited struct {
	held *heldAt
	in   *unpacking
}

// unpacking is a block that is being taken apart.
type unpacking struct {
	packed  records.Packed
	buffer  []byte
	users   int         // records that wait for it
	claimed atomic.Bool // a goroutine unpacks it, or has
	done    chan struct{}
	err     error
}

// ask reads the blocks of some records and queues them.
func (b *bodies) ask(some []*heldAt) error {
	var numbers []int64
	for _, h := range some {
		if n := h.version / codec.PerBlock; b.blocks[n] == nil && !slices.Contains(numbers, n) {
			numbers = append(numbers, n)
		}
	}
	read, err := b.o.Packed(records.BlockMade, numbers...)
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
	b.retire(len(read))
	for _, n := range numbers {
		u := b.blocks[n]
		u.buffer, u.done = b.buffer(u.packed.Size), make(chan struct{})
		b.order = append(b.order, u)
		b.hand(u)
	}
	return nil
}

// retire lets blocks go that were read first, if no record waits for them, where there are many with so many more.
func (b *bodies) retire(more int) {
	for len(b.order)+more > 2*ahead && len(b.order) > 0 && b.order[0].users == 0 {
		u := b.order[0]
		b.free = append(b.free, u.buffer)
		delete(b.blocks, u.packed.Block.Number)
		b.order = b.order[1:]
	}
}

// room is where size bytes have room.
func (b *bodies) buffer(size int) []byte {
	if size < 0 || size > codec.MaxUnpacked {
		return nil // unpack says so
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

// hand gives a block to the helpers, once there are two to unpack.
func (b *bodies) hand(u *unpacking) {
	if b.queue == nil {
		b.queue = make(chan *unpacking, 2*ahead)
	}
	select {
	case b.queue <- u:
	default: // it is unpacked when it is needed
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

// unpack takes a block apart, unless another goroutine has begun to.
func (b *bodies) unpack(u *unpacking) {
	if u.claimed.Swap(true) {
		return
	}
	defer close(u.done)
	err := sqlite.Guard(func() (err error) { u.buffer, err = b.o.From.Unpack(&u.packed, u.buffer); return err })
	if err != nil {
		u.err = sqlite.Damaged("block %d: %w", u.packed.Block.Number, err)
	}
}

// next is the record that was asked for first, with its entry, which is good
// until the next ask. Records must be waiting.
func (b *bodies) next() (*heldAt, *codec.Entry, error) {
	one := b.waiting[0]
	b.waiting = b.waiting[1:]
	u, version := one.in, one.held.version
	b.unpack(u)
	<-u.done
	if u.users--; u.err != nil {
		return nil, nil, u.err
	}
	if one.held.since == 0 {
		one.held.since = u.packed.Made
	}
	place := int(version % codec.PerBlock)
	if place >= len(u.packed.Block.Entries) || u.packed.Block.Entries[place].Delta != nil {
		e, err := b.o.Entry(version)
		return one.held, e, err
	}
	e := &u.packed.Block.Entries[place]
	if e.Parent == "" {
		e.Parent = b.o.From.ParentOf(u.packed.Block.Shape, e.Body)
	}
	return one.held, e, nil
}

// end waits for the helpers, and gives the buffers back.
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
