// Kept: what searches add up to, kept by request and role under one limit of memory.

package search

import (
	"context"
	"sync"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/search/aggregate"
	"understudy/internal/search/columns"
	"understudy/kit/lru"
)

// maxKept bounds the bytes of a memory.
const maxKept = 32 << 20

// memory keeps the sums, or the counts, of the searches of one policy. It is safe for concurrent use.
type memory struct {
	mu      sync.Mutex // of finding a run, or making one
	runs    *lru.Cache[string, *keptRun]
	least   int64         // every run weighs so much
	reading chan struct{} // the matches of one run are read at a time
	ctx     context.Context
	cancel  context.CancelFunc
	work    sync.WaitGroup
}

// keptRun is one sum or count. Its lock guards it; tables guard the parts.
type keptRun struct {
	lock     chan struct{}
	over     bool // the memory let it go
	parts    map[*columns.Table]*part
	fill     *fill
	short    bool      // not every match could be read
	late     bool      // for want of time
	at       time.Time // when it was begun
	versions map[*columns.Table]int64
	result   *answer // the last one of these versions; nil: there is none
}

// part is the matches of one kind: a sum, or a count.
type part struct {
	table *columns.Table
	watch *columns.Watch
	sum   *aggregate.Part
	count *tally
}

// isGone reports whether the part is not brought up to date any more. The table is locked.
func (p *part) isGone() bool { return p.watch.Gone || p.count != nil && (p.count.left || p.count.full) }

// answer is what a search adds up to.
type answer struct {
	sum    *query.SumResult
	total  query.Count
	facets []query.SearchFacet
	broken bool // not every record was counted
}

// newMemory makes a memory that keeps the last so many runs, while they are small.
func newMemory(runs int64) *memory {
	m := &memory{runs: lru.New[string, *keptRun](maxKept), least: maxKept / 2 / runs, reading: make(chan struct{}, 1)}
	m.runs.SetDropFunc(m.drop)
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// close ends the reading behind searches and drops every run.
func (m *memory) close() {
	m.mu.Lock()
	m.cancel()
	m.runs.Clear()
	m.mu.Unlock()
	m.work.Wait()
}

// drop empties a run as soon as nobody uses it.
func (m *memory) drop(k *keptRun) {
	m.work.Go(func() {
		k.lock <- struct{}{}
		k.over = true
		k.reset()
		<-k.lock
	})
}

// take returns the run of a key for the caller alone, who releases it. Errors: ErrClosed.
func (m *memory) take(ctx context.Context, key string) (*keptRun, error) {
	for {
		k := m.find(key)
		if k == nil {
			return nil, understudy.ErrClosed
		}
		select {
		case k.lock <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if !k.over {
			return k, nil
		}
		k.release()
	}
}

// find returns the run of a key, which it makes if needed; nil after close.
func (m *memory) find(key string) *keptRun {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx.Err() != nil {
		return nil
	}
	k, ok := m.runs.Get(key)
	if !ok {
		k = &keptRun{lock: make(chan struct{}, 1), parts: map[*columns.Table]*part{}}
		m.runs.Put(key, k, m.least)
	}
	return k
}

// resize notes how many bytes a run takes, unless it was dropped.
func (m *memory) resize(key string, k *keptRun, size int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now, ok := m.runs.Get(key); ok && now == k {
		m.runs.Put(key, k, max(size, m.least))
	}
}

func (k *keptRun) release() { <-k.lock }

// reset empties the run.
func (k *keptRun) reset() {
	for t, p := range k.parts {
		t.Lock()
		t.Unwatch(p.watch)
		t.Unlock()
	}
	clear(k.parts)
	k.result, k.fill, k.short, k.late = nil, nil, false, false
}
