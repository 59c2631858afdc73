// The mirror: what it is made of, how it starts and how it ends.

// Package mirror answers requests from what the store holds, and fills the
// store from upstream.
//
// A request falls through three floors: the hot tier (memory), the store, and
// a flight to upstream that all readers of the same key share. The mirror knows no
// callers: what it keeps never depends on the first reader.
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

// Store is what the mirror needs of the store. All methods are called
// from many goroutines; Save and Touch of one kind one at a time.
type Store interface {
	// Page is the page of that key, Superseded derived. ErrNotFound.
	Page(context.Context, understudy.Key) (*understudy.Page, error)
	// Record is the newest version of a record in one shape. ErrNotFound.
	Record(ctx context.Context, source, kind, shape, id string) (*understudy.Record, error)
	// Save keeps a page and its records in one transaction; ErrOutdated.
	Save(context.Context, *understudy.Page) (request.Saved, error)
	// Touch makes what a write touched invalid and raises the generation.
	Touch(context.Context, request.Invalidation) (generation int64, err error)
}

// Upstream is what the mirror needs of the upstream package.
type Upstream interface {
	// Fetch brings one page. Errors: *understudy.UpstreamError, the context's.
	Fetch(context.Context, request.Fetch) (*understudy.Page, error)
	// Write passes a write on, once. Any answer of upstream is a page;
	// ErrUnknownOutcome when none came; *understudy.UpstreamError when
	// nothing was sent.
	Write(context.Context, request.Write) (*understudy.Page, error)
}

// Source is one configured upstream and the way to it.
type Source struct {
	Source   *spec.Source
	Upstream Upstream
	// Generations of its kinds as the store remembers them, by kind.
	Generations map[string]int64
	// Rate is how many requests a second it takes; 0 = 10.
	Rate float64
	// Answers says what its lists are answered from, by kind; "" is for kinds
	// that are not named.
	Answers map[string]shadow.Answers
	// Checks is how many lists made from records may be asked upstream, too, to
	// compare them, a minute; 0 = 6.
	Checks float64
}

// Options are the mirror's settings. Sources and Store must be set.
type Options struct {
	Sources []Source
	Store   Store
	Files   media.Files // nil: no contents are kept
	// Coverage says which lists can be made from records; nil: none. The store
	// must then have Seek and PlaceOf, too.
	Coverage Coverage
	// Writes is a counter of writes to the store, whoever makes them: a list made from records
	// is answered again while it stays the same. nil: each list is made anew.
	Writes func() int64
	// KV keeps between two runs how far lists made from records were equal to
	// upstream's; nil: nothing is kept.
	KV understudy.KV
	// Intents keep between two runs which records writes were about to change;
	// nil: nothing is kept.
	Intents writes.Journal
	Hot     int64            // bytes of memory for pages; 0 = 64 MiB, at least 4 MiB
	Ages    Ages             // zero fields take the defaults
	Limits  Limits           // the same
	Now     func() time.Time // the clock; nil = time.Now
	Logger  *slog.Logger     // nil = silence
	// PageSaved is told of every save that held at least one record, change or number
	// that is kept as a series, at once, from the saving goroutine: it must not wait. The changes of one kind
	// come in the order of their numbers. nil: saves are not told.
	PageSaved func(request.PageSaved)
}

const (
	defaultHot = 64 << 20
	minHot     = 4 << 20
	readerTime = time.Second     // a reader waits so long for a page to be saved
	saveTime   = 5 * time.Second // for keeping one page, its place in the row included
)

// Mirror answers pages and passes writes on. Its methods may be called by any
// number of goroutines.
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

// New makes a mirror. It answers at once; what goes on behind the readers
// (polls, prefetch, the hot tier's upkeep) begins with Run. Errors: a source
// that is there twice, a kind in polls that cannot be polled, too little
// memory.
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
	m.invalidator.recallIntents()
	return m, nil
}

