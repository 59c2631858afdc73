// This file reads a source's changes once for all subscribers.

package feed

import (
	"context"
	"fmt"
	"sort"

	"understudy"
	"understudy/kit/lockwatch"
)

// reader keeps the newest changes of a source in a ring buffer. Subscribers copy from the buffer and never block the
// reader.
type reader struct {
	source   string
	store    Store
	wake     chan struct{}
	readDone chan struct{} // receives a value after each read

	reading lockwatch.Mutex // held during a read of the store

	mu    lockwatch.Mutex
	rows  []understudy.Change // the ring buffer; row i is at (first+i)%len(rows)
	first int
	count int
	head  int64         // the number of the newest change read
	floor int64         // the buffer contains every change with a number above floor, up to head
	moved chan struct{} // closed when head increases
}

// rowsPerRead is how many changes are read from the store at once.
const rowsPerRead = 500

func newReader(ctx context.Context, source string, store Store, buffer int) (*reader, error) {
	head, err := store.ReadLastChange(ctx, source)
	if err != nil {
		return nil, fmt.Errorf("feed: %w", err)
	}
	return &reader{
		source: source, store: store, wake: make(chan struct{}, 1), readDone: make(chan struct{}, 1),
		rows: make([]understudy.Change, buffer), head: head, floor: head, moved: make(chan struct{}),
	}, nil
}

// notify requests a read. Several requests before the next read count once.
func (r *reader) notify() {
	understudy.Wake(r.wake)
}

// readNew reads all new changes from the store.
func (r *reader) readNew(ctx context.Context) error {
	r.reading.Lock()
	defer r.reading.Unlock()
	for {
		r.mu.Lock()
		head := r.head
		r.mu.Unlock()
		rows, err := r.store.ReadChanges(ctx, r.source, head, rowsPerRead)
		if err != nil {
			return err
		}
		r.add(rows)
		if len(rows) < rowsPerRead {
			return nil
		}
	}
}

// skipToNewest moves to the newest change without reading the changes before it. A new subscriber that wants
// earlier changes reads the store.
func (r *reader) skipToNewest(ctx context.Context) error {
	r.reading.Lock()
	defer r.reading.Unlock()
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
	r.clearRows()
	close(r.moved)
	r.moved = make(chan struct{})
	return nil
}

// clearRows empties the buffer. The caller must hold r.mu.
func (r *reader) clearRows() {
	clear(r.rows)
	r.first, r.count, r.floor = 0, 0, r.head
}

// add appends rows to the buffer and wakes waiting subscribers. If the buffer is full, it overwrites the oldest rows.
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

// forget empties the buffer. It waits for a running read of the store.
func (r *reader) forget() {
	r.reading.Lock()
	defer r.reading.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clearRows()
}

// copySince copies the rows with numbers above after into out, in order. held is false if the buffer does not have
// all these rows. moved is closed when changes above head are read.
func (r *reader) copySince(after int64, out []understudy.Change) (n int, head int64, moved <-chan struct{}, held bool) {
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

// readLast returns the number of the newest change. If the number beyond is greater, it reads the store first,
// because the notification may not have arrived yet.
func (r *reader) readLast(ctx context.Context, beyond int64) (int64, error) {
	r.mu.Lock()
	head := r.head
	r.mu.Unlock()
	if beyond <= head {
		return head, nil
	}
	if err := r.readNew(ctx); err != nil {
		return 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.head, nil
}

// position is how far one subscriber has read.
type position struct {
	f    *Feed
	r    *reader
	at   int64 // the number of the last change read
	rows []understudy.Change
}

func (f *Feed) newPosition(r *reader, at int64) *position {
	return &position{f: f, r: r, at: at, rows: make([]understudy.Change, 64)}
}

// readNext returns the rows above the position, in order, and advances the position. recent is true if the rows came from
// the buffer. If there are no rows, moved is closed when a new change arrives. The rows are valid until the next call.
func (p *position) readNext(ctx context.Context) (rows []understudy.Change, recent bool, moved <-chan struct{}, err error) {
	n, head, moved, held := p.r.copySince(p.at, p.rows)
	if held {
		if n > 0 {
			p.at = p.rows[n-1].N
		}
		return p.rows[:n], true, moved, nil
	}
	select {
	case p.f.slowReads <- struct{}{}:
		defer func() { <-p.f.slowReads }()
	case <-ctx.Done():
		return nil, false, nil, ctx.Err()
	}
	rows, err = p.r.store.ReadChanges(ctx, p.r.source, p.at, rowsPerRead)
	switch {
	case err != nil:
		return nil, false, nil, fmt.Errorf("feed: %w", err)
	case len(rows) == 0: // the rows were deleted from the store
		p.at = max(p.at, head)
		return nil, false, moved, nil
	}
	p.at = rows[len(rows)-1].N
	return rows, false, moved, nil
}
