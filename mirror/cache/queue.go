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
	moved int            // how many hashes were removed from the start of order
	seen  map[uint64]int // the place of each hash: its index in order if none had ever been removed
}

const ghostCost = 40 // the memory in bytes for one hash, in order and in seen

// add remembers a hash. If order has more than limit hashes, it forgets the oldest.
func (g *ghosts) add(hash uint64, limit int) {
	if _, ok := g.seen[hash]; ok {
		return
	}
	g.seen[hash] = g.moved + len(g.order)
	g.order = append(g.order, hash)
	for len(g.order)-g.head > max(limit, 16) {
		if oldest := g.order[g.head]; g.seen[oldest] == g.moved+g.head {
			delete(g.seen, oldest) // otherwise it was taken, and perhaps added again later
		}
		g.head++
	}
	if g.head > len(g.order)/2 {
		g.order = append(g.order[:0], g.order[g.head:]...)
		g.moved, g.head = g.moved+g.head, 0
	}
}

// take reports whether a hash is remembered, and forgets it. The hash stays in order until it is the oldest.
func (g *ghosts) take(hash uint64) bool {
	_, ok := g.seen[hash]
	delete(g.seen, hash)
	return ok
}

func (g *ghosts) cost() int64 { return int64(len(g.order)) * ghostCost }
