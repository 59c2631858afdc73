// The hot tier: pages in memory under one byte limit, in two parts.
//
// All pages are packed, in two queues (S3-FIFO). A page that is used once passes through the small queue and
// is evicted. A page that is used again moves to the main queue. So a walk over ten thousand pages evicts
// only its own pages. The most used pages are also kept encoded, as they are sent: plain and compressed by
// gzip.
//
// Lookups take the read lock of one shard. Changes of the queues take the one lock of the tier.

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

	"understudy/kit/lockwatch"
)

const (
	shardCount   = 64
	PromoteAfter = 2 // the number of uses after which a packed page is also kept encoded
	maxUses      = 3
	slotCost     = 40 // the memory in bytes of one entry in the map of a shard
)

// Tier is the cache of pages in memory, the hot tier.
type Tier struct {
	seed              maphash.Seed
	shards            [shardCount]shard
	toEncode          chan *Entry // the entries that wait to be encoded
	hasEvictedEncoded atomic.Bool // whether an encoded page was evicted because there was not enough memory
	codecs            codecs

	mu          lockwatch.Mutex
	limit       int64
	small, main queue
	ready       ring
	ghosts      ghosts
	readyBytes  int64
}

type shard struct {
	sync.RWMutex
	entries map[uint64]*Entry
	_       [96]byte // padding, so that two shards never share a cache line of the CPU
}

// Entry is one page in memory. Only its atomic fields change after Put.
type Entry struct {
	Hash       uint64
	form       *form
	Ident      uint64 // the hash of the record's id if the page is a single record; 0 for a list
	At         time.Time
	Generation int64
	packed     packed

	// These fields are set before Put and do not change afterwards.
	List, Polled, Composed, Stored bool
	// whether the request had parameters that the spec does not name, so that the page may show records of any kind
	ShowsAnyKind bool
	Term         Term
	Bounds       *httpcache.Bounds // the limits that upstream's headers set to the page's age; nil if there are none

	// The fields below may change after Put.
	NextRenew  atomic.Int64                     // the time from which the page may be fetched again before it becomes stale
	Superseded atomic.Int64                     // when the page became outdated, in nanoseconds of the monotonic clock; 0 if it is not
	Changed    atomic.Pointer[understudy.Names] // the names of the fields that are known to have changed since the page was fetched
	NextFollow atomic.Int64                     // the time from which the page after this one may be prefetched again

	uses  atomic.Int32
	ready atomic.Pointer[Encoded]
	links links
}

// packed is the compressed page of an entry.
type packed struct {
	codec   *codec
	blob    blob
	records []byte // the record number of each row as the difference from the row before, as a varint; empty if the page is not stored
}

// links are the neighbors of an entry in its queue.
type links struct {
	queue      *queue
	prev, next *Entry
}

// New returns an empty cache with a limit in bytes.
func New(limit int64) *Tier {
	h := &Tier{limit: limit, seed: maphash.MakeSeed(), toEncode: make(chan *Entry, 64)}
	h.codecs.dictionariesLeft = int(min(maxDictionaries, limit/8/codecCost))
	for i := range h.shards {
		h.shards[i].entries = map[uint64]*Entry{}
	}
	h.ghosts.seen = map[uint64]int{}
	return h
}

// Find returns the entry under the hash of the key, or nil. The caller must check that the entry has the same key,
// because two keys can have the same hash.
func (h *Tier) Find(key understudy.Key) *Entry {
	hash := h.Hash(key)
	s := &h.shards[hash%shardCount]
	s.RLock()
	e := s.entries[hash]
	s.RUnlock()
	return e
}

// Hash returns the hash of a key, under which its entry is stored.
func (h *Tier) Hash(key understudy.Key) uint64 {
	return maphash.String(h.seed, key.URI) ^ maphash.String(h.seed, key.Source)*31
}

// Ident returns a hash of a record's id. The hash is never 0.
func (h *Tier) Ident(id string) uint64 { return maphash.String(h.seed, id) | 1 }

// Use counts a use of the entry. It returns the number of uses, which does not grow beyond maxUses.
func (e *Entry) Use() int32 {
	n := e.uses.Load()
	if n >= maxUses {
		return n
	}
	return e.uses.Add(1)
}

// Shape returns the shape of the page's records.
func (e *Entry) Shape() string { return e.form.shape }

// EncodedPage returns the page in the form in which it is sent. It returns nil if the entry has only the packed page.
func (e *Entry) EncodedPage() *Encoded { return e.ready.Load() }

// RecordNumbers returns the record numbers of a list's rows.
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

