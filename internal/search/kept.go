// This file keeps the results of sums and counts in memory, by request and role.

package search

import (
	"context"
	"sync"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/search/aggregate"
	"understudy/internal/search/columns"
	"understudy/kit/lockwatch"
	"understudy/kit/lru"
)

// maxKept is the maximum size of a result cache in bytes.
const maxKept = 32 << 20

// resultCache keeps the sums, or the counts, of the searches under one policy. It is safe for concurrent use.
type resultCache struct {
	mu          lockwatch.Mutex // guards finding and creating runs
	runs        *lru.Cache[string, *keptRun]
	minRunBytes int64         // the assumed size of a small run, which limits the number of runs
	readSlot    chan struct{} // holds a value while a background read runs, so that only one runs at a time
	ctx         context.Context
	cancel      context.CancelFunc
	work        sync.WaitGroup
}

// keptRun is a sum or count that is kept for later requests. lock guards its fields. The lock of each table guards
// the table's part.
type keptRun struct {
	lock       chan struct{}
	dropped    bool // whether the result cache has dropped this run
	parts      map[*columns.Table]*part
	background *backgroundRead
	incomplete bool      // whether some matches could not be read
	timedOut   bool      // whether matches are missing because of the time limit
	startedAt  time.Time // when counting began
	versions   map[*columns.Table]int64
	result     *answer // the last computed answer; valid while the tables have the versions in versions; nil if there is none
}

// part is the sum or the count of the matches of one kind.
type part struct {
	table *columns.Table
	watch *columns.Watch
	sum   *aggregate.Part
	count *tally
}

// isDropped reports whether the part no longer receives changes. The caller must hold the table's lock.
func (p *part) isDropped() bool {
	return p.watch.Ended || p.count != nil && (p.count.abandoned || p.count.full)
}

// answer is the result of a sum or a count.
type answer struct {
	sum     *query.SumResult
	total   query.Count
	facets  []query.SearchFacet
	partial bool // whether some records were not counted
}

// newMemory returns a result cache for at most that many runs. If runs are large, it keeps fewer.
func newMemory(runs int64) *resultCache {
	m := &resultCache{runs: lru.New[string, *keptRun](maxKept), minRunBytes: maxKept / 2 / runs, readSlot: make(chan struct{}, 1)}
	m.runs.SetDropFunc(m.drop)
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// close ends the background reads, drops every run, and waits for the reads to end.
func (m *resultCache) close() {
	m.mu.Lock()
	m.cancel()
	m.runs.Clear()
	m.mu.Unlock()
	m.work.Wait()
}

// drop empties a run as soon as no caller uses it.
func (m *resultCache) drop(k *keptRun) {
	m.work.Go(func() {
		k.lock <- struct{}{}
		k.dropped = true
		k.reset()
		<-k.lock
	})
}

// take returns the run of a key and locks it. The caller must call release. take returns ErrClosed after close.
func (m *resultCache) take(ctx context.Context, key string) (*keptRun, error) {
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
func (m *resultCache) find(key string) *keptRun {
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
func (m *resultCache) resize(key string, k *keptRun, size int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now, ok := m.runs.Get(key); ok && now == k {
		m.runs.Put(key, k, max(size, m.minRunBytes))
	}
}

func (k *keptRun) release() { <-k.lock }

func (k *keptRun) reset() {
	for t, p := range k.parts {
		t.Lock()
		t.EndWatch(p.watch)
		t.Unlock()
	}
	clear(k.parts)
	k.result, k.background, k.incomplete, k.timedOut = nil, nil, false, false
}
