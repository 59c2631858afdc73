// Ready answers: the hottest pages are kept as they are sent.

package mirror

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"unsafe"

	"understudy"
)

// encodedEntry is a page as it goes out.
type encodedEntry struct {
	page *understudy.Page
	gzip []byte
	used atomic.Bool

	entry      *entry
	cost       int64
	prev, next *encodedEntry
}

func (r *encodedEntry) use() {
	if !r.used.Load() {
		r.used.Store(true)
	}
}

// isReady reports whether what is held under a hash is ready.
func (h *tier) isReady(hash uint64) bool {
	s := &h.shards[hash%shardCount]
	s.RLock()
	defer s.RUnlock()
	e := s.entries[hash]
	return e != nil && e.ready.Load() != nil
}

// promote asks for an entry to be made ready; when too many ask, a later use
// asks again. In a crowded ready part one use in eight asks, so that more
// pages than it can hold do not keep pushing each other out.
func (h *tier) promote(e *entry) {
	if h.crowded.Load() && rand.Uint32N(8) != 0 {
		return
	}
	select {
	case h.wanted <- e:
	default:
	}
}

// run makes entries ready, one at a time, away from their readers, until ctx ends.
func (h *tier) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-h.wanted:
			h.makeReady(ctx, e)
		}
	}
}

func (h *tier) makeReady(ctx context.Context, e *entry) {
	if e.ready.Load() != nil || ctx.Err() != nil {
		return
	}
	p, err := h.unpack(e)
	if err != nil {
		h.drop(e)
		return
	}
	r := h.readyPage(p)
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.queue != nil && e.ready.Load() == nil {
		h.addReady(e, r)
		h.makeRoom()
	}
}

// addReady and dropReady keep entry, list and bytes in step; h.mu is held.
func (h *tier) addReady(e *entry, r *encodedEntry) {
	if r.cost > h.limit/8 {
		return
	}
	r.entry = e
	h.ready.push(r)
	h.readyBytes += r.cost
	e.ready.Store(r)
}

func (h *tier) dropReady(r *encodedEntry) {
	r.entry.ready.Store(nil)
	h.ready.take(r)
	h.readyBytes -= r.cost
	if h.readyBytes < h.limit/8 {
		h.crowded.Store(false)
	}
}

// readyPage compresses a page for the wire and weighs it.
func (h *tier) readyPage(p *understudy.Page) *encodedEntry {
	r := &encodedEntry{page: p, gzip: h.codecs.gzipped(p.Body)}
	r.cost = int64(unsafe.Sizeof(*r)+unsafe.Sizeof(*p)) + int64(cap(p.Body)+cap(r.gzip)) +
		int64(cap(p.Rows))*int64(unsafe.Sizeof(understudy.Row{})) + int64(len(p.Key.URI)+len(p.Next.URI)+len(p.ID))
	for i := range p.Rows {
		r.cost += int64(len(p.Rows[i].ID))
	}
	return r
}
