// Flights: one fetch for all that want the same key.
//
//	reader ---.
//	reader ----+--> flight --> upstream --> store --> hot tier
//	prefetch -'      |
//	                 its own context: it ends when the last waiter has left
//	                 and nothing keeps it
//
// A flight belongs to none of its readers. A reader leaves at its own
// deadline and harms no other.

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
	env     *env
	entries *entries
	limits  atomic.Pointer[Limits]
	keep    func(*flight, *understudy.Page) // saves what a flight brought

	sync.Mutex
	running    map[understudy.Key]*flight
	background int            // how many go on without a waiter
	waiters    int            // readers that wait
	flows      map[uint64]int // the same, by turn
	refused    refused
	polling    bool // the polls have begun
	// cooling are keys whose last fetch without a reader failed, until when the
	// next may begin.
	cooling map[understudy.Key]time.Time
}

const (
	coolTime   = time.Second
	maxCooling = 1024
)

// flight is one fetch.
type flight struct {
	origin  origin
	means   means
	signals signals
	waiting waiting
	result  result
}

// origin is what a flight was begun with.
type origin struct {
	target      *spec.Target
	source      *source
	kind        *kind
	reason      request.Reason
	began       writes.Moment // of the kind
	patient     func() bool
	filled      bool // begun by Fill
	look        bool // by Fill.Look
	recordsOnly bool // for its records only: it is on no list and no reader joins it
	alone       bool // fetched for the page after it: the one before it is not looked at
}

// means are how a flight fetches.
type means struct {
	reservation *reservation // nil: what it brings is not weighed
	fetch       shared.Fetch // of a generic source, in place of a fetch of a page; nil: none
}

// signals tell how far a flight is, and end it.
type signals struct {
	ctx      context.Context
	cancel   context.CancelFunc
	kept     context.Context           // while what it brought is in memory for it; it outlasts ctx
	free     context.CancelFunc        // ends kept
	ends     *time.Timer               // the longest it may take
	promote  chan struct{}             // closed when a reader joins what was begun without one
	tried    chan struct{}             // closed when the first try has failed
	failure  *understudy.UpstreamError // of the first try; read after tried
	failedAt time.Time
	done     chan struct{}

	firstTry sync.Once
	hasty    atomic.Bool // it did not wait while the source was down

	// What upstream gave, for readers that do not wait until it is saved.
	offered chan struct{}
	unsaved *understudy.Page // written before offered closes
}

// waiting are the waiters of a flight. The lock of the flights guards it,
// but for followed.
type waiting struct {
	waiters  int
	readers  int  // that ever joined
	kept     bool // goes on without waiters
	promoted bool
	flow     uint64
	deadline time.Time

	followed atomic.Bool // its answer's next page has been thought of
}

// result is what a flight brought. It is written before done closes and read
// after.
type result struct {
	page      *understudy.Page
	err       error
	behind    []slide.Row // rows of a list that have moved away from the page: its waiters get them too
	stored    bool
	restSaved bool  // an invalidated list's records that were not written meanwhile are saved
	saveErr   error // why a page that brought something is not stored
	changes   []understudy.Change
	detail    string
	saving    time.Duration // what the store took
	saved     int64         // the kind's counter of changes right after it was saved; 0: something else changed meanwhile, or it was not
}

