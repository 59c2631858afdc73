// Mirror: its parts, its options, its start and its end.

// Package mirror answers requests from the store and fills the store from upstream.
//
// A request is looked up in three places: the hot tier (memory), the store, and a flight to upstream that all
// readers of the same key share. The mirror does not know callers: what it stores never depends on the first
// reader.
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

// Store is the part of the store that the mirror needs. Many goroutines call its methods at once. Save and
// Touch are called one at a time for each kind.
type Store interface {
	// ReadPage returns the stored page of a key, with Superseded computed, or ErrNotFound.
	ReadPage(context.Context, understudy.Key) (*understudy.Page, error)
	// Record returns the newest version of a record in one shape, or ErrNotFound.
	Record(ctx context.Context, source, kind, shape, id string) (*understudy.Record, error)
	// Save stores a page and its records in one transaction. It returns ErrOutdated if a write came after the
	// page's fetch began.
	Save(context.Context, *understudy.Page) (request.SaveResult, error)
	// Touch marks what a write changed as invalid and raises the generation of the kind.
	Touch(context.Context, request.Invalidation) (generation int64, err error)
}

// Upstream is the part of package upstream that the mirror needs.
type Upstream interface {
	// Fetch fetches one page. Errors: *understudy.UpstreamError, the context's error.
	Fetch(context.Context, request.Fetch) (*understudy.Page, error)
	// Write sends a write once. Any response of upstream is returned as a page. It returns ErrUnknownOutcome
	// if no response was received, and *understudy.UpstreamError if nothing was sent.
	Write(context.Context, request.Write) (*understudy.Page, error)
}

// Source is one configured upstream and the client that reaches it.
type Source struct {
	Source   *spec.Source
	Upstream Upstream
	// Generations are the stored generations of the source's kinds, by kind.
	Generations map[string]int64
	// Rate is how many requests a second the source accepts; 0 means 10.
	Rate float64
	// Answers says, by kind, whether lists are answered from records or from upstream. The key "" stands for
	// all kinds without an entry.
	Answers map[string]shadow.Answers
	// Checks is the maximum number of lists a minute that were made from records and are fetched from
	// upstream for a comparison; 0 means 6.
	Checks float64
}

// Options are the settings of a Mirror. Sources and Store are required.
type Options struct {
	Sources []Source
	Store   Store
	Files   media.Files // nil if contents are not stored
	// Coverage tells which lists can be made from records, or is nil if none can. With a Coverage, the store
	// must also have the methods Seek and FindPlace.
	Coverage Coverage
	// Writes returns a counter of all writes to the store. A list made from records is reused while the
	// counter stays the same. If Writes is nil, each list is composed anew.
	Writes func() int64
	// KV stores across restarts how well lists made from records agreed with upstream. If it is nil, nothing
	// is stored.
	KV understudy.KV
	// Intents stores across restarts which records the writes under way may change. If it is nil, nothing is
	// stored.
	Intents writes.Journal
	Hot     int64            // memory for pages, in bytes; 0 means 64 MiB, the minimum is 4 MiB
	Ages    Ages             // a zero field takes its default
	Limits  Limits           // a zero field takes its default
	Now     func() time.Time // the clock; nil means time.Now
	Logger  *slog.Logger     // nil means no log
	// PageSaved is called after each save of a page with a record, a change or a number of a time series. It
	// runs in the saving goroutine and must not block. The changes of a kind are reported in the order of
	// their numbers. It may be nil.
	PageSaved func(request.PageSaved)
}

const (
	defaultHot = 64 << 20
	minHot     = 4 << 20
	offerAfter = time.Second     // how long a reader waits for a save before it gets the unsaved page
	saveTime   = 5 * time.Second // the maximum time to save one page, including the wait for other saves
)

// Mirror answers requests for pages and sends writes to upstream. Any number of goroutines may call its
// methods at once.
type Mirror struct {
	env         *env
	entries     *entries
	flights     *flights
	holdings    *holdings
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

// New returns a mirror that answers at once. Its background work (polls, prefetching, upkeep of the hot tier)
// starts with Run. Errors: a source given twice, a poll of a kind that cannot be polled, too little memory.
func New(o Options) (*Mirror, error) {
	o.Hot = cmp.Or(o.Hot, defaultHot)
	switch {
	case o.Store == nil:
		return nil, errors.New("mirror: a store must be given")
	case o.Hot < minHot:
		return nil, fmt.Errorf("mirror: hot: %d bytes are too few, want at least %d", o.Hot, minHot)
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

// newParts creates the parts of a mirror and connects them.
func newParts(o *Options) *Mirror {
	v := &env{sources: make(map[string]*source, len(o.Sources)), store: o.Store, intents: o.Intents, now: o.Now, log: o.Logger, start: o.Now()}
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
	}
	m.holdings = &holdings{v, m.entries, m.flights}
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

// Run polls, prefetches and maintains the hot tier until ctx ends. It returns when all goroutines of the
// mirror have ended. Afterwards Answer and Write return ErrClosed. Call it at most once.
func (m *Mirror) Run(ctx context.Context) error {
	if !m.env.started.CompareAndSwap(false, true) {
		return errors.New("mirror: already running")
	}
	for _, s := range m.env.sources {
		s.lastRead.Store(m.env.monotonicTime(m.env.now()))
	}
	m.shadow.Restore(ctx)
	m.writer.flushSoon()
	m.poller.startPolls()
	m.env.work.Go(func() { m.shadow.Run(m.env.ctx) })
	for range prefetchers {
		m.env.work.Go(m.prefetch.run)
	}
	m.env.work.Go(func() { m.entries.hot.Run(m.env.ctx) })
	m.env.work.Go(m.writer.runFlush)
	<-ctx.Done()
	m.flights.refuseNew()
	m.close()
	m.media.Close()
	m.env.work.Wait()
	m.writer.flushLast()
	return nil
}

// monotonicTime returns t as nanoseconds since the mirror was created. It never returns 0.
func (v *env) monotonicTime(t time.Time) int64 {
	if n := int64(t.Sub(v.start)); n != 0 {
		return n
	}
	return 1
}

// Coverage is the part of the crawler that the mirror needs. Its counterpart is crawl.Source.
type Coverage interface {
	// Covered reports whether all records of a kind with a clock in [from, to) are stored; 0 means no bound.
	// With a parent it looks only at the records under that record. With from equal to to it reports whether
	// the records without a clock are stored. It is called for every list that may be composed, so it must be
	// fast.
	Coverage(source, kind, root, parent string, from, to int64) (request.Coverage, bool)
	// Recheck tells the crawler that records with a clock in [from, to) may differ from the last walk; 0
	// means no bound. It returns at once.
	Recheck(source, kind string, from, to int64)
}

// SetCoverage sets Options.Coverage if the crawler is created after the mirror. Call it before the first
// request.
func (m *Mirror) SetCoverage(c Coverage) { m.composer.coverage = c }
