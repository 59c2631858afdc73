// Fill: pages that are fetched for full syncs, and pages that are fetched before a reader needs them.

package mirror

import (
	"context"
	"errors"
	"fmt"
	"time"
	"weak"

	"understudy"
	"understudy/mirror/cache"
	"understudy/request"
	"understudy/spec"
)

// filler saves the pages that flights have fetched.
type filler struct {
	env      *env
	entries  *entries
	flights  *flights
	holdings *pageFinder
	writer   *writer
}

// maxFillTime is the maximum time of one fill, including the waits for the request budget and for memory.
const maxFillTime = 5 * time.Minute

// Fill fetches a page for a walk (a sync's pass over a list) and saves it. Readers who need the same page share the fetch, and
// Fill joins a fetch that is running. Stored pages with older versions of its records become outdated. If a write outdates the
// page in the meantime, Fill fetches it once more. With RecordsOnly, it saves only the records, and readers do not share the
// fetch.
//
// The returned page has its own key and next page in either case. A 404 or 410 for a single record deletes the record, which is
// reported in Changes. Any other refusal of upstream is returned as a page with its status, without an error, and is not saved.
//
// Errors: *understudy.UpstreamError if upstream did not answer, is down, or must not be asked now. ErrNotStored if the page
// could not be saved; if saving fails for all pages, Fill returns it at once, except that one fill a minute tries. ErrOutdated
// if more writes outdate the page. Also the error of Reserve, the context's error, ErrInvalid and ErrClosed. After an error,
// the walk must fetch the page again later.
//
// Reserve is not called after Fill has returned, nor after a reader has joined the flight.
func (m *Mirror) Fill(ctx context.Context, f request.Fill) (request.PageSaved, error) {
	if f.Target == nil || m.env.sources[f.Target.Key.Source] == nil || f.Target.Media != nil {
		return request.PageSaved{}, fmt.Errorf("mirror: fill: %w: no page of a source", understudy.ErrInvalid)
	}
	s := m.env.sources[f.Target.Key.Source]
	k := s.kindOf(f.Target)
	if k == nil || k.name == "" {
		return request.PageSaved{}, fmt.Errorf("mirror: fill %s: %w: no kind of source %s", f.Target.Key, understudy.ErrInvalid, s.config.Name)
	}
	if f.Reason == request.ReasonWaiting {
		f.Reason = request.ReasonSync
	}
	landed, _, err := m.filler.fillOnce(ctx, &f, s, k)
	if errors.Is(err, understudy.ErrOutdated) {
		landed, _, err = m.filler.fillOnce(ctx, &f, s, k)
	}
	if err != nil {
		return landed, fmt.Errorf("mirror: fill %s: %w", f.Target.Key, err)
	}
	return landed, nil
}

// fillOnce waits for one flight. joined is true if the flight was already running.
func (fl *filler) fillOnce(ctx context.Context, fill *request.Fill, s *source, k *kind) (landed request.PageSaved, joined bool, err error) {
	if err := fl.writer.saving.allowFill(fl.env.now()); err != nil {
		return landed, false, err
	}
	w := newReservation(ctx, fill.Reserve)
	defer w.end()
	f, joined, err := fl.flights.joinFill(fill, s, k, w)
	if err != nil {
		return landed, false, err
	}
	defer fl.flights.release(f, false)
	select {
	case <-f.signals.done:
	case <-ctx.Done():
		return landed, joined, ctx.Err()
	}
	if f.result.err != nil {
		if heavy, ok := errors.AsType[*overQuotaError](f.result.err); ok && !joined {
			return landed, false, heavy.error
		}
		return landed, joined, f.result.err
	}
	landed = request.PageSaved{Page: f.result.page, Changes: f.result.changes, Reason: fill.Reason}
	if f.result.saveErr != nil {
		err = wrapSaveError(f.result.saveErr)
	}
	return landed, joined, err
}

// wrapSaveError returns the reason why a page is not stored, as an error that wraps ErrOutdated or ErrNotStored.
func wrapSaveError(err error) error {
	if errors.Is(err, understudy.ErrOutdated) || errors.Is(err, understudy.ErrNotStored) {
		return err
	}
	return fmt.Errorf("%w: %w", understudy.ErrNotStored, err)
}

// joinFill joins a flight that fetches the page for a fill, or starts one. It does not accept a flight that has
// ended, because a walk needs upstream's current answer.
func (fs *flights) joinFill(fill *request.Fill, s *source, k *kind, w *reservation) (f *flight, joined bool, err error) {
	want := fetchOptions{reason: fill.Reason, requireNew: true, isFill: true, nonFinal: fill.ForOpenRecords, reservation: w}
	if !fill.RecordsOnly {
		return fs.join(fill.Target, s, k, want)
	}
	fs.Lock()
	defer fs.Unlock()
	if fs.env.closed.Load() {
		return nil, false, understudy.ErrClosed
	}
	if f = fs.running[fill.Target.Key]; f == nil || f.isInvalidated() || f.isCompleted() {
		want.recordsOnly = true
		f = fs.begin(fill.Target, s, k, want)
	} else {
		joined = true
	}
	f.waiting.waiters++
	return f, joined, nil
}

// pageToSave returns the page in the form in which the store gets it. If only its records are saved, the page has a
// source but no key. The page of a single record gets the given generation, because nothing was written to the record
// since the fetch started.
func (f *flight) pageToSave(p *understudy.Page, generation int64) *understudy.Page {
	records := *p
	if f.origin.target.Instance != nil {
		records.Generation = generation
	}
	if !f.origin.recordsOnly {
		return &records
	}
	records.Key, records.RecordsKey, records.Next = understudy.Key{Source: p.Key.Source}, p.Key, understudy.Key{}
	return &records
}

