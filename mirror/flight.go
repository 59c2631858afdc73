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
	"understudy/mirror/shared"
	"understudy/mirror/slide"
	"understudy/mirror/writes"
	"understudy/request"
	"understudy/spec"
)

// flights are the fetches under way.
type flights struct {
	env         *env
	entries     *entries
	limits      atomic.Pointer[Limits]
	saveFetched func(*flight, *understudy.Page) // saves a fetched page and completes its flight

	sync.Mutex
	running    map[understudy.Key]*flight
	background int            // number of flights that go on without a waiter
	waiters    int            // number of readers that wait
	flows      map[uint64]int // the number of waiting readers of each flow
	refused    refused
	polling    bool // the polls have started
	// suspended are keys whose last background fetch failed, with the time when the next may start.
	suspended map[understudy.Key]time.Time
}

const (
	suspendTime      = time.Second
	maxSuspendedKeys = 1024
)

// flight is one fetch.
type flight struct {
	origin  origin
	means   means
	signals signals
	waiting waiting
	result  result
}

// origin is how a flight was started.
type origin struct {
	target           *spec.Target
	source           *source
	kind             *kind
	reason           request.Reason
	began            writes.Moment // the state of the kind's writes at the start
	isPatient        func() bool
	isFill           bool // whether Fill started the flight
	nonFinal         bool // started by a Fill of records that are not final
	recordsOnly      bool // saves only the records: the flight is not listed and no reader joins it
	withoutNeighbors bool // fetched for a neighboring page: its own neighbors are not fetched
}

// means are how a flight fetches.
type means struct {
	reservation *reservation // nil if the body needs no reservation
	fetch       shared.Fetch // the fetch for a generic source; nil if the flight fetches a page of upstream
}

// signals report the progress of a flight and end it.
type signals struct {
	ctx      context.Context
	cancel   context.CancelFunc
	kept     context.Context           // ends when the fetched page leaves memory; it outlasts ctx
	free     context.CancelFunc        // the function that ends the context kept
	timeout  *time.Timer               // ends the flight after its maximum time
	promote  chan struct{}             // closed when a reader joins a background flight
	tried    chan struct{}             // closed when the first try has failed
	failure  *understudy.UpstreamError // the failure of the first try; read only after tried is closed
	failedAt time.Time
	done     chan struct{}

	firstTry  sync.Once
	impatient atomic.Bool // the flight did not wait while the source was down

	// The fetched page, for readers that do not wait until it is saved.
	offered chan struct{}
	unsaved *understudy.Page // the fetched page before it is saved; set before offered is closed
}

// waiting are the waiters of a flight. The lock of flights guards all fields except followed.
type waiting struct {
	waiters    int
	readers    int  // number of readers that ever joined
	background bool // the flight goes on without waiters
	promoted   bool
	flow       uint64
	deadline   time.Time

	followed atomic.Bool // the next page of the answer has been queued
}

// result is the outcome of a flight. It is written before done is closed and read only afterwards.
type result struct {
	page             *understudy.Page
	err              error
	movedRows        []slide.Row // rows that have moved from this page to the page before; waiters get them too
	stored           bool
	restSaved        bool  // the page is outdated, but its records that were not written meanwhile are saved
	saveErr          error // why a fetched page is not stored
	changes          []understudy.Change
	detail           string
	saveDuration     time.Duration // the time that saving took
	changesAfterSave int64         // the kind's counter of changes right after the save; 0 if not saved or if other changes came meanwhile
}

// join makes the caller a waiter of the key's flight and starts the flight if none is under way. An
// invalidated flight is not joined. The caller must call release, or releaseReader if it is a reader. Errors:
// ErrClosed, errCompleted, and *understudy.UpstreamError if too many readers wait.
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
	// Of a completed flight only the page can be shared, and only while upstream's headers allow it. Its
	// error is not shared, and requireNew accepts no completed flight.
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

