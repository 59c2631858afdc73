// Reader: reads a source's changes once, for all subscribers.

package feed

import (
	"context"
	"fmt"
	"sort"
	"sync"

	"understudy"
)

// reader keeps the newest changes of a source in a ring. Subscribers copy from it
// and never block it.
type reader struct {
	source string
	store  Store
	rung   chan struct{}
	read   chan struct{} // told after each look

	pulling sync.Mutex // one reads the store at a time

	mu    sync.Mutex
	rows  []understudy.Change // the ring; place (first+i)%len
	first int
	count int
	head  int64         // the newest number read
	floor int64         // every row above it, up to head, is in the ring
	moved chan struct{} // closed when head moves
}

// atOnce is how many rows are read from the store at once.
const atOnce = 500

func newReader(ctx context.Context, source string, store Store, buffer int) (*reader, error) {
	head, err := store.ReadLastChange(ctx, source)
	if err != nil {
		return nil, fmt.Errorf("feed: %w", err)
	}
	return &reader{
		source: source, store: store, rung: make(chan struct{}, 1), read: make(chan struct{}, 1),
		rows: make([]understudy.Change, buffer), head: head, floor: head, moved: make(chan struct{}),
	}, nil
}

// ring asks for a pull; asking twice is asking once.
func (r *reader) ring() {
	select {
	case r.rung <- struct{}{}:
	default:
	}
}

// pull reads what is new.
func (r *reader) pull(ctx context.Context) error {
	r.pulling.Lock()
	defer r.pulling.Unlock()
	for {
		r.mu.Lock()
		head := r.head
		r.mu.Unlock()
		rows, err := r.store.ReadChanges(ctx, r.source, head, atOnce)
		if err != nil {
			return err
		}
		r.add(rows)
		if len(rows) < atOnce {
			return nil
		}
	}
}

// pass moves on to the newest change without the rows up to it, which nobody waits
// for: a subscriber that comes and wants them reads the store.
func (r *reader) pass(ctx context.Context) error {
	r.pulling.Lock()
	defer r.pulling.Unlock()
	last, err := r.store.ReadLastChange(ctx, r.source)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if last <= r.head {
		return nil
	}
	r.head = last
	r.empty()
	close(r.moved)
	r.moved = make(chan struct{})
	return nil
}

// empty drops the rows in the ring; r.mu is held.
func (r *reader) empty() {
	clear(r.rows)
	r.first, r.count, r.floor = 0, 0, r.head
}

// add puts rows into the ring, over the oldest, and wakes waiting subscribers.
func (r *reader) add(rows []understudy.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, row := range rows {
		if row.N <= r.head {
			continue
		}
		if r.count == len(r.rows) {
			r.floor = r.rows[r.first].N
			r.first = (r.first + 1) % len(r.rows)
			r.count--
		}
		r.rows[(r.first+r.count)%len(r.rows)] = row
		r.count++
		r.head = row.N
	}
	if len(rows) > 0 {
		close(r.moved)
		r.moved = make(chan struct{})
	}
}

// forget empties the ring. It waits for a reading of the store that began before.
func (r *reader) forget() {
	r.pulling.Lock()
	defer r.pulling.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.empty()
}

// since copies rows above a number into out, in order. held is false when the
// ring does not go back that far. moved is closed when there are more than
// head.
func (r *reader) since(after int64, out []understudy.Change) (n int, head int64, moved <-chan struct{}, held bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if after < r.floor {
		return 0, r.head, r.moved, false
	}
	at := sort.Search(r.count, func(i int) bool { return r.rows[(r.first+i)%len(r.rows)].N > after })
	for n < len(out) && at+n < r.count {
		out[n] = r.rows[(r.first+at+n)%len(r.rows)]
		n++
	}
	return n, r.head, r.moved, true
}

// last returns the newest number. If beyond is greater than what has been read, it
// reads the store first: the notification may not have arrived yet.
func (r *reader) last(ctx context.Context, beyond int64) (int64, error) {
	r.mu.Lock()
	head := r.head
	r.mu.Unlock()
	if beyond <= head {
		return head, nil
	}
	if err := r.pull(ctx); err != nil {
		return 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.head, nil
}

// position is the position of one subscriber.
type position struct {
	f    *Feed
	r    *reader
	at   int64 // the number read last
	rows []understudy.Change
}

func (f *Feed) positionAt(r *reader, at int64) *position {
	return &position{f: f, r: r, at: at, rows: make([]understudy.Change, 64)}
}

// next are the rows above the position, in order; recent says that they came from the
// ring. Without rows, moved is closed when there are some. The position moves past
// them. The rows are valid until the next call.
func (p *position) next(ctx context.Context) (rows []understudy.Change, recent bool, moved <-chan struct{}, err error) {
	n, head, moved, held := p.r.since(p.at, p.rows)
	if held {
		if n > 0 {
			p.at = p.rows[n-1].N
		}
		return p.rows[:n], true, moved, nil
	}
	select {
	case p.f.slow <- struct{}{}:
		defer func() { <-p.f.slow }()
	case <-ctx.Done():
		return nil, false, nil, ctx.Err()
	}
	rows, err = p.r.store.ReadChanges(ctx, p.r.source, p.at, atOnce)
	switch {
	case err != nil:
		return nil, false, nil, fmt.Errorf("feed: %w", err)
	case len(rows) == 0: // rows that were there are gone
		p.at = max(p.at, head)
		return nil, false, moved, nil
	}
	p.at = rows[len(rows)-1].N
	return rows, false, moved, nil
}
