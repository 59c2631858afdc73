// The fetch of a flight (a shared request to upstream): its options, its request, and its end.

package mirror

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"runtime/debug"
	"time"

	"understudy"
	"understudy/mirror/shared"
	"understudy/request"
)

// fetchOptions says how to join a flight, and how to start one if none is running.
type fetchOptions struct {
	reason     request.Reason
	isPatient  func() bool // reports whether the reader has no stored answer to fall back on; nil if no reader starts the flight
	requireNew bool        // whether the page of a flight that has ended is not accepted
	// newerThan is the time of the stored page that the reader has found. If a newer page has been stored since, join
	// returns errCompleted and starts no flight.
	newerThan      time.Time
	skipCacheCheck bool           // whether join must not return errCompleted
	flow           uint64         // the Flow of the reader's request; readers of one flow share a limit
	deadline       time.Time      // when the reader stops waiting; zero if not known
	cause          *request.Trace // the client's request that causes the fetch, or nil

	// Only Mirror.Fill sets the options that follow.
	isFill, nonFinal, recordsOnly bool
	withoutNeighbors              bool
	reservation                   *reservation

	fetch shared.Fetch // the function that fetches from a generic source; nil for other sources, whose Upstream.Fetch is called
}

// errCompleted means that a flight has stored a newer page since the reader looked up the page.
var errCompleted = errors.New("mirror: landed meanwhile")

// runFlight fetches the page of a flight and saves it. It runs in a goroutine of its own. It recovers from panics of
// upstream and the store, so that the flight always ends and the key can be fetched again.
func (fs *flights) runFlight(f *flight) {
	defer func() {
		if p := recover(); p != nil {
			fs.env.log.Error("mirror: panic", "key", f.origin.target.Key.String(), "panic", p, "stack", string(debug.Stack()))
			f.complete(nil, fmt.Errorf("mirror: fetch %s: panic: %v", f.origin.target.Key, p))
		}
		fs.removeFlight(f)
	}()
	completed, end, err := fs.claimFetch(f)
	defer end()
	if completed {
		return
	}
	var p *understudy.Page
	if err == nil {
		p, err = fs.fetch(f)
	}
	if err == nil && p == nil {
		err = errors.New("upstream returned neither a page nor an error")
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

// claimFetch claims the fetch of a flight's page for this process. If another process is fetching the page, it waits, takes
// the page from the store and completes the flight. Otherwise the caller must fetch, and call end after the save.
func (fs *flights) claimFetch(f *flight) (completed bool, end func(), err error) {
	end = func() {}
	if fs.env.others == nil || fs.env.others.IsAlone() || f.means.fetch != nil || f.origin.isFill || f.origin.kind.name == "" {
		return false, end, nil
	}
	ctx, key := f.signals.ctx, f.origin.target.Key
	old, known := fs.readStored(ctx, key)
	for {
		fetch, end, err := fs.env.others.BeginFetch(ctx, key)
		if err != nil {
			return false, end, err
		}
		before := f.origin.kind.writes.Changes()
		p, _ := fs.readStored(ctx, key)
		// Without the page of before it is not known whether this one is new.
		if known && p != nil && (old == nil || p.Version != old.Version || p.At.After(old.At)) && !p.Superseded && !f.isInvalidated() {
			end()
			f.result.stored = true
			f.complete(p, nil)
			fs.keepFetched(f, p, before)
			return true, func() {}, nil
		}
		if fetch {
			return false, end, nil
		}
	}
}

// readStored returns the stored page of a key, or nil if there is none. known is false if the store does not answer soon, or
// cannot read the page.
func (fs *flights) readStored(ctx context.Context, key understudy.Key) (p *understudy.Page, known bool) {
	ctx, cancel := context.WithTimeout(ctx, maxStoreWait)
	defer cancel()
	p, err := fs.env.store.ReadPage(ctx, key)
	if err != nil {
		return nil, errors.Is(err, understudy.ErrNotFound)
	}
	return p, true
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

// pageWithETag returns the stored page of a flight's target if upstream sent it with an ETag. Otherwise it returns nil.
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

// canWait reports whether the flight may wait for upstream during an outage. If it may not, canWait notes that.
func (f *flight) canWait() bool {
	waits := f.origin.isPatient != nil && f.origin.isPatient()
	if !waits {
		f.signals.impatient.Store(true)
	}
	return waits
}

// isImpatient reports whether the flight may have ended earlier than a flight for a reader without a fallback.
func (f *flight) isImpatient() bool {
	return f.origin.reason != request.ReasonWaiting || f.signals.impatient.Load() || !f.waiting.deadline.IsZero()
}

// noteFailedTry notes the first failed attempt of a flight. It is called on upstream's goroutine.
func (fs *flights) noteFailedTry(f *flight, err *understudy.UpstreamError) {
	f.signals.firstTry.Do(func() {
		f.signals.failure, f.signals.failedAt = err, fs.env.now()
		close(f.signals.tried)
	})
}

// describeFailure returns the error for the readers of a failed flight. If the flight ended because the mirror closes
// or the time is over, it replaces the error of the context by one that says so.
func (fs *flights) describeFailure(f *flight, err error) error {
	switch {
	case fs.env.closed.Load():
		return fmt.Errorf("mirror: %w", understudy.ErrClosed)
	case f.signals.ctx.Err() != nil && !errors.Is(err, understudy.ErrUnavailable):
		err = &understudy.UpstreamError{Why: understudy.FailUnreachable, Err: errors.New("no answer in time")}
	}
	return fmt.Errorf("mirror: fetch %s: %w", f.origin.target.Key, err)
}

// complete sets the result of a flight and wakes everyone who waits for it. Calls after the first have no effect.
func (f *flight) complete(p *understudy.Page, err error) {
	if f.isCompleted() {
		return
	}
	f.result.page, f.result.err = p, err
	close(f.signals.done)
}

// offerUnsaved gives the page to the waiting readers before it is saved, if saving takes longer than offerAfter. The
// caller must call over when the save has ended.
func (f *flight) offerUnsaved(p *understudy.Page) (over func()) {
	early := time.AfterFunc(offerAfter, func() {
		f.signals.unsaved = p
		close(f.signals.offered)
	})
	return func() { early.Stop() }
}

// removeFlight removes a flight that has ended from the list of flights. Its page is already in memory, so every
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

// pauseKey delays the next background fetch of a key, because a fetch of it has failed. The caller holds the lock.
func (fs *flights) pauseKey(key understudy.Key, now time.Time) {
	if len(fs.suspended) >= maxSuspendedKeys {
		maps.DeleteFunc(fs.suspended, func(_ understudy.Key, until time.Time) bool { return remainingPause(now, until, suspendTime) == 0 })
	}
	if len(fs.suspended) < maxSuspendedKeys {
		fs.suspended[key] = now.Add(suspendTime)
	}
}

// isInvalidated reports whether a write or a purge has outdated the flight's page since the flight started. The page is then
// only for readers that wait already, and is not stored. The page of a single record is outdated only by writes to that record.
func (f *flight) isInvalidated() bool {
	id := ""
	if f.origin.target.Instance != nil {
		id = f.origin.target.ID
	}
	return f.origin.kind.writes.IsStale(id, f.origin.began)
}

// untouchedRows returns the rows to whose records nothing was written since the flight started.
func (f *flight) untouchedRows(rows []understudy.Row) (kept []understudy.Row) {
	for _, r := range rows {
		if r.ID != "" && !f.origin.kind.writes.IsWritten(r.ID, f.origin.began) {
			kept = append(kept, r)
		}
	}
	return kept
}
