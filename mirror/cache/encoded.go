// Encoded pages: the pages used most often are also in memory in the form in which they are sent.

package cache

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"unsafe"

	"understudy"
)

// Encoded is a page in the form in which it is sent, plain and compressed.
type Encoded struct {
	Page *understudy.Page
	Gzip []byte
	used atomic.Bool

	entry      *Entry
	cost       int64
	prev, next *Encoded
}

// Use notes that the page was sent.
func (r *Encoded) Use() {
	if !r.used.Load() {
		r.used.Store(true)
	}
}

// IsReady reports whether the entry under a hash has an encoded page.
func (h *Tier) IsReady(hash uint64) bool {
	s := &h.shards[hash%shardCount]
	s.RLock()
	defer s.RUnlock()
	e := s.entries[hash]
	return e != nil && e.ready.Load() != nil
}

// Promote queues an entry to be encoded. If the queue is full, it does nothing, and a later use tries again. If there is not
// enough memory for all encoded pages, only one use in eight queues an entry, so that pages do not keep evicting each other.
func (h *Tier) Promote(e *Entry) {
	if h.hasEvictedEncoded.Load() && rand.Uint32N(8) != 0 {
		return
	}
	select {
	case h.toEncode <- e:
	default:
	}
}

// Run encodes the queued entries one after another until ctx ends.
func (h *Tier) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-h.toEncode:
			h.makeReady(ctx, e)
		}
	}
}

// makeReady encodes the page of an entry, unless the entry has been evicted in the meantime.
func (h *Tier) makeReady(ctx context.Context, e *Entry) {
	if e.ready.Load() != nil || ctx.Err() != nil {
		return
	}
	p, err := h.Unpack(e)
	if err != nil {
		h.Drop(e)
		return
	}
	r := h.Encode(p)
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.links.queue != nil && e.ready.Load() == nil {
		h.addReady(e, r)
		h.makeRoom()
	}
}

// addReady adds an encoded page to its entry and to the ring, and counts its bytes. It ignores a page that is larger
// than an eighth of the limit. The caller holds h.mu.
func (h *Tier) addReady(e *Entry, r *Encoded) {
	if r.cost > h.limit/8 {
		return
	}
	r.entry = e
	h.ready.push(r)
	h.readyBytes += r.cost
	e.ready.Store(r)
}

func (h *Tier) dropReady(r *Encoded) {
	r.entry.ready.Store(nil)
	h.ready.take(r)
	h.readyBytes -= r.cost
	if h.readyBytes < h.limit/8 {
		h.hasEvictedEncoded.Store(false)
	}
}

// Encode compresses a page for sending and computes how much memory it takes.
func (h *Tier) Encode(p *understudy.Page) *Encoded {
	r := &Encoded{Page: p, Gzip: h.codecs.compressGzip(p.Body)}
	r.cost = int64(unsafe.Sizeof(*r)+unsafe.Sizeof(*p)) + int64(cap(p.Body)+cap(r.Gzip)) +
		int64(cap(p.Rows))*int64(unsafe.Sizeof(understudy.Row{})) + int64(len(p.Key.URI)+len(p.Next.URI)+len(p.ID)+len(p.Header))
	for i := range p.Rows {
		r.cost += int64(len(p.Rows[i].ID))
	}
	return r
}
