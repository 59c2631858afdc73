// The mirror: what it is made of, how it starts and how it ends.

// Package mirror answers requests from what the store holds, and fills the
// store from upstream.
//
// A request falls through three floors: the hot tier (memory), the store, and
// a flight to upstream that everybody who wants the same key shares. The
// mirror has no callers: nothing it keeps depends on who asked first.
package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/mirror/compose"
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
	*spec.Source
	Upstream Upstream
	// Generations of its kinds as the store remembers them, by kind.
	Generations map[string]int64
	// Rate is how many requests a second it takes; 0 = 10.
	Rate float64
	// Answers says what its lists are answered from, by kind; "" is for kinds
	// that are not named.
	Answers map[string]Answers
	// Checks is how many lists made from records may be asked upstream, too, to
	// compare them, a minute; 0 = 6.
	Checks float64
}

// Options are the mirror's settings. Sources and Store must be set.
type Options struct {
	Sources []Source
	Store   Store
	Files   Files // nil: no contents are kept
	// Coverage says which lists can be made from records; nil: none. The store
	// must then have Seek and PlaceOf, too.
	Coverage Coverage
	// Notes keep between two runs how far lists made from records were equal to
	// upstream's; nil: nothing is kept.
	Notes Notes
	// Intents keep between two runs which records writes were about to change;
	// nil: nothing is kept.
	Intents Intents
	Hot     int64            // bytes of memory for pages; 0 = 64 MiB, at least 4 MiB
	Ages    Ages             // zero fields take the defaults
	Limits  Limits           // the same
	Now     func() time.Time // the clock; nil = time.Now
	Logger  *slog.Logger     // nil = silence
	// Landed is told of every save that held at least one record or change, at
	// once, from the saving goroutine: it must not wait. The changes of one kind
	// come in the order of their numbers. nil: nobody is.
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
	sources map[string]*source
	store   Store
	aging   atomic.Pointer[Ages]
	limits  atomic.Pointer[Limits]
	now     func() time.Time
	log     *slog.Logger
	tell    func(request.PageSaved) // may be nil
	hot     *hot
	start   time.Time // the clock's zero for what is kept in one word

	flights      flights
	hints        hints
	media        media
	coverage     Coverage      // nil: nothing is covered
	records      compose.Store // nil: the store has no order of records
	composeGroup composeGroup
	composing    chan struct{} // a place for each list being made
	samples      chan sample
	notes        Notes
	saving       saving
	intents      Intents // nil: nobody remembers what a crash leaves
	leftovers    []leftover
	owing        chan struct{} // something is owed to the store
	prefetch     chan candidate

	unread  atomic.Bool  // the store could not be read, and the log knows
	said    atomic.Int64 // until when it is not told again
	running atomic.Bool
	closed  atomic.Bool
	ctx     context.Context // ends when the mirror is closed
	close   context.CancelFunc
	work    sync.WaitGroup // every goroutine of the mirror
}

// New makes a mirror. It answers at once; what goes on behind the readers
// (polls, prefetch, the hot tier's upkeep) begins with Run. Errors: a source
// that is there twice, a kind in polls that cannot be polled, too little
// memory.
func New(o Options) (*Mirror, error) {
	if o.Hot == 0 {
		o.Hot = defaultHot
	}
	switch {
	case o.Store == nil:
		return nil, errors.New("mirror: a store must be given")
	case o.Hot < minHot:
		return nil, fmt.Errorf("mirror: hot: %d bytes are too few, want at least %d", o.Hot, minHot)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Mirror{
		sources:  make(map[string]*source, len(o.Sources)),
		store:    o.Store,
		now:      o.Now,
		log:      o.Logger,
		tell:     o.PageSaved,
		hot:      newHot(o.Hot),
		start:    o.Now(),
		prefetch: make(chan candidate, maxHopes),
		owing:    make(chan struct{}, 1),
	}
	m.SetAges(o.Ages)
	m.SetLimits(o.Limits)
	m.coverage, m.notes = o.Coverage, o.Notes
	m.records, _ = o.Store.(compose.Store)
	m.composeGroup.running, m.composing, m.samples = map[composeKey]*composeCall{}, make(chan struct{}, m.limits.Load().Lists),
		make(chan sample, maxSamples)
	m.media.files, m.media.downloads, m.media.negatives = o.Files, map[understudy.Key]*download{}, map[understudy.Key]negative{}
	m.flights.running = map[understudy.Key]*flight{}
	m.hints.known, m.hints.running = map[hinted]*hint{}, make(chan struct{}, hinters)
	m.flights.flows = map[uint64]int{}
	m.flights.cooling = map[understudy.Key]time.Time{}
	m.ctx, m.close = context.WithCancel(context.Background())
	for _, s := range o.Sources {
		if err := m.addSource(s); err != nil {
			m.close()
			return nil, err
		}
	}
	m.recallIntents(o.Intents)
	return m, nil
}

// Run keeps polled pages warm, prefetches, and looks after the hot tier. It
// returns when ctx has ended and every goroutine of the mirror has; from then
// on Page and Write answer ErrClosed. It may be called once.
func (m *Mirror) Run(ctx context.Context) error {
	if !m.running.CompareAndSwap(false, true) {
		return errors.New("mirror: already running")
	}
	for _, s := range m.sources {
		s.lastRead.Store(m.monotonic(m.now()))
	}
	m.recallAgreement(ctx)
	m.confirmLeft()
	m.startPolls()
	m.work.Go(m.sampler)
	for range prefetchers {
		m.work.Go(m.prefetcher)
	}
	m.work.Go(m.promoter)
	m.work.Go(m.flusher)
	<-ctx.Done()
	m.shut()
	m.work.Wait()
	m.flushLast()
	return nil
}

// shut refuses what is new and ends what runs. Goroutines are only added
// under the flights' lock while the mirror is open, so that waiting for them
// afterwards waits for all.
func (m *Mirror) shut() {
	m.flights.Lock()
	m.closed.Store(true)
	m.flights.Unlock()
	m.close()
}

// word is a time as one word: nanoseconds since the mirror was made, never 0.
func (m *Mirror) monotonic(t time.Time) int64 {
	if n := int64(t.Sub(m.start)); n != 0 {
		return n
	}
	return 1
}