// begin starts a flight. The caller has the lock, and the mirror is open.
func (fs *flights) begin(t *spec.Target, s *source, k *kind, want fetchOptions) *flight {
	f := &flight{
		origin: origin{
			target: t, source: s, kind: k, reason: want.reason, isPatient: want.isPatient,
			began: k.writes.Now(), isFill: want.isFill, nonFinal: want.nonFinal, recordsOnly: want.recordsOnly,
			withoutNeighbors: want.withoutNeighbors,
		},
		means: means{want.reservation, want.fetch},
		signals: signals{
			promote: make(chan struct{}), tried: make(chan struct{}), done: make(chan struct{}), offered: make(chan struct{}),
		},
		waiting: waiting{background: want.reason != request.ReasonWaiting && !want.isFill, flow: want.flow, deadline: want.deadline},
	}
	f.signals.ctx, f.signals.cancel = context.WithCancel(fs.env.ctx)
	f.signals.kept, f.signals.free = context.WithCancel(context.Background())
	lasts := fs.env.ages().Wait + fs.env.ages().Try
	if f.origin.isFill {
		lasts = fillTime
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

// releaseReader removes a reader from a flight.
func (fs *flights) releaseReader(f *flight, turn uint64, keep bool) {
	fs.Lock()
	defer fs.Unlock()
	fs.removeReader(turn)
	fs.dropWaiter(f, keep)
}

// release removes a waiter that is no reader from a flight.
func (fs *flights) release(f *flight, keep bool) {
	fs.Lock()
	defer fs.Unlock()
	fs.dropWaiter(f, keep)
}

// dropWaiter removes a waiter and ends the flight if nobody else needs it. With keep, the flight goes on
// without waiters, because the reader got an older answer.
func (fs *flights) dropWaiter(f *flight, keep bool) {
	f.waiting.waiters--
	if keep && !f.waiting.background && fs.background < fs.limits.Load().Background && !f.isCompleted() {
		f.waiting.background = true
		fs.background++
	}
	// A completed flight stays listed until its page is in the hot tier.
	if f.waiting.waiters > 0 || f.waiting.background || f.isCompleted() {
		return
	}
	f.signals.cancel()
	fs.remove(f)
}

// removeEarly removes a flight from the list before it completes. Its page is only for the readers that wait
// already.
func (fs *flights) removeEarly(f *flight) {
	fs.Lock()
	defer fs.Unlock()
	fs.remove(f)
}

// remove removes a flight from the list, so that no reader joins it any more.
func (fs *flights) remove(f *flight) {
	if fs.running[f.origin.target.Key] == f {
		delete(fs.running, f.origin.target.Key)
	}
}

func (f *flight) isCompleted() bool {
	select {
	case <-f.signals.done:
		return true
	default:
		return false
	}
}

// startBackground starts a flight without a waiter. It returns nil if a flight is under way, too many
// background flights exist, or the key has just failed.
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
		return nil // the page was fetched a moment ago
	}
	return fs.begin(t, s, k, want)
}

// Join waits for a flight of the shared cache.
func (fs *flights) Join(
	ctx context.Context, t *spec.Target, flow uint64, direct bool, fetch shared.Fetch,
) (*understudy.Page, bool, error) {
	s := fs.env.sources[t.Key.Source]
	want := fetchOptions{reason: request.ReasonWaiting, skipCacheCheck: true, requireNew: direct, flow: flow, fetch: fetch}
	f, joined, err := fs.join(t, s, s.kinds[""], want)
	if err != nil {
		return nil, false, err
	}
	defer fs.releaseReader(f, flow, false)
	select {
	case <-f.signals.done:
		return f.result.page, joined, f.result.err
	case <-ctx.Done():
		return nil, joined, fmt.Errorf("mirror: %s: %w", t.Key, ctx.Err())
	}
}

// FetchInBackground starts a flight of the shared cache without a waiter.
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

// refuseNew closes the mirror for new goroutines. Goroutines are added only under this lock, so a later Wait
// waits for all of them.
func (fs *flights) refuseNew() {
	fs.Lock()
	defer fs.Unlock()
	fs.env.closed.Store(true)
}

// hasFreshSince reports whether the hot tier has a fresh page newer than since. A flight puts its page there
// before it leaves the list. So a caller with the lock that finds neither may start a flight.
func (es *entries) hasFreshSince(t *spec.Target, k *kind, since time.Time) bool {
	e := es.hot.Find(t.Key)
	if e == nil || !e.At.After(since) || e.Superseded.Load() != 0 || e.Generation < k.writes.Generation() {
		return false
	}
	h := heldPage{page: &understudy.Page{At: e.At, Status: http.StatusOK}}
	if es.markIfMoved(t, &h, es.env.now()); h.state != current {
		return false
	}
	age, sane := es.env.ages().age(es.env.now(), e.At)
	return sane && age < limitFreshTime(e.Bounds, es.env.ages().termFreshTime(e.Term))
}
