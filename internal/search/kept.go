// Kept: the results of sums and counts, kept by request and role within one limit of memory.

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

// maxKept is the limit of a memory in bytes.
const maxKept = 32 << 20

// memory keeps the sums, or the counts, of the searches under one policy. It is safe for concurrent use.
type memory struct {
	mu          sync.Mutex // guards looking up and creating runs
	runs        *lru.Cache[string, *keptRun]
	minRunBytes int64         // the weight of a small run; it limits the number of runs
	readSlot    chan struct{} // holds a value while a background read runs; one read at a time
	ctx         context.Context
	cancel      context.CancelFunc
	work        sync.WaitGroup
}

// keptRun is one kept sum or count. lock guards its fields; each part is guarded by its table.
type keptRun struct {
	lock       chan struct{}
	dropped    bool // the memory dropped this run
	parts      map[*columns.Table]*part
	background *backgroundRead
	incomplete bool      // some matches could not be read
	timedOut   bool      // matches are missing because reading took too long
	startedAt  time.Time // when counting began
	versions   map[*columns.Table]int64
	result     *answer // the last computed answer, or nil; valid while the tables have these versions
}

// part is the sum or the count of the matches of one kind.
type part struct {
	table *columns.Table
	watch *columns.Watch
	sum   *aggregate.Part
	count *tally
}

// isDropped reports whether the part no longer receives changes. The table is locked.
func (p *part) isDropped() bool {
	return p.watch.Ended || p.count != nil && (p.count.abandoned || p.count.full)
}

// answer is the result of a sum or a count.
type answer struct {
	sum     *query.SumResult
	total   query.Count
	facets  []query.SearchFacet
	partial bool // some records were not counted
}

// newMemory returns a memory that keeps the most recent runs: so many while they are small, fewer when they are large.
func newMemory(runs int64) *memory {
	m := &memory{runs: lru.New[string, *keptRun](maxKept), minRunBytes: maxKept / 2 / runs, readSlot: make(chan struct{}, 1)}
	m.runs.SetDropFunc(m.drop)
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// close ends the background reads, drops every run, and waits.
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
		k.dropped = true
		k.reset()
		<-k.lock
	})
}

// take returns the run of a key and locks it. The caller calls release. It returns ErrClosed after close.
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
		if !k.dropped {
			return k, nil
		}
		k.release()
	}
}

// find returns the run of a key and creates it if needed. It returns nil after close.
func (m *memory) find(key string) *keptRun {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx.Err() != nil {
		return nil
	}
	k, ok := m.runs.Get(key)
	if !ok {
		k = &keptRun{lock: make(chan struct{}, 1), parts: map[*columns.Table]*part{}}
		m.runs.Put(key, k, m.minRunBytes)
	}
	return k
}

// resize records how many bytes a run takes, unless the run was dropped.
func (m *memory) resize(key string, k *keptRun, size int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now, ok := m.runs.Get(key); ok && now == k {
		m.runs.Put(key, k, max(size, m.minRunBytes))
	}
}

func (k *keptRun) release() { <-k.lock }

// reset removes all results of the run.
func (k *keptRun) reset() {
	for t, p := range k.parts {
		t.Lock()
		t.EndWatch(p.watch)
		t.Unlock()
	}
	clear(k.parts)
	k.result, k.background, k.incomplete, k.timedOut = nil, nil, false, false
}
