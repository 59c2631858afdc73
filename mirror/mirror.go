// The mirror: its parts, its options, its start and its end.

// Package mirror answers requests from the store, and fills the store from upstream.
//
// A page is looked up in three places: in memory (the hot tier), in the store, and upstream. All readers of the same
// page share one request to upstream, called a flight. The mirror does not know who sends a request: what it stores
// never depends on the first reader.
package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"understudy"
	"understudy/kit/lru"
	"understudy/kit/retry"
	"understudy/mirror/cache"
	"understudy/mirror/compose"
	"understudy/mirror/hints"
	"understudy/mirror/media"
	"understudy/mirror/shadow"
	"understudy/mirror/shared"
	"understudy/mirror/slide"
	"understudy/mirror/writes"
	"understudy/request"
	"understudy/spec"
)

// Store is the part of the store that the mirror needs. It must be safe for concurrent use. For each kind, Save and
// Touch are never called at the same time.
type Store interface {
	// ReadPage returns the stored page of a key and sets its field Superseded. It returns ErrNotFound if none is stored.
	ReadPage(context.Context, understudy.Key) (*understudy.Page, error)
	// Record returns the newest version of a record in one shape. It returns ErrNotFound if none is stored.
	Record(ctx context.Context, source, kind, shape, id string) (*understudy.Record, error)
	// Save stores a page and its records in one transaction. It returns ErrOutdated if a write has touched the kind
	// since the page's fetch began.
	Save(context.Context, *understudy.Page) (request.SaveResult, error)
	// Touch marks everything that a write may have changed as invalid, and increases the generation of the kind.
	Touch(context.Context, request.Invalidation) (generation int64, err error)
}

// Upstream is the part of package upstream that the mirror needs.
type Upstream interface {
	// Fetch fetches one page. Errors: *understudy.UpstreamError and the context's error.
	Fetch(context.Context, request.Fetch) (*understudy.Page, error)
	// Write sends a write to upstream once. It returns any response of upstream as a page. It returns
	// ErrUnknownOutcome if upstream did not respond, and *understudy.UpstreamError if the write was not sent.
	Write(context.Context, request.Write) (*understudy.Page, error)
}

// Source is one configured upstream and the client that reaches it.
type Source struct {
	Source   *spec.Source
	Upstream Upstream
	// Generations are the generations of the source's kinds that the store had at the start, by the name of the kind.
	Generations map[string]int64
	// Rate is the number of requests a second that upstream permits. 0 means 10.
	Rate float64
	// Answers says for each kind whether its lists are first composed from records or requested from upstream. The
	// key "" is for all kinds that have no key of their own.
	Answers map[string]shadow.Answers
	// Checks is how many lists a minute, after they were composed from records, may also be fetched from upstream for
	// a comparison. 0 means 6.
	Checks float64
}

// Options are the settings of a Mirror. Sources and Store are required.
type Options struct {
	Sources []Source
	Store   Store
	Files   media.Files // stores audio and images; nil if they are not stored
	// Coverage says of which lists all records are stored, so that they can be composed from records. If it is nil,
	// no list is composed. If it is set, the store must also have the methods Seek and FindPlace.
	Coverage Coverage
	// Writes returns the number of all writes to the store. While it stays the same, a composed list is reused. If
	// Writes is nil, every list is composed again for each request.
	Writes func() int64
	// KV stores, across restarts, how often composed lists were the same as upstream's. If it is nil, this is
	// forgotten at a restart.
	KV understudy.KV
	// Intents stores, across restarts, which records the writes under way may change. If it is nil, this is forgotten
	// in a crash.
	Intents writes.Journal
	Hot     int64            // the memory for pages in bytes; 0 means 64 MiB, and the minimum is 4 MiB
	Ages    Ages             // a zero field takes its default
	Limits  Limits           // a zero field takes its default
	Now     func() time.Time // the function that returns the time; nil means time.Now
	Logger  *slog.Logger     // the log; nil means that nothing is logged
	// Memory reports whether memory contains what other processes on the same database have changed. While it does not,
	// pages in memory are used as during an outage. It is called for each read. nil means that there are no others.
	Memory func() bool
	Others Others // the other processes on the same database; nil if there are none
	// Since is the time before which the store may have lost writes. What was fetched before it is an answer only during an outage.
	Since time.Time
	// Paused means that no list is polled.
	Paused bool
	// PageSaved is called after each save of a page that has a record, a change, or a number of a time series. It
	// runs in the goroutine that saves and must not block. For each kind, it is called with the changes in the order
	// of their numbers. It may be nil.
	PageSaved func(request.PageSaved)
}

