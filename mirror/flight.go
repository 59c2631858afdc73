// Flights: one shared fetch for all requests with the same key.
//
//	reader ---.
//	reader ----+--> flight --> upstream --> store --> hot tier
//	prefetch -'
//
// A flight has its own context and belongs to no reader. A reader leaves at its own deadline without harm to
// the other readers. The flight ends when its last waiter has left, unless it may go on in the background.

package mirror

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/kit/lockwatch"
	"understudy/mirror/shared"
	"understudy/mirror/slide"
	"understudy/mirror/writes"
	"understudy/request"
	"understudy/spec"
)

// flights are the running flights of all sources.
type flights struct {
	env         *env
	entries     *entries
	limits      atomic.Pointer[Limits]
	saveFetched func(*flight, *understudy.Page) // saves the page of a flight and then completes the flight
	// keepFetched puts a page into memory that another process has fetched, unless pages have become outdated since there
	// were before changes.
	keepFetched func(f *flight, p *understudy.Page, before int64)

	lockwatch.Mutex
	running    map[understudy.Key]*flight
	background int            // the number of flights that continue although nobody waits
	waiters    int            // the number of readers that wait for upstream
	flows      map[uint64]int // for each Flow of requests, the number of its readers that wait
	refused    refused
	polling    bool // whether the mirror runs, so that polls may be started
	// suspended has the keys whose last background fetch has failed, and when each may be fetched again in the background.
	suspended map[understudy.Key]time.Time
}

const (
	suspendTime      = time.Second
	maxSuspendedKeys = 1024
)

// flight is one fetch of a page from upstream, which all readers of the page share.
type flight struct {
	origin  origin
	means   means
	signals signals
	waiting waiting
	result  result
}

// origin says what a flight fetches and why it was started.
type origin struct {
	target           *spec.Target
	source           *source
	kind             *kind
	reason           request.Reason
	began            writes.Moment // how many writes there had been to the kind when the flight started
	isPatient        func() bool
	isFill           bool           // whether Fill started the flight
	nonFinal         bool           // whether a fill started the flight to read records again that are not in a final state
	recordsOnly      bool           // whether only the records are saved; such a flight is not listed, so no reader joins it
	withoutNeighbors bool           // whether the page is fetched because of the page beside it, so that its own neighbors are not fetched
	trace            *request.Trace // the client's request that caused the flight, or nil
}

// means are what a flight needs to fetch its page.
type means struct {
	reservation *reservation // the memory reserved for the body; nil if none needs to be reserved
	fetch       shared.Fetch // the function that fetches from a generic source; nil for a page of another source
}

// signals report how far a flight has got, and end it.
type signals struct {
	ctx    context.Context
	cancel context.CancelFunc
	// a context that ends when the fetched page is no longer in memory, which may be later than the end of ctx
	kept     context.Context
	free     context.CancelFunc        // the function that tells a waiting fetch that the page is no longer in memory
	timeout  *time.Timer               // a timer that ends the flight after its maximum time
	promote  chan struct{}             // a channel that is closed when a reader joins a flight that nobody waited for
	tried    chan struct{}             // a channel that is closed when the first attempt has failed
	failure  *understudy.UpstreamError // the failure of the first attempt, set before tried is closed
	failedAt time.Time
	done     chan struct{}

	firstTry  sync.Once
	impatient atomic.Bool // whether the flight failed at once during an outage, because its reader had a fallback

	// offered is closed when the page may be given to readers before it has been saved.
	offered chan struct{}
	unsaved *understudy.Page // the fetched page before it has been saved, set before offered is closed
}

// waiting has who waits for a flight. The lock of flights guards all fields except followed.
type waiting struct {
	waiters    int
	readers    int  // the number of readers that have joined the flight since its start
	background bool // whether the flight continues although nobody waits for it
	promoted   bool
	flow       uint64
	deadline   time.Time

	followed atomic.Bool // whether the page after the flight's page has been queued to be prefetched
}

// result is the result of a flight. It is written before done is closed and read only afterwards.
type result struct {
	page *understudy.Page
	err  error
	// rows that are now on the page before this one; readers that have an older copy of that page also get these rows
	movedRows    []slide.Row
	stored       bool
	restSaved    bool  // whether the page was outdated by a write and the other records on it have been saved
	saveErr      error // why the fetched page is not stored
	changes      []understudy.Change
	detail       string
	saveDuration time.Duration // how long saving the page took
	// the number of changes to the kind right after the save; 0 if the page was not saved, or if there were other
	// changes in the meantime
	changesAfterSave int64
}

