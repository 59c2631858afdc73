// The hot tier: pages in memory under one byte limit, in two parts.
//
//	packed   every page, compressed, in two queues (S3-FIFO): what comes once
//	         goes through small and out; what is asked for again moves to main,
//	         so that a walk over ten thousand pages throws out only itself
//	ready    the most asked of them once more, as they go out: identity, gzip
//
// Lookups take one shard's read lock. Everything that changes the queues takes
// the one lock of the tier.

// Package cache keeps pages in memory under one byte limit.
package cache

import (
	"encoding/binary"
	"hash/maphash"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"understudy"
	"understudy/mirror/httpcache"
)

const (
	shardCount   = 64
	PromoteAfter = 2 // uses of a packed page that make it ready
	maxUses      = 3
	slotCost     = 40 // a place in a shard's map, at its usual filling
)

// Tier is the pages in memory.
type Tier struct {
	seed    maphash.Seed
	shards  [shardCount]shard
	wanted  chan *Entry // to be made ready
	crowded atomic.Bool // the ready part has had to let something go
	codecs  codecs

	mu          sync.Mutex
	limit       int64
	small, main queue
	ready       ring
	ghosts      ghosts
	readyBytes  int64
}

type shard struct {
	sync.RWMutex
	entries map[uint64]*Entry
	_       [96]byte // its own cache lines
}

// Entry is one page held. What is not atomic never changes once it is put.
type Entry struct {
	Hash       uint64
	form       *form
	Ident      uint64 // of the record an instance shows; 0 for a list
	At         time.Time
	Generation int64
	packed     packed

	// What the page is, set before it is put:
	List, Polled, Composed, Stored bool
	Wide                           bool // asked with what the spec does not name: it may show records of any kind
	Term                           Term
	Said                           *httpcache.Bounds // by upstream, of the page's age; nil: nothing

	// What has happened to it since:
	Renewed    atomic.Int64                     // until when it needs no further refresh
	Superseded atomic.Int64                     // since when, as monotonic nanoseconds; 0 = it is not
	Changed    atomic.Pointer[understudy.Names] // the fields by which it is, as far as they are known
	Followed   atomic.Int64                     // until when its next page needs no thought

	uses  atomic.Int32
	ready atomic.Pointer[Encoded]
	links links
}

// packed is a page as it is kept.
type packed struct {
	codec   *codec
	blob    blob
	records []byte // the rows' record numbers, as varint differences; none: not saved
}

// links are an entry's place in its queue.
type links struct {
	queue      *queue
	prev, next *Entry
}

// New is an empty tier that holds at most limit bytes.
func New(limit int64) *Tier {
	h := &Tier{limit: limit, seed: maphash.MakeSeed(), wanted: make(chan *Entry, 64)}
	h.codecs.most = int(min(maxDictionaries, limit/8/codecCost))
	for i := range h.shards {
		h.shards[i].entries = map[uint64]*Entry{}
	}
	h.ghosts.seen = map[uint64]bool{}
	return h
}

// Find is the entry under the key's hash. The caller compares keys.
func (h *Tier) Find(key understudy.Key) *Entry {
	hash := h.Hash(key)
	s := &h.shards[hash%shardCount]
	s.RLock()
	e := s.entries[hash]
	s.RUnlock()
	return e
}

// Hash is a key as the tier knows it.
func (h *Tier) Hash(key understudy.Key) uint64 {
	return maphash.String(h.seed, key.URI) ^ maphash.String(h.seed, key.Source)*31
}

// Ident names a record of a kind in one word, never 0.
func (h *Tier) Ident(id string) uint64 { return maphash.String(h.seed, id) | 1 }

// Use counts a use and returns the count, which stops rising at maxUses.
func (e *Entry) Use() int32 {
	n := e.uses.Load()
	if n >= maxUses {
		return n
	}
	return e.uses.Add(1)
}

// Shape is the shape of the page's records.
func (e *Entry) Shape() string { return e.form.shape }

// Encoded is the page as it goes out; nil when it is only kept packed.
func (e *Entry) Encoded() *Encoded { return e.ready.Load() }

// RecordNumbers are the numbers of the records a list shows.
func (e *Entry) RecordNumbers() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		var record int64
		for b := e.packed.records; len(b) > 0; {
			d, size := binary.Varint(b)
			if size <= 0 {
				return
			}
			record, b = record+d, b[size:]
			if !yield(record) {
				return
			}
		}
	}
}

// Note adds to the names of fields that have changed since the page was fetched.
func (e *Entry) Note(fields []string) {
	for {
		was := e.Changed.Load()
		all := fields
		if was != nil {
			all = slices.AppendSeq(slices.Clone(fields), was.All())
		}
		if names := understudy.NamesOf(all...); e.Changed.CompareAndSwap(was, &names) {
			return
		}
	}
}