// Others are the other processes on the same database.
type Others interface {
	// BeginFetch claims the fetch of a key. If it returns true, this process must fetch, and call end when the page is
	// stored. Otherwise another process has fetched the page meanwhile, or has failed to. The error is that of ctx.
	BeginFetch(ctx context.Context, key understudy.Key) (fetch bool, end func(), err error)
	// IsAlone reports whether no other process is running, as far as is known.
	IsAlone() bool
	// AwaitRecheck is called with the numbers in Intents of writes that upstream has answered, if the store could not be told. It
	// returns when it has been told, or when the other processes know that they must ask upstream.
	AwaitRecheck(intents []int64)
	// IsLeader reports whether this process does what one process does for all.
	IsLeader() bool
}

const (
	defaultHot  = 64 << 20
	minHot      = 4 << 20
	offerAfter  = time.Second     // how long a reader waits until a fetched page is saved, before it gets the page unsaved
	maxSaveTime = 5 * time.Second // the maximum time for saving one page, including the wait for other saves
)

// Mirror answers requests for pages, and sends writes to upstream. It is safe for concurrent use.
type Mirror struct {
	env         *env
	entries     *entries
	flights     *flights
	holdings    *pageFinder
	writer      *writer
	filler      *filler
	invalidator *invalidator
	composer    *composer
	reader      *reader
	poller      *poller
	hints       *hints.Queue
	media       *media.Cache
	shadow      *shadow.Reads
	shared      *shared.Cache
	prefetch    *prefetcher
	close       context.CancelFunc
}

// New returns a mirror that can answer at once. Its work in the background (polls, prefetches, encoding of pages)
// starts with Run. It returns an error if a source is given twice, if a kind that should be polled cannot be, or if
// there is too little memory.
func New(o Options) (*Mirror, error) {
	o.Hot = cmp.Or(o.Hot, defaultHot)
	switch {
	case o.Store == nil:
		return nil, errors.New("mirror: a store must be given")
	case o.Hot < minHot:
		return nil, fmt.Errorf("mirror: memory: %d bytes are too few; write at least %d", o.Hot, minHot)
	}
	understudy.SetDefaults(&o.Logger, &o.Now)
	m := newParts(&o)
	m.SetAges(o.Ages)
	m.SetLimits(o.Limits)
	for _, s := range o.Sources {
		if err := m.addSource(s); err != nil {
			m.close()
			return nil, err
		}
	}
	m.invalidator.restoreIntents()
	return m, nil
}

// newParts makes the parts of a mirror and connects them.
func newParts(o *Options) *Mirror {
	v := &env{sources: make(map[string]*source, len(o.Sources)), store: o.Store, intents: o.Intents, others: o.Others, memory: o.Memory,
		now: o.Now, log: o.Logger, start: o.Now(), since: o.Since, paused: o.Paused}
	m := &Mirror{env: v}
	v.ctx, m.close = context.WithCancel(context.Background())
	m.entries = &entries{env: v, hot: cache.New(o.Hot), slides: slide.New(),
		previousPages:  lru.New[understudy.Key, understudy.Key](maxPreviousPages),
		forgetContents: func(k *kind, id string) { m.media.Forget(k.source.config.Name, k.name, id) }}
	m.flights = &flights{
		env: v, entries: m.entries, running: map[understudy.Key]*flight{}, flows: map[uint64]int{}, suspended: map[understudy.Key]time.Time{},
		saveFetched: func(f *flight, p *understudy.Page) {
			m.filler.fill(f, p)
			m.compareSample(f)
		},
		keepFetched: func(f *flight, p *understudy.Page, before int64) { m.filler.putPage(f, p, before) },
	}
	m.holdings = &pageFinder{v, m.entries, m.flights}
	m.writer = &writer{env: v, entries: m.entries, onSaved: o.PageSaved, flushNeeded: make(chan struct{}, 1)}
	m.filler = &filler{v, m.entries, m.flights, m.holdings, m.writer}
	m.hints = hints.New(hints.Options{
		Context: v.ctx, Now: v.now, Go: m.flights.startGoroutine, Fetch: m.filler.fetchHinted,
		Limit: func() int { return m.flights.limits.Load().Hints },
		Wait: func(from time.Time, d time.Duration) error {
			return retry.Wait(v.ctx, remainingPause(v.now(), from.Add(d), d))
		},
	})
	m.writer.confirm = m.addHint
	m.prefetch = &prefetcher{v, m.entries, m.flights, m.holdings, m.writer, make(chan candidate, maxCandidates)}
	m.poller = &poller{v, m.entries, m.flights, m.holdings, m.writer}
	m.media = media.New(media.Options{Files: o.Files, Readers: m.flights, IsPruned: m.filler.isPruned, Now: o.Now, Logger: o.Logger})
	m.shared = shared.New(shared.Options{Pages: sharedPages{v, m.entries, m.writer}, Flights: m.flights, Now: o.Now, Logger: o.Logger})
	m.invalidator = &invalidator{
		env: v, entries: m.entries, flights: m.flights, holdings: m.holdings, writer: m.writer,
		invalidateContents: func(k *kind, w request.Write) { m.media.InvalidateWritten(k.source.config.Name, k.name, w) },
	}
	records, _ := o.Store.(compose.Store)
	m.composer = &composer{
		env: v, flights: m.flights, holdings: m.holdings, coverage: o.Coverage, records: records, writes: o.Writes,
		slots: make(chan struct{}, o.Limits.withDefaults().Lists),
	}
	m.shadow = shadow.New(shadow.Options{
		FromRecords: m.composer.sampleFromRecords, Recheck: m.recheck, KV: o.KV, Now: o.Now, Logger: o.Logger,
	})
	m.reader = &reader{
		env: v, entries: m.entries, flights: m.flights, holdings: m.holdings, composer: m.composer,
		follow: m.prefetch.follow, addCandidate: m.prefetch.addCandidate,
	}
	return m
}

