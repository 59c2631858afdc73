// Ready answers: the hottest pages are kept as they are sent.

package cache

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"unsafe"

	"understudy"
)

// Encoded is a page as it goes out.
type Encoded struct {
	Page *understudy.Page
	Gzip []byte
	used atomic.Bool

	entry      *Entry
	cost       int64
	prev, next *Encoded
}

// Use notes that the page went out.
func (r *Encoded) Use() {
	if !r.used.Load() {
		r.used.Store(true)
	}
}

// IsReady reports whether what is held under a hash is ready.
func (h *Tier) IsReady(hash uint64) bool {
	s := &h.shards[hash%shardCount]
	s.RLock()
	defer s.RUnlock()
	e := s.entries[hash]
	return e != nil && e.ready.Load() != nil
}

// Promote asks for an entry to be made ready; when too many ask, a later use
// asks again. In a crowded ready part one use in eight asks, so that more
// pages than it can hold do not keep pushing each other out.
func (h *Tier) Promote(e *Entry) {
	if h.crowded.Load() && rand.Uint32N(8) != 0 {
		return
	}
	select {
	case h.wanted <- e:
	default:
	}
}

// Run makes entries ready, one at a time, away from their readers, until ctx ends.
func (h *Tier) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-h.wanted:
			h.makeReady(ctx, e)
		}
	}
}

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

// addReady and dropReady keep entry, list and bytes in step; h.mu is held.
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
		h.crowded.Store(false)
	}
}

// Encode compresses a page for the wire and weighs it.
func (h *Tier) Encode(p *understudy.Page) *Encoded {
	r := &Encoded{Page: p, Gzip: h.codecs.gzipped(p.Body)}
	r.cost = int64(unsafe.Sizeof(*r)+unsafe.Sizeof(*p)) + int64(cap(p.Body)+cap(r.Gzip)) +
		int64(cap(p.Rows))*int64(unsafe.Sizeof(understudy.Row{})) + int64(len(p.Key.URI)+len(p.Next.URI)+len(p.ID)+len(p.Header))
	for i := range p.Rows {
		r.cost += int64(len(p.Rows[i].ID))
	}
	return r
}
