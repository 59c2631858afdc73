// The fetch of a flight: its options, its request to upstream and its end.

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

// fetchOptions are the options with which a flight is joined or started.
type fetchOptions struct {
	reason     request.Reason
	isPatient  func() bool // reports that the reader has no fallback; nil if no reader starts the flight
	requireNew bool        // do not accept the page of a completed flight
	// newerThan is the time of the page that the reader found. If a newer page has come into the hot tier
	// since, join returns errCompleted and starts no flight.
	newerThan      time.Time
	skipCacheCheck bool      // whether errCompleted is never returned
	flow           uint64    // the flow of the reader
	deadline       time.Time // when the reader leaves; zero if unknown

	// Options of Fill.
	isFill, nonFinal, recordsOnly bool
	withoutNeighbors              bool
	reservation                   *reservation

	fetch shared.Fetch // a fetch for a generic source, instead of Upstream.Fetch
}

// errCompleted means that the page was fetched after the reader looked and before it joined.
var errCompleted = errors.New("mirror: landed meanwhile")

// runFlight is the goroutine of a flight: it fetches the page and has it saved. It recovers panics of
// upstream and store, so that the key is never blocked.
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
	f.origin.source.outage.noteResult(err)
	if p != nil && p.HeaderField("Etag") != "" {
		f.origin.source.sendsETags.Store(true)
	}
	if err != nil {
		f.complete(nil, fs.describeFailure(f, err))
		return
	}
	fs.saveFetched(f, p)
}

// fetch fetches the page of a flight.
func (fs *flights) fetch(f *flight) (*understudy.Page, error) {
	if f.means.fetch != nil {
		return f.means.fetch(f.signals.ctx)
	}
	return f.origin.source.upstream.Fetch(f.signals.ctx, fs.buildFetch(f))
}

// buildFetch returns the request to upstream for a flight.
func (fs *flights) buildFetch(f *flight) request.Fetch {
	e := request.Fetch{
		Target: f.origin.target, Reason: f.origin.reason, Generation: f.origin.began.Generation,
		Promote: f.signals.promote, CanWaitForProbe: f.canWait,
		Flow: f.waiting.flow, MaxQueueWait: fs.env.ages().Wait, Deadline: f.waiting.deadline,
		BodyInUse: f.signals.kept,
		OnRetry:   func(e *understudy.UpstreamError) { fs.noteFailedTry(f, e) },
	}
	if f.origin.source.sendsETags.Load() && f.origin.kind.name != "" && !f.origin.recordsOnly {
		e.Stored = fs.pageWithETag(f)
	}
	if f.means.reservation != nil {
		e.Reserve = f.means.reservation.reserve
	}
	if f.origin.reason == request.ReasonWaiting {
		e.RetryWindow = fs.env.ages().Wait
	}
	return e
}

// pageWithETag returns the stored page of a flight's target if it has an ETag of upstream, otherwise nil.
func (fs *flights) pageWithETag(f *flight) *understudy.Page {
	good := func(p *understudy.Page, err error) bool {
		return err == nil && p.Key == f.origin.target.Key && p.Status == http.StatusOK && p.HeaderField("Etag") != ""
	}
	if e := fs.entries.hot.Find(f.origin.target.Key); e != nil {
		if p, err := fs.entries.hot.Unpack(e); good(p, err) {
			return p
		}
	}
	if p, err := fs.env.store.ReadPage(f.signals.ctx, f.origin.target.Key); good(p, err) {
		return p
	}
	return nil
}

// canWait reports whether the flight may wait while the source is down. It notes when it may not.
func (f *flight) canWait() bool {
	waits := f.origin.isPatient != nil && f.origin.isPatient()
	if !waits {
		f.signals.impatient.Store(true)
	}
	return waits
}

// isImpatient reports whether the flight may have failed although a flight of a reader without fallback would
// go on.
func (f *flight) isImpatient() bool {
	return f.origin.reason != request.ReasonWaiting || f.signals.impatient.Load() || !f.waiting.deadline.IsZero()
}

// noteFailedTry stores the first failed try. Upstream's goroutine calls it.
func (fs *flights) noteFailedTry(f *flight, err *understudy.UpstreamError) {
	f.signals.firstTry.Do(func() {
		f.signals.failure, f.signals.failedAt = err, fs.env.now()
		close(f.signals.tried)
	})
}

// describeFailure returns the error that readers get. If the mirror is closing or the flight took too long,
// it replaces the context's error.
func (fs *flights) describeFailure(f *flight, err error) error {
	switch {
	case fs.env.closed.Load():
		return fmt.Errorf("mirror: %w", understudy.ErrClosed)
	case f.signals.ctx.Err() != nil && !errors.Is(err, understudy.ErrUnavailable):
		err = &understudy.UpstreamError{Why: understudy.FailUnreachable, Err: errors.New("no answer in time")}
	}
	return fmt.Errorf("mirror: fetch %s: %w", f.origin.target.Key, err)
}

// complete sets the result and wakes the waiters. Only the first call counts.
func (f *flight) complete(p *understudy.Page, err error) {
	if f.isCompleted() {
		return
	}
	f.result.page, f.result.err = p, err
	close(f.signals.done)
}

// offerUnsaved offers the page to the flight's readers as not stored if its save takes longer than
// offerAfter. The caller calls the returned function when the save is over.
func (f *flight) offerUnsaved(p *understudy.Page) (over func()) {
	early := time.AfterFunc(offerAfter, func() {
		f.signals.unsaved = p
		close(f.signals.offered)
	})
	return func() { early.Stop() }
}

// removeFlight ends a flight and removes it from the list. By then its page is in the hot tier, so that every
// reader finds either the flight or the page.
func (fs *flights) removeFlight(f *flight) {
	f.signals.timeout.Stop()
	f.signals.cancel()
	f.signals.free()
	fs.Lock()
	defer fs.Unlock()
	fs.remove(f)
	if f.waiting.background {
		fs.background--
	}
	if f.result.err != nil {
		fs.pauseKey(f.origin.target.Key, fs.env.now())
	}
}

// pauseKey delays background fetches of a key that has just failed. The caller has the lock.
func (fs *flights) pauseKey(key understudy.Key, now time.Time) {
	if len(fs.suspended) >= maxSuspendedKeys {
		for k, until := range fs.suspended {
			if remainingPause(now, until, suspendTime) == 0 {
				delete(fs.suspended, k)
			}
		}
	}
	if len(fs.suspended) < maxSuspendedKeys {
		fs.suspended[key] = now.Add(suspendTime)
	}
}

// isInvalidated reports whether a write or a purge came after the flight started. The flight's page is then
// only for its waiters and is not stored. The page of a record is invalidated only by writes to that record.
func (f *flight) isInvalidated() bool {
	id := ""
	if f.origin.target.Instance != nil {
		id = f.origin.target.ID
	}
	return f.origin.kind.writes.IsStale(id, f.origin.began)
}

// untouchedRows returns the rows that no write has touched since the flight started.
func (f *flight) untouchedRows(rows []understudy.Row) (kept []understudy.Row) {
	for _, r := range rows {
		if r.ID != "" && !f.origin.kind.writes.IsWritten(r.ID, f.origin.began) {
			kept = append(kept, r)
		}
	}
	return kept
}