// Run polls, prefetches and encodes pages until ctx ends. It returns when all goroutines of the mirror have ended.
// After that, Answer and Write return ErrClosed. It must be called at most once.
func (m *Mirror) Run(ctx context.Context) error {
	if !m.env.started.CompareAndSwap(false, true) {
		return errors.New("mirror: already running")
	}
	for _, s := range m.env.sources {
		s.lastRead.Store(m.env.monotonicTime(m.env.now()))
	}
	m.shadow.Restore(ctx)
	understudy.Wake(m.writer.flushNeeded)
	if !m.env.paused {
		m.flights.Lock()
		m.flights.polling = true
		for _, s := range m.env.sources {
			for _, p := range s.polls() {
				m.poller.startPoll(p)
			}
		}
		m.flights.Unlock()
	}
	m.env.work.Go(func() { m.shadow.Run(m.env.ctx) })
	for range prefetcherCount {
		m.env.work.Go(m.prefetch.run)
	}
	m.env.work.Go(func() { m.entries.hot.Run(m.env.ctx) })
	m.env.work.Go(m.writer.runFlush)
	<-ctx.Done()
	m.flights.Lock() // goroutines are counted only under this lock, so that Wait below waits for all of them
	m.env.closed.Store(true)
	m.flights.Unlock()
	m.close()
	m.media.Close()
	m.env.work.Wait()
	last, cancel := context.WithTimeout(context.Background(), maxSaveTime)
	defer cancel()
	if left := m.writer.flushAll(last); left > 0 {
		m.env.log.Error("mirror: some writes could not be noted in the store; a sweep or a read will find their changes", "records", left)
	}
	return nil
}

// monotonicTime returns t in nanoseconds since the mirror was made. It never returns 0, which stands for no time.
func (v *env) monotonicTime(t time.Time) int64 {
	return cmp.Or(int64(t.Sub(v.start)), 1)
}

// Coverage is the part of the crawler that the mirror needs. crawl.Source implements it.
type Coverage interface {
	// Coverage reports whether all records of a kind whose clock is in [from, to) are stored; 0 means no limit. If
	// parent is set, it looks only at records below that record. If from equals to, it reports whether all records
	// without a clock value are stored. It is called for every list that may be composed, so it must be fast.
	Coverage(source, kind, root, parent string, from, to int64) (request.Coverage, bool)
	// Recheck tells the crawler that records whose clock is in [from, to) may have changed since it last read them; 0
	// means no limit. It returns at once.
	Recheck(source, kind string, from, to int64)
}

// SetCoverage sets Options.Coverage, for a crawler that is made after the mirror. It must be called before the first request.
func (m *Mirror) SetCoverage(c Coverage) { m.composer.coverage = c }
