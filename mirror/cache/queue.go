// Queues of the memory cache: first in, first out, and the hashes of entries that were evicted recently.

package cache

// queue is a FIFO queue of entries, with the newest first.
type queue struct {
	first, last *Entry
	count       int
	bytes       int64
}

func (q *queue) push(e *Entry) {
	e.links.queue, e.links.prev, e.links.next = q, nil, q.first
	if q.first != nil {
		q.first.links.prev = e
	} else {
		q.last = e
	}
	q.first = e
	q.count++
	q.bytes += e.cost()
}

func (q *queue) take(e *Entry) {
	if e.links.prev != nil {
		e.links.prev.links.next = e.links.next
	} else {
		q.first = e.links.next
	}
	if e.links.next != nil {
		e.links.next.links.prev = e.links.prev
	} else {
		q.last = e.links.prev
	}
	e.links.queue, e.links.prev, e.links.next = nil, nil, nil
	q.count--
	q.bytes -= e.cost()
}

// ring is a FIFO queue of encoded pages, with the newest first.
type ring struct {
	first, last *Encoded
	count       int
}

func (l *ring) push(r *Encoded) {
	r.prev, r.next = nil, l.first
	if l.first != nil {
		l.first.prev = r
	} else {
		l.last = r
	}
	l.first = r
	l.count++
}

func (l *ring) take(r *Encoded) {
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		l.first = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	} else {
		l.last = r.prev
	}
	r.prev, r.next = nil, nil
	l.count--
}

// ghosts has the hashes of entries that were recently evicted from the small queue. If such an entry comes back, it
// goes directly into the main queue.
type ghosts struct {
	order []uint64 // the hashes in the order of their eviction, oldest first; the first hash is at the index head
	head  int
	seen  map[uint64]bool
}

const ghostCost = 40 // the memory in bytes for one hash, in order and in seen

// add remembers a hash. If there are more than limit hashes, it forgets the oldest.
func (g *ghosts) add(hash uint64, limit int) {
	if g.seen[hash] {
		return
	}
	g.seen[hash] = true
	g.order = append(g.order, hash)
	for len(g.seen) > max(limit, 16) && g.head < len(g.order) {
		delete(g.seen, g.order[g.head])
		g.head++
	}
	if g.head > len(g.order)/2 {
		g.order = append(g.order[:0], g.order[g.head:]...)
		g.head = 0
	}
}

// take reports whether a hash is remembered, and removes it from seen. The hash stays in order until it is the
// oldest, which does no harm.
func (g *ghosts) take(hash uint64) bool {
	if !g.seen[hash] {
		return false
	}
	delete(g.seen, hash)
	return true
}

func (g *ghosts) cost() int64 { return int64(len(g.order)) * ghostCost }