// join adds the caller to the flight for a key. If none is running, or if a write has invalidated it, join starts a
// flight. Afterwards a reader must call releaseReader, and any other caller release. Errors: ErrClosed, errCompleted,
// and *understudy.UpstreamError if too many readers wait.
func (fs *flights) join(t *spec.Target, s *source, k *kind, want fetchOptions) (f *flight, joined bool, err error) {
	fs.Lock()
	defer fs.Unlock()
	if fs.env.closed.Load() {
		return nil, false, fmt.Errorf("mirror: %w", understudy.ErrClosed)
	}
	f = fs.running[t.Key]
	if f == nil && want.reason == request.ReasonWaiting && !want.skipCacheCheck && fs.entries.hasFreshSince(t, k, want.newerThan) {
		return nil, false, errCompleted
	}
	// A flight that has ended may share its page, if upstream's headers permit it and the caller does not require a
	// new page. It never shares its error.
	start := f == nil || f.isInvalidated() || f.isCompleted() && (want.requireNew || f.result.err != nil || !fs.env.isReusable(f.result.page))
	if want.reason == request.ReasonWaiting {
		if err := fs.admit(fs.limits.Load(), want.flow, start); err != nil {
			return nil, false, fmt.Errorf("mirror: %s: %w", t.Key, err)
		}
	}
	if start {
		f = fs.begin(t, s, k, want)
	} else {
		joined = true
	}
	f.waiting.waiters++
	if want.reason == request.ReasonWaiting {
		f.waiting.readers++
	}
	if want.reason == request.ReasonWaiting && f.origin.reason != request.ReasonWaiting && !f.waiting.promoted {
		f.waiting.promoted = true
		close(f.signals.promote)
		f.means.reservation.stop()
		f.signals.timeout.Reset(fs.env.ages().Wait + fs.env.ages().Try)
	}
	return f, joined, nil
}

// begin starts a flight. The caller holds the lock, and the mirror is not closed.
func (fs *flights) begin(t *spec.Target, s *source, k *kind, want fetchOptions) *flight {
	f := &flight{
		origin: origin{
			target: t, source: s, kind: k, reason: want.reason, isPatient: want.isPatient,
			began: k.writes.Now(), isFill: want.isFill, nonFinal: want.nonFinal, recordsOnly: want.recordsOnly,
			withoutNeighbors: want.withoutNeighbors, trace: want.cause,
		},
		means: means{want.reservation, want.fetch},
		signals: signals{
			promote: make(chan struct{}), tried: make(chan struct{}), done: make(chan struct{}), offered: make(chan struct{}),
		},
		waiting: waiting{background: want.reason != request.ReasonWaiting && !want.isFill, flow: want.flow, deadline: want.deadline},
	}
	f.signals.ctx, f.signals.cancel = context.WithCancel(request.WithTrace(fs.env.ctx, f.origin.trace))
	f.signals.kept, f.signals.free = context.WithCancel(context.Background())
	lasts := fs.env.ages().Wait + fs.env.ages().Try
	if f.origin.isFill {
		lasts = maxFillTime
	}
	f.signals.timeout = time.AfterFunc(lasts, f.signals.cancel)
	if f.waiting.background {
		fs.background++
	}
	if !f.origin.recordsOnly {
		fs.running[t.Key] = f
	}
	fs.env.work.Go(func() { fs.runFlight(f) })
	return f
}

// releaseReader removes a reader from a flight. If keep is true, the flight continues even if nobody waits for it.
func (fs *flights) releaseReader(f *flight, turn uint64, keep bool) {
	fs.Lock()
	defer fs.Unlock()
	fs.removeReader(turn)
	fs.dropWaiter(f, keep)
}

// release removes a waiter that is not a reader from a flight.
func (fs *flights) release(f *flight, keep bool) {
	fs.Lock()
	defer fs.Unlock()
	fs.dropWaiter(f, keep)
}

