// Sharded: a Stat for many goroutines.

package onlinestat

import (
	"runtime"
	"sync"
	"unsafe"
)

// Sharded is a Stat that many goroutines update at once. Each goroutine has one
// of several shards, each with a lock and cache lines of its own; an update waits
// there with others until a batch is full. Make it with NewSharded.
type Sharded struct {
	shards []shard
	mask   uint32
}

// batch is how many numbers a shard gathers before it summarises them.
const batch = 128

// shard is one part of a Sharded, on cache lines of its own.
type shard struct {
	mu   sync.Mutex
	n    int
	todo [batch]float64
	stat Stat
	_    [128]byte
}

// NewSharded makes one with four shards to each processor, of 1.3 KB each and
// what their histograms take.
func NewSharded() *Sharded {
	n := 4
	for n < 4*runtime.GOMAXPROCS(0) {
		n *= 2
	}
	return &Sharded{shards: make([]shard, n), mask: uint32(n - 1)}
}

// take is the goroutine's shard, locked; while another has that, the one after it.
// Where its stack lies says which: that is the same from update to update, so the
// shard stays in one processor's caches. Nothing is read through the address.
func (s *Sharded) take() *shard {
	var here byte
	i := uint32(uintptr(unsafe.Pointer(&here))>>11) * 0x9e3779b1 >> 16 & s.mask // a stack has 2 KB at least
	h := &s.shards[i]
	if !h.mu.TryLock() {
		h = &s.shards[(i+1)&s.mask]
		h.mu.Lock()
	}
	return h
}

// Add takes one number.
func (s *Sharded) Add(x float64) {
	h := s.take()
	h.todo[h.n] = x
	if h.n++; h.n == batch {
		h.flush()
	}
	h.mu.Unlock()
}

// AddAll takes many numbers under one lock.
func (s *Sharded) AddAll(xs []float64) {
	h := s.take()
	h.stat.AddAll(xs)
	h.mu.Unlock()
}

// flush summarises what was gathered; the lock is held.
func (h *shard) flush() {
	h.stat.AddAll(h.todo[:h.n])
	h.n = 0
}

// Stat is a summary of all numbers whose Add has returned. Updates go on
// meanwhile: each shard is locked only while it is merged.
func (s *Sharded) Stat() *Stat {
	var out Stat
	for i := range s.shards {
		h := &s.shards[i]
		h.mu.Lock()
		h.flush()
		out.Merge(&h.stat)
		h.mu.Unlock()
	}
	return &out
}