// Note adds the names of fields that have changed since the page was fetched.
func (e *Entry) Note(fields []string) {
	for {
		was := e.Changed.Load()
		all := fields
		if was != nil {
			all = slices.AppendSeq(slices.Clone(fields), was.All())
		}
		if names := understudy.NewNames(all...); e.Changed.CompareAndSwap(was, &names) {
			return
		}
	}
}

func (e *Entry) cost() int64 {
	return int64(unsafe.Sizeof(*e)) + slotCost + e.packed.blob.cost() + int64(cap(e.packed.records))
}

// Put adds an entry and replaces an entry with the same hash. If there is not enough memory, it evicts other entries.
// r is the encoded page, if the caller has it. Put returns false if the page is too large or was evicted at once.
func (h *Tier) Put(e *Entry, r *Encoded) bool {
	if e.cost() > h.limit/8 {
		h.Forget(e.Hash)
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !e.isRecordList() {
		e.form.group.nonLists.Add(1) // counted before the entry can be found, so that HasOnlyLists is never wrong
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
		h.removeFromQueue(old)
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

// Forget removes the entry under a hash.
func (h *Tier) Forget(hash uint64) {
	s := &h.shards[hash%shardCount]
	s.RLock()
	e := s.entries[hash]
	s.RUnlock()
	if e != nil {
		h.Drop(e)
	}
}

// Drop removes an entry, unless it has been removed already.
func (h *Tier) Drop(e *Entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(e)
}

// remove removes an entry from its shard, its queue and the ring. The caller holds h.mu.
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
	h.removeFromQueue(e)
}

// removeFromQueue removes an entry from its queue and the ring. The caller holds h.mu.
func (h *Tier) removeFromQueue(e *Entry) {
	if r := e.ready.Load(); r != nil {
		h.dropReady(r)
	}
	if !e.isRecordList() {
		e.form.group.nonLists.Add(-1)
	}
	e.links.queue.take(e)
}

// makeRoom evicts the entries used least often until the limit is met. Encoded pages may use the memory that packed
// pages leave, and at least a quarter of the limit. A page whose encoded form is evicted stays packed.
func (h *Tier) makeRoom() {
	for h.readyBytes > h.limit/4 && h.size() > h.limit {
		r := h.ready.last
		if r.used.Swap(false) {
			h.ready.take(r)
			h.ready.push(r)
			continue
		}
		h.dropReady(r)
		h.hasEvictedEncoded.Store(true)
	}
	for h.size() > h.limit {
		switch {
		case h.small.last != nil && (h.small.bytes > h.limit/10 || h.main.last == nil):
			h.evictFromSmall(h.small.last)
		case h.main.last != nil:
			h.evictFromMain(h.main.last)
		default:
			return
		}
	}
}

// evictFromSmall removes the oldest entry of the small queue. If the entry was used again, it moves to the main queue,
// otherwise it is evicted.
func (h *Tier) evictFromSmall(e *Entry) {
	if e.uses.Load() >= PromoteAfter {
		h.small.take(e)
		e.uses.Store(0)
		h.main.push(e)
		return
	}
	h.ghosts.add(e.Hash, h.small.count+h.main.count)
	h.remove(e)
}

// evictFromMain moves the oldest entry of the main queue to the front if it was used since its last move. Otherwise the
// entry is evicted.
func (h *Tier) evictFromMain(e *Entry) {
	if n := e.uses.Load(); n > 0 {
		e.uses.Store(n - 1)
		h.main.take(e)
		h.main.push(e)
		return
	}
	h.remove(e)
}

// size returns the memory in bytes that the cache uses. The caller holds h.mu.
func (h *Tier) size() int64 {
	return h.small.bytes + h.main.bytes + h.readyBytes + h.ghosts.cost() + h.codecs.cost()
}

// Usage says how many pages a cache has and how much memory they use.
type Usage struct {
	Entries, Ready            int
	Bytes, ReadyBytes, Codecs int64 // the size of everything, and of that the size of encoded pages and of codecs, in bytes
	Limit                     int64 // the limit for all memory of the cache, in bytes
}

// Usage returns how many pages the cache has and how much memory they use.
func (h *Tier) Usage() Usage {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Usage{h.small.count + h.main.count, h.ready.count, h.size(), h.readyBytes, h.codecs.cost(), h.limit}
}

// WalkGroup calls f with every entry of a group. It holds the read lock of the entry's shard during the call.
func (h *Tier) WalkGroup(g *Group, f func(*Entry)) {
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

// DropAll removes several entries.
func (h *Tier) DropAll(entries []*Entry) {
	for _, e := range entries {
		h.Drop(e)
	}
}