// join makes the caller a waiter of the key's flight, which begins now unless
// it is under way. A flight that was invalidated is not joined. The caller must
// leave, a reader by part. Errors: ErrClosed, errCompleted, and an
// *understudy.UpstreamError when too many wait already.
func (fs *flights) join(t *spec.Target, s *source, k *kind, want fetchOptions) (f *flight, joined bool, err error) {
	fs.Lock()
	defer fs.Unlock()
	if fs.env.closed.Load() {
		return nil, false, fmt.Errorf("mirror: %w", understudy.ErrClosed)
	}
	f = fs.running[t.Key]
	if f == nil && want.reason == request.Waiting && !want.blind && fs.entries.freshSince(t, k, want.since) {
		return nil, false, errCompleted
	}
	// Of one that has completed only its page is for others, as long as upstream lets it be:
	// not its error, and nothing for a reader that wants it as fresh as upstream.
	start := f == nil || f.invalidated() || f.completed() && (want.direct || f.result.err != nil || !fs.env.lasts(f.result.page))
	if want.reason == request.Waiting {
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
	if want.reason == request.Waiting {
		f.waiting.readers++
	}
	if want.reason == request.Waiting && f.origin.reason != request.Waiting && !f.waiting.promoted {
		f.waiting.promoted = true
		close(f.signals.promote)
		f.means.reservation.stop()
		f.signals.ends.Reset(fs.env.ages().Wait + fs.env.ages().Try)
	}
	return f, joined, nil
}

// begin starts a flight; the lock is held and the mirror open.
func (fs *flights) begin(t *spec.Target, s *source, k *kind, want fetchOptions) *flight {
	f := &flight{
		origin: origin{
			target: t, source: s, kind: k, reason: want.reason, patient: want.patient,
			began: k.writes.Now(), filled: want.fill, look: want.look, recordsOnly: want.recordsOnly, alone: want.alone,
		},
		means: means{want.reservation, want.fetch},
		signals: signals{
			promote: make(chan struct{}), tried: make(chan struct{}), done: make(chan struct{}), offered: make(chan struct{}),
		},
		waiting: waiting{kept: want.reason != request.Waiting && !want.fill, flow: want.flow, deadline: want.deadline},
	}
	f.signals.ctx, f.signals.cancel = context.WithCancel(fs.env.ctx)
	f.signals.kept, f.signals.free = context.WithCancel(context.Background())
	lasts := fs.env.ages().Wait + fs.env.ages().Try
	if f.origin.filled {
		lasts = fillTime
	}
	f.signals.ends = time.AfterFunc(lasts, f.signals.cancel)
	if f.waiting.kept {
		fs.background++
	}
	if !f.origin.recordsOnly {
		fs.running[t.Key] = f
	}
	fs.env.work.Go(func() { fs.runFlight(f) })
	return f
}

// releaseReader ends a reader's part in a flight.
func (fs *flights) releaseReader(f *flight, turn uint64, keep bool) {
	fs.Lock()
	defer fs.Unlock()
	fs.dismiss(turn)
	fs.dropWaiter(f, keep)
}

// release ends the part of anybody else.
func (fs *flights) release(f *flight, keep bool) {
	fs.Lock()
	defer fs.Unlock()
	fs.dropWaiter(f, keep)
}

// dropWaiter is both. keep lets the flight go on without a waiter: one was answered
// with something older meanwhile.
func (fs *flights) dropWaiter(f *flight, keep bool) {
	f.waiting.waiters--
	if keep && !f.waiting.kept && fs.background < fs.limits.Load().Behind && !f.completed() {
		f.waiting.kept = true
		fs.background++
	}
	// What has completed stays on the list until its page is in the hot tier.
	if f.waiting.waiters > 0 || f.waiting.kept || f.completed() {
		return
	}
	f.signals.cancel()
	fs.remove(f)
}

// leave takes a flight off the list before it completes: what it brings is for those who wait
// already.
func (fs *flights) leave(f *flight) {
	fs.Lock()
	defer fs.Unlock()
	fs.remove(f)
}

// remove takes a flight off the list; no reader joins it any more.
func (fs *flights) remove(f *flight) {
	if fs.running[f.origin.target.Key] == f {
		delete(fs.running, f.origin.target.Key)
	}
}

func (f *flight) completed() bool {
	select {
	case <-f.signals.done:
		return true
	default:
		return false
	}
}

// startBackground begins a flight without a waiter, unless one is under way, too many
// are, or the key has just failed.
func (fs *flights) startBackground(t *spec.Target, s *source, k *kind, want fetchOptions) *flight {
	fs.Lock()
	defer fs.Unlock()
	f := fs.running[t.Key]
	switch {
	case fs.env.closed.Load():
		return nil
	case fs.background >= fs.limits.Load().Behind:
		fs.refused.background++
		return nil
	case f != nil && !f.invalidated() && (!f.completed() || !want.direct && (f.result.err != nil || fs.env.lasts(f.result.page))):
		return nil
	case remaining(fs.env.now(), fs.cooling[t.Key], coolTime) > 0:
		return nil
	case want.reason == request.Prefetch && !want.direct && fs.entries.freshSince(t, k, time.Time{}):
		return nil // it completed a moment ago
	}
	return fs.begin(t, s, k, want)
}

// Join waits for a flight of a shared cache.
func (fs *flights) Join(
	ctx context.Context, t *spec.Target, flow uint64, direct bool, fetch shared.Fetch,
) (*understudy.Page, bool, error) {
	s := fs.env.sources[t.Key.Source]
	want := fetchOptions{reason: request.Waiting, blind: true, direct: direct, flow: flow, fetch: fetch}
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

// Behind begins a flight of a shared cache that nobody waits for.
func (fs *flights) Behind(t *spec.Target, fetch shared.Fetch) {
	s := fs.env.sources[t.Key.Source]
	fs.startBackground(t, s, s.kinds[""], fetchOptions{reason: request.Refresh, fetch: fetch})
}

// goOpen begins a goroutine unless the mirror is closed. Goroutines are added under the
// flights' lock while the mirror is open.
func (fs *flights) goOpen(f func()) bool {
	fs.Lock()
	defer fs.Unlock()
	if fs.env.closed.Load() {
		return false
	}
	fs.env.work.Go(f)
	return true
}

// shut refuses what is new. Goroutines are only added under this lock while the
// mirror is open, so that waiting for them afterwards waits for all.
func (fs *flights) shut() {
	fs.Lock()
	defer fs.Unlock()
	fs.env.closed.Store(true)
}

// freshSince reports whether a fresh page newer than since is in the hot tier.
// A flight puts its page there before it leaves the list, so the holder of the
// list's lock and finds neither may begin one.
func (es *entries) freshSince(t *spec.Target, k *kind, since time.Time) bool {
	e := es.hot.Find(t.Key)
	if e == nil || !e.At.After(since) || e.Superseded.Load() != 0 || e.Generation < k.writes.Generation() {
		return false
	}
	h := held{page: &understudy.Page{At: e.At, Status: http.StatusOK}}
	if es.together(t, &h, es.env.now()); h.state != current {
		return false
	}
	age, sane := es.env.ages().age(es.env.now(), e.At)
	return sane && age < freshBy(e.Said, es.env.ages().of(e.Term))
}