// newParts joins the parts of a mirror, each with those it needs.
func newParts(o *Options) *Mirror {
	v := &env{sources: make(map[string]*source, len(o.Sources)), store: o.Store, intents: o.Intents, now: o.Now, log: o.Logger, start: o.Now()}
	m := &Mirror{env: v}
	v.ctx, m.close = context.WithCancel(context.Background())
	m.entries = &entries{env: v, hot: cache.New(o.Hot), slides: slide.New(), leads: lru.New[understudy.Key, understudy.Key](mostLeads),
		recordWent: func(k *kind, id string) { m.media.Forget(k.source.config.Name, k.name, id) }}
	m.flights = &flights{
		env: v, entries: m.entries, running: map[understudy.Key]*flight{}, flows: map[uint64]int{}, cooling: map[understudy.Key]time.Time{},
		keep: func(f *flight, p *understudy.Page) {
			m.filler.fill(f, p)
			m.sampled(f)
		},
	}
	m.holdings = &holdings{v, m.entries, m.flights}
	m.writer = &writer{env: v, entries: m.entries, tell: o.PageSaved, owing: make(chan struct{}, 1)}
	m.filler = &filler{v, m.entries, m.flights, m.holdings, m.writer}
	m.hints = hints.New(hints.Options{
		Context: v.ctx, Now: v.now, Go: m.flights.goOpen, Fetch: m.filler.hinted,
		Limit: func() int { return m.flights.limits.Load().Hints },
		Wait: func(from time.Time, d time.Duration) error {
			return retry.Sleep(v.ctx, remaining(v.now(), from.Add(d), d))
		},
	})
	m.writer.confirm = m.hint
	m.prefetch = &prefetcher{v, m.entries, m.flights, m.holdings, m.writer, make(chan candidate, maxCandidates)}
	m.poller = &poller{v, m.entries, m.flights, m.holdings, m.writer}
	m.media = media.New(media.Options{Files: o.Files, Readers: m.flights, IsPruned: m.filler.isPruned, Now: o.Now, Logger: o.Logger})
	m.shared = shared.New(shared.Options{Pages: sharedPages{v, m.entries, m.writer}, Flights: m.flights, Now: o.Now, Logger: o.Logger})
	m.invalidator = &invalidator{
		env: v, entries: m.entries, flights: m.flights, holdings: m.holdings, writer: m.writer,
		contentsWritten: func(k *kind, w request.Write) { m.media.Written(k.source.config.Name, k.name, w) },
	}
	records, _ := o.Store.(compose.Store)
	m.composer = &composer{
		env: v, flights: m.flights, holdings: m.holdings, coverage: o.Coverage, records: records, writes: o.Writes,
		composing: make(chan struct{}, o.Limits.withDefaults().Lists),
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

// Run keeps polled pages warm, prefetches, and looks after the hot tier. It
// returns when ctx has ended and every goroutine of the mirror has; from then
// on Page and Write answer ErrClosed. It may be called once.
func (m *Mirror) Run(ctx context.Context) error {
	if !m.env.started.CompareAndSwap(false, true) {
		return errors.New("mirror: already running")
	}
	for _, s := range m.env.sources {
		s.lastRead.Store(m.env.monotonic(m.env.now()))
	}
	m.shadow.Recall(ctx)
	m.writer.flushSoon()
	m.poller.startPolls()
	m.env.work.Go(func() { m.shadow.Run(m.env.ctx) })
	for range prefetchers {
		m.env.work.Go(m.prefetch.run)
	}
	m.env.work.Go(func() { m.entries.hot.Run(m.env.ctx) })
	m.env.work.Go(m.writer.flusher)
	<-ctx.Done()
	m.flights.shut()
	m.close()
	m.media.Close()
	m.env.work.Wait()
	m.writer.flushLast()
	return nil
}

// monotonic is a time as one word: nanoseconds since the mirror was made, never 0.
func (v *env) monotonic(t time.Time) int64 {
	if n := int64(t.Sub(v.start)); n != 0 {
		return n
	}
	return 1
}

// Coverage is what the mirror needs of the crawler. It is the counterpart of
// crawl.Source.
type Coverage interface {
	// Covered says whether every record upstream has of a kind with a clock in
	// [from, to), 0 = open, is held, under one record or (parent "") under any;
	// of an empty one (from = to), whether what has no clock is.
	// It is called for every list that may be composed and must be cheap.
	Covered(source, kind, root, parent string, from, to int64) (request.Coverage, bool)
	// Recheck says that records with a clock in [from, to), 0 = open, may not be
	// what was walked. It returns at once.
	Recheck(source, kind string, from, to int64)
}

// SetCoverage sets Options.Coverage when the crawler is made after the mirror. It
// is called before the first request.
func (m *Mirror) SetCoverage(c Coverage) { m.composer.coverage = c }