func (e *Entry) cost() int64 {
	return int64(unsafe.Sizeof(*e)) + slotCost + e.packed.blob.cost() + int64(cap(e.packed.records))
}

// Put adds an entry, in the place of the one it follows if there is one, and
// makes room. r, when not nil, makes it ready at once. It reports false for a
// page too large to hold.
func (h *Tier) Put(e *Entry, r *Encoded) bool {
	if e.cost() > h.limit/8 {
		h.Forget(e.Hash)
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !e.listOfRecords() {
		e.form.group.others.Add(1) // before anybody can find it (ListsOnly)
	}
	s := &h.shards[e.Hash%shardCount]
	s.Lock()
	old := s.entries[e.Hash]
	s.entries[e.Hash] = e
	s.Unlock()
	switch {
	case old != nil:
		e.uses.Store(old.uses.Load())
		q := old.links.queue
		h.unlink(old)
		q.push(e)
	case h.ghosts.take(e.Hash):
		h.main.push(e)
	default:
		h.small.push(e)
	}
	if r != nil {
		h.addReady(e, r)
	}
	h.makeRoom()
	return e.links.queue != nil
}

// Forget removes what is held under a hash.
func (h *Tier) Forget(hash uint64) {
	s := &h.shards[hash%shardCount]
	s.RLock()
	e := s.entries[hash]
	s.RUnlock()
	if e != nil {
		h.Drop(e)
	}
}

// Drop removes one entry if it is still the one held.
func (h *Tier) Drop(e *Entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(e)
}

// remove takes an entry out of everything; h.mu is held.
func (h *Tier) remove(e *Entry) {
	if e.links.queue == nil {
		return
	}
	s := &h.shards[e.Hash%shardCount]
	s.Lock()
	if s.entries[e.Hash] == e {
		delete(s.entries, e.Hash)
	}
	s.Unlock()
	h.unlink(e)
}

// unlink takes an entry out of its queue and the ready part; h.mu is held.
func (h *Tier) unlink(e *Entry) {
	if r := e.ready.Load(); r != nil {
		h.dropReady(r)
	}
	if !e.listOfRecords() {
		e.form.group.others.Add(-1)
	}
	e.links.queue.take(e)
}

// makeRoom lets go of what is used least until the limit is kept. The ready
// part has what the packed pages leave, and a quarter in any case; what leaves
// it stays packed.
func (h *Tier) makeRoom() {
	for h.readyBytes > h.limit/4 && h.size() > h.limit {
		r := h.ready.last
		if r.used.Swap(false) {
			h.ready.take(r)
			h.ready.push(r)
			continue
		}
		h.dropReady(r)
		h.crowded.Store(true)
	}
	for h.size() > h.limit {
		switch {
		case h.small.last != nil && (h.small.bytes > h.limit/10 || h.main.last == nil):
			h.passSmall(h.small.last)
		case h.main.last != nil:
			h.passMain(h.main.last)
		default:
			return
		}
	}
}

func (h *Tier) passSmall(e *Entry) {
	if e.uses.Load() >= PromoteAfter {
		h.small.take(e)
		e.uses.Store(0)
		h.main.push(e)
		return
	}
	h.ghosts.add(e.Hash, h.small.count+h.main.count)
	h.remove(e)
}

func (h *Tier) passMain(e *Entry) {
	if n := e.uses.Load(); n > 0 {
		e.uses.Store(n - 1)
		h.main.take(e)
		h.main.push(e)
		return
	}
	h.remove(e)
}

// size is every byte of the tier; h.mu is held.
func (h *Tier) size() int64 {
	return h.small.bytes + h.main.bytes + h.readyBytes + h.ghosts.cost() + h.codecs.cost()
}

// Usage is what a tier holds.
type Usage struct {
	Entries, Ready            int
	Bytes, ReadyBytes, Codecs int64 // all of it; of this the ready part, and the codecs
	Limit                     int64 // of Bytes
}

// Usage is what the tier holds.
func (h *Tier) Usage() Usage {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Usage{h.small.count + h.main.count, h.ready.count, h.size(), h.readyBytes, h.codecs.cost(), h.limit}
}

// Each calls f with every entry of a group, under a shard's read lock.
func (h *Tier) Each(g *Group, f func(*Entry)) {
	for i := range h.shards {
		s := &h.shards[i]
		s.RLock()
		for _, e := range s.entries {
			if e.form.group == g {
				f(e)
			}
		}
		s.RUnlock()
	}
}

// DropAll removes the entries given.
func (h *Tier) DropAll(entries []*Entry) {
	for _, e := range entries {
		h.Drop(e)
	}
}
