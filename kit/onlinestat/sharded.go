// Sharded: a Stat for many goroutines.

package onlinestat

import (
	"runtime"
	"sync"
	"unsafe"
)

// Sharded is a Stat that many goroutines update at once. It has several shards, each with its own lock and
// cache lines. A goroutine normally uses the same shard; its numbers are summarised when a batch is full.
// Create it with NewSharded.
type Sharded struct {
	shards []shard
	mask   uint32
}

// batch is how many numbers a shard collects before it summarises them.
const batch = 128

// shard is one part of a Sharded, on separate cache lines.
type shard struct {
	mu      sync.Mutex
	n       int
	pending [batch]float64
	stat    Stat
	_       [128]byte
}

// NewSharded returns a Sharded with at least four shards for each processor. A shard takes 1.3 KB plus its histogram.
func NewSharded() *Sharded {
	n := 4
	for n < 4*runtime.GOMAXPROCS(0) {
		n *= 2
	}
	return &Sharded{shards: make([]shard, n), mask: uint32(n - 1)}
}

// lockShard locks and returns the goroutine's shard, or the next shard if another goroutine holds the lock. The
// address of the goroutine's stack chooses the shard. That address stays the same between updates, so the shard
// stays in the caches of one processor. Nothing is read through the address.
func (s *Sharded) lockShard() *shard {
	var here byte
	i := uint32(uintptr(unsafe.Pointer(&here))>>11) * 0x9e3779b1 >> 16 & s.mask // shifted, because a stack has at least 2 KiB
	h := &s.shards[i]
	if !h.mu.TryLock() {
		h = &s.shards[(i+1)&s.mask]
		h.mu.Lock()
	}
	return h
}

// Add adds one number.
func (s *Sharded) Add(x float64) {
	h := s.lockShard()
	h.pending[h.n] = x
	if h.n++; h.n == batch {
		h.flush()
	}
	h.mu.Unlock()
}

// AddAll adds many numbers under one lock.
func (s *Sharded) AddAll(xs []float64) {
	h := s.lockShard()
	h.stat.AddAll(xs)
	h.mu.Unlock()
}

// flush summarises the collected numbers. The caller holds the lock.
func (h *shard) flush() {
	h.stat.AddAll(h.pending[:h.n])
	h.n = 0
}

// Stat returns a summary of all numbers whose Add has returned. Each shard is locked only while it is merged,
// so updates can go on.
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