// restoreKey sets the key of a page that was saved without its key.
func (f *flight) restoreKey(saved, p *understudy.Page) *understudy.Page {
	if f.origin.recordsOnly {
		saved.Key, saved.RecordsKey, saved.Next = p.Key, p.RecordsKey, p.Next
	}
	return saved
}

// reservation reserves memory for the response that a fill waits for. It ends when the fill returns. It also ends when a reader
// joins the flight, because readers are never refused for lack of memory. A nil reservation reserves nothing.
type reservation struct {
	weigh  func(context.Context, int64) error
	ctx    context.Context
	cancel context.CancelFunc
	busy   chan struct{} // a semaphore that is held while weigh runs
}

// overQuotaError is the error that a response was too large for the memory of its fill.
type overQuotaError struct{ error }

// Unwrap returns the error of the fill's Reserve.
func (e *overQuotaError) Unwrap() error { return e.error }

func newReservation(ctx context.Context, tell func(context.Context, int64) error) *reservation {
	if tell == nil {
		return nil
	}
	w := &reservation{weigh: tell, busy: make(chan struct{}, 1)}
	w.ctx, w.cancel = context.WithCancel(ctx)
	return w
}

// reserve waits until the fill has memory for a body of that many bytes. It returns early if the fetch or the fill ends.
func (w *reservation) reserve(ctx context.Context, bytes int64) error {
	w.busy <- struct{}{}
	defer func() { <-w.busy }()
	if w.ctx.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.ctx, cancel)()
	if err := w.weigh(ctx, bytes); err != nil && w.ctx.Err() == nil {
		return &overQuotaError{err}
	}
	return nil
}

// stop ends the reservation. It does not wait for a running call of weigh.
func (w *reservation) stop() {
	if w != nil {
		w.cancel()
	}
}

// end ends the reservation and waits for a running call of weigh.
func (w *reservation) end() {
	if w != nil {
		w.cancel()
		w.busy <- struct{}{}
		<-w.busy
	}
}

const (
	prefetcherCount = 8
	maxCandidates   = 64               // the maximum number of pages that wait to be prefetched; further pages are dropped
	followInterval  = 10 * time.Second // how long after a page was queued to be prefetched it may be queued again
)

// prefetcher fetches next pages before a reader asks for them.
type prefetcher struct {
	env      *env
	entries  *entries
	flights  *flights
	holdings *pageFinder
	writer   *writer
	queue    chan candidate
}

// candidate is a page that a reader may request soon, because the reader has the page before. It exists only in
// memory and may be dropped.
type candidate struct {
	next   understudy.Key
	source *source
	from   weak.Pointer[cache.Entry] // the entry of the page before; the weak pointer does not keep that page in memory
}

// follow queues the page after a stored page that has been read. If it was queued within followInterval, follow does
// nothing else than compare the times.
func (pf *prefetcher) follow(h storedPage, s *source, now time.Time) {
	if h.entry == nil {
		pf.addCandidate(h.page, s, nil)
		return
	}
	ages := pf.env.ages()
	if h.page.Next.URI != "" && pf.env.throttle(&h.entry.NextFollow, now, followInterval, max(followInterval, ages.Older, ages.Newest)) {
		pf.addCandidate(h.page, s, h.entry)
	}
}

// addCandidate queues the page after a page that has been read. It never blocks.
func (pf *prefetcher) addCandidate(p *understudy.Page, s *source, from *cache.Entry) {
	if p.Next.URI == "" || !p.List || p.NotStored == understudy.NotStoredNoStore || pf.writer.saving.failureReason() != "" {
		return
	}
	select {
	case pf.queue <- candidate{next: p.Next, source: s, from: weak.Make(from)}:
	default:
	}
}

// run prefetches the candidates one after another. The page after a prefetched page is queued only when a reader
// reads that page.
func (pf *prefetcher) run() {
	for {
		select {
		case <-pf.env.ctx.Done():
			return
		case h := <-pf.queue:
			pf.prefetchOne(h)
		}
	}
}

// prefetchOne fetches a candidate, unless a fresh page is stored.
func (pf *prefetcher) prefetchOne(h candidate) {
	t, err := h.source.config.Spec.ResolveKey(h.next)
	if err != nil {
		return // upstream's link to the next page is not the path of a list in the spec
	}
	k := h.source.kindOf(t)
	if k == nil || k.name == "" {
		return
	}
	if left := pf.remainingFreshTime(t, k); left > 0 {
		h.noteNextFresh(pf, left)
		return
	}
	f := pf.flights.startBackground(t, h.source, k, fetchOptions{reason: request.ReasonPrefetch})
	if f == nil {
		return
	}
	<-f.signals.done
	if f.result.err == nil {
		h.source.counts.prefetched.Add(1)
		h.noteNextFresh(pf, pf.env.ages().pageFreshTime(t, f.result.page))
	}
}

// noteNextFresh notes, at the page before the candidate, how long the candidate stays fresh.
func (h candidate) noteNextFresh(pf *prefetcher, left time.Duration) {
	if from := h.from.Value(); from != nil {
		from.NextFollow.Store(pf.env.monotonicTime(pf.env.now()) + int64(left))
	}
}

// remainingFreshTime returns how long the stored page of a target stays fresh. It returns 0 if none is stored. It
// does not count as a read of the page.
func (pf *prefetcher) remainingFreshTime(t *spec.Target, k *kind) time.Duration {
	now := pf.env.now()
	h, ok, err := pf.holdings.find(pf.env.ctx, t, k, now)
	if err != nil || !ok {
		return 0
	}
	pf.entries.markIfMoved(t, &h, now)
	if v, age := pf.env.ages().decide(&h, pf.env.ages().usualBounds(), now); v == fresh {
		return h.fresh - age
	}
	return 0
}
