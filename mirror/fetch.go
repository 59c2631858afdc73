// A flight's fetch: from its options to the page it saved.

package mirror

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"understudy"
	"understudy/mirror/shared"
	"understudy/request"
)

// fetchOptions are the options of a fetch.
type fetchOptions struct {
	reason  request.Reason
	patient func() bool // the reader has no other answer; nil: no reader began it
	direct  bool        // what has completed already will not do
	// since is when upstream gave what the reader found; what completed after it
	// looked is told by errCompleted instead of being fetched again.
	since    time.Time
	blind    bool      // it does not want to be told
	flow     uint64    // of the reader
	deadline time.Time // when the reader leaves; zero: unknown

	// Of Fill: begun for a walk, since records are not final, for its records only, weighed.
	fill, look, recordsOnly bool
	alone                   bool
	reservation             *reservation

	fetch shared.Fetch // of a generic source: what the flight does in place of a fetch
}

// errCompleted: the page came between the reader's look and its joining.
var errCompleted = errors.New("mirror: landed meanwhile")

// runFlight is a flight's own goroutine: fetch, save, hold. Whatever panics in
// upstream or store is contained, and the key is never stuck.
func (fs *flights) runFlight(f *flight) {
	defer func() {
		if p := recover(); p != nil {
			fs.env.log.Error("mirror: panic", "key", f.origin.target.Key.String(), "panic", p, "stack", string(debug.Stack()))
			f.complete(nil, fmt.Errorf("mirror: fetch %s: panic: %v", f.origin.target.Key, p))
		}
		fs.removeFlight(f)
	}()
	p, err := fs.fetch(f)
	if err == nil && p == nil {
		err = errors.New("upstream gave neither a page nor an error")
	}
	f.origin.source.outage.heard(err)
	if p != nil && p.Field("Etag") != "" {
		f.origin.source.validates.Store(true)
	}
	if err != nil {
		f.complete(nil, fs.failedFor(f, err))
		return
	}
	fs.keep(f, p)
}

// fetch is what the flight is for.
func (fs *flights) fetch(f *flight) (*understudy.Page, error) {
	if f.means.fetch != nil {
		return f.means.fetch(f.signals.ctx)
	}
	return f.origin.source.upstream.Fetch(f.signals.ctx, fs.fetchFor(f))
}

func (fs *flights) fetchFor(f *flight) request.Fetch {
	e := request.Fetch{
		Target: f.origin.target, Reason: f.origin.reason, Generation: f.origin.began.Generation,
		Promote: f.signals.promote, Patient: f.waits,
		Flow: f.waiting.flow, Queue: fs.env.ages().Wait, By: f.waiting.deadline,
		Keeps: f.signals.kept,
		Tried: func(e *understudy.UpstreamError) { fs.failed(f, e) },
	}
	if f.origin.source.validates.Load() && f.origin.kind.name != "" && !f.origin.recordsOnly {
		e.Held = fs.validated(f)
	}
	if f.means.reservation != nil {
		e.Reserve = f.means.reservation.reserve
	}
	if f.origin.reason == request.Waiting {
		e.Retry = fs.env.ages().Wait
	}
	return e
}

// validated is the page that is held of a flight's target with upstream's ETag; nil: none.
func (fs *flights) validated(f *flight) *understudy.Page {
	good := func(p *understudy.Page, err error) bool {
		return err == nil && p.Key == f.origin.target.Key && p.Status == http.StatusOK && p.Field("Etag") != ""
	}
	if e := fs.entries.hot.Find(f.origin.target.Key); e != nil {
		if p, err := fs.entries.hot.Unpack(e); good(p, err) {
			return p
		}
	}
	if p, err := fs.env.store.Page(f.signals.ctx, f.origin.target.Key); good(p, err) {
		return p
	}
	return nil
}

// waits reports whether it waits while the source is down, and notes when not.
func (f *flight) waits() bool {
	waits := f.origin.patient != nil && f.origin.patient()
	if !waits {
		f.signals.hasty.Store(true)
	}
	return waits
}

// hurried reports whether it may have failed where one that a reader without any
// other answer begins goes on.
func (f *flight) hurried() bool {
	return f.origin.reason != request.Waiting || f.signals.hasty.Load() || !f.waiting.deadline.IsZero()
}

// failed notes failed tries, from upstream's goroutine; the first one counts.
func (fs *flights) failed(f *flight, err *understudy.UpstreamError) {
	f.signals.firstTry.Do(func() {
		f.signals.failure, f.signals.failedAt = err, fs.env.now()
		close(f.signals.tried)
	})
}

// failedFor is the error readers see: one of the mirror's closing, or of a
// flight that took too long, is no longer the context's.
func (fs *flights) failedFor(f *flight, err error) error {
	switch {
	case fs.env.closed.Load():
		return fmt.Errorf("mirror: %w", understudy.ErrClosed)
	case f.signals.ctx.Err() != nil && !errors.Is(err, understudy.ErrUnavailable):
		err = &understudy.UpstreamError{Why: understudy.FailUnreachable, Err: errors.New("no answer in time")}
	}
	return fmt.Errorf("mirror: fetch %s: %w", f.origin.target.Key, err)
}

// complete tells the waiters. Only the first completion counts.
func (f *flight) complete(p *understudy.Page, err error) {
	if f.completed() {
		return
	}
	f.result.page, f.result.err = p, err
	close(f.signals.done)
}

// offerUnsaved lets the flight's readers have a page that takes longer than readerTime
// to save, as one that is not stored. What it returns says that the save is over.
func (f *flight) offerUnsaved(p *understudy.Page) (over func()) {
	early := time.AfterFunc(readerTime, func() {
		f.signals.unsaved = p
		close(f.signals.offered)
	})
	return func() { early.Stop() }
}

// removeFlight ends a flight. It is taken off the list last, so that a reader that asks
// between its completion and its place in the hot tier still finds it.
func (fs *flights) removeFlight(f *flight) {
	f.signals.ends.Stop()
	f.signals.cancel()
	f.signals.free()
	fs.Lock()
	defer fs.Unlock()
	fs.remove(f)
	if f.waiting.kept {
		fs.background--
	}
	if f.result.err != nil {
		fs.cool(f.origin.target.Key, fs.env.now())
	}
}

func (fs *flights) cool(key understudy.Key, now time.Time) {
	if len(fs.cooling) >= maxCooling {
		for k, until := range fs.cooling {
			if remaining(now, until, coolTime) == 0 {
				delete(fs.cooling, k)
			}
		}
	}
	if len(fs.cooling) < maxCooling {
		fs.cooling[key] = now.Add(coolTime)
	}
}

// invalidated reports that a write or a purge came after the flight began: what
// it brings is for its waiters and is not kept. A record's own page is old by
// writes to that record alone.
func (f *flight) invalidated() bool {
	id := ""
	if f.origin.target.Instance != nil {
		id = f.origin.target.ID
	}
	return f.origin.kind.writes.IsStale(id, f.origin.began)
}

// untouched are the rows of a flight's page that no write has touched since it
// began.
func (f *flight) untouched(rows []understudy.Row) (kept []understudy.Row) {
	for _, r := range rows {
		if r.ID != "" && !f.origin.kind.writes.IsWritten(r.ID, f.origin.began) {
			kept = append(kept, r)
		}
	}
	return kept
}