// dropWaiter removes a waiter from a flight, and ends the flight if nobody needs it any more. If keep is true, the
// flight continues in the background, because the reader got an older page.
func (fs *flights) dropWaiter(f *flight, keep bool) {
	f.waiting.waiters--
	if keep && !f.waiting.background && fs.background < fs.limits.Load().Background && !f.isCompleted() {
		f.waiting.background = true
		fs.background++
	}
	// A flight that has ended stays in the list until its page is in memory.
	if f.waiting.waiters > 0 || f.waiting.background || f.isCompleted() {
		return
	}
	f.signals.cancel()
	fs.remove(f)
}

// remove removes a flight from the list, so that nobody joins it any more.
func (fs *flights) remove(f *flight) {
	if fs.running[f.origin.target.Key] == f {
		delete(fs.running, f.origin.target.Key)
	}
}

func (f *flight) isCompleted() bool { return understudy.IsClosed(f.signals.done) }

// startBackground starts a flight that nobody waits for. It returns nil if a flight for the key is running, if too
// many such flights are running, or if a flight for the key has just failed.
func (fs *flights) startBackground(t *spec.Target, s *source, k *kind, want fetchOptions) *flight {
	fs.Lock()
	defer fs.Unlock()
	f := fs.running[t.Key]
	switch {
	case fs.env.closed.Load():
		return nil
	case fs.background >= fs.limits.Load().Background:
		fs.refused.background++
		return nil
	case f != nil && !f.isInvalidated() && (!f.isCompleted() || !want.requireNew && (f.result.err != nil || fs.env.isReusable(f.result.page))):
		return nil
	case remainingPause(fs.env.now(), fs.suspended[t.Key], suspendTime) > 0:
		return nil
	case want.reason == request.ReasonPrefetch && !want.requireNew && fs.entries.hasFreshSince(t, k, time.Time{}):
		return nil // the page has just been fetched, so it need not be fetched again
	}
	return fs.begin(t, s, k, want)
}

// Join implements shared.Flights: it waits for a flight to a generic source.
func (fs *flights) Join(
	ctx context.Context, t *spec.Target, flow uint64, direct bool, fetch shared.Fetch,
) (*understudy.Page, bool, error) {
	s := fs.env.sources[t.Key.Source]
	cause := request.TraceOf(ctx)
	want := fetchOptions{reason: request.ReasonWaiting, skipCacheCheck: true, requireNew: direct, flow: flow, fetch: fetch, cause: cause}
	f, joined, err := fs.join(t, s, s.kinds[""], want)
	if err != nil {
		return nil, false, err
	}
	defer fs.releaseReader(f, flow, false)
	defer cause.End(cause.Begin("flight"), 0)
	select {
	case <-f.signals.done:
		return f.result.page, joined, f.result.err
	case <-ctx.Done():
		return nil, joined, fmt.Errorf("mirror: %s: %w", t.Key, ctx.Err())
	}
}

// FetchInBackground implements shared.Flights: it starts a flight to a generic source that nobody waits for.
func (fs *flights) FetchInBackground(t *spec.Target, fetch shared.Fetch) {
	s := fs.env.sources[t.Key.Source]
	fs.startBackground(t, s, s.kinds[""], fetchOptions{reason: request.ReasonRefresh, fetch: fetch})
}

// startGoroutine runs f in a goroutine of the mirror. It returns false if the mirror is closed.
func (fs *flights) startGoroutine(f func()) bool {
	fs.Lock()
	defer fs.Unlock()
	if fs.env.closed.Load() {
		return false
	}
	fs.env.work.Go(f)
	return true
}

// hasFreshSince reports whether a fresh page newer than since is in memory. A flight puts its page into memory before
// it leaves the list. So a caller that holds the lock and finds neither may start a flight.
func (es *entries) hasFreshSince(t *spec.Target, k *kind, since time.Time) bool {
	e := es.hot.Find(t.Key)
	if e == nil || !e.At.After(since) || e.Superseded.Load() != 0 || e.Generation < k.writes.Generation() {
		return false
	}
	h := storedPage{page: &understudy.Page{At: e.At, Status: http.StatusOK}}
	if es.markIfMoved(t, &h, es.env.now()); h.state != current {
		return false
	}
	age, sane := es.env.ages().age(es.env.now(), e.At)
	return sane && age < limitFreshTime(e.Bounds, es.env.ages().termFreshTime(e.Term))
}
