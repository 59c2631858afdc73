// Fill: a page fetched and saved though no reader asks for it.

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

// filler keeps what flights bring.
type filler struct {
	env      *env
	entries  *entries
	flights  *flights
	holdings *holdings
	writer   *writer
}

// fillTime is the longest a fill may take, its waits for budget and for room in
// memory included.
const fillTime = 5 * time.Minute

// Fill fetches a page and saves it, for a walk. It goes by the rules of every
// fetch: readers of the same key share it unless it is for its records only, it
// joins a fetch that is under way, and held pages that show what it changed are
// superseded. A page that a write made old meanwhile is fetched once more. With
// RecordsOnly the records are saved and the page is not.
//
// The page of Landed has its own key and next one either way. A 404 or 410 of an
// instance removes the record, which shows in Changes; any other refusal is a
// page with that status, nothing saved and no error.
//
// Errors: an *understudy.UpstreamError when upstream did not answer, is down or
// is not to be asked now; ErrNotStored when the page could not be saved, and at
// once while nothing can be (once a minute one fill tries); ErrOutdated when
// writes keep coming; that of Weigh; the context's; ErrInvalid; ErrClosed. After
// one the walk comes back to the same page later. Weigh is not called any more
// when Fill has returned, nor once a reader waits for the page, until it is
// there.
func (m *Mirror) Fill(ctx context.Context, f request.Fill) (request.PageSaved, error) {
	if f.Target == nil || m.env.sources[f.Target.Key.Source] == nil || f.Target.Media != nil {
		return request.PageSaved{}, fmt.Errorf("mirror: fill: %w: no page of a source", understudy.ErrInvalid)
	}
	s := m.env.sources[f.Target.Key.Source]
	k := s.of(f.Target)
	if k == nil || k.name == "" {
		return request.PageSaved{}, fmt.Errorf("mirror: fill %s: %w: no kind of source %s", f.Target.Key, understudy.ErrInvalid, s.config.Name)
	}
	if f.Reason == request.Waiting {
		f.Reason = request.Sync
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

// fillOnce waits for one flight; joined says that it was under way.
func (fl *filler) fillOnce(ctx context.Context, fill *request.Fill, s *source, k *kind) (landed request.PageSaved, joined bool, err error) {
	if err := fl.writer.saving.may(fl.env.now()); err != nil {
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
		var heavy *overQuotaError
		if errors.As(f.result.err, &heavy) && !joined {
			return landed, false, heavy.error
		}
		return landed, joined, f.result.err
	}
	landed = request.PageSaved{Page: f.result.page, Changes: f.result.changes, Reason: fill.Reason}
	if f.result.saveErr != nil {
		err = unkept(f.result.saveErr)
	}
	return landed, joined, err
}

// unkept is why a page is not stored, as one of the kinds of error.
func unkept(err error) error {
	if errors.Is(err, understudy.ErrOutdated) || errors.Is(err, understudy.ErrNotStored) {
		return err
	}
	return fmt.Errorf("%w: %w", understudy.ErrNotStored, err)
}

// joinFill joins the flight that brings what a fill wants, begun now unless one
// is under way. Of one that has completed nothing is taken: a walk wants what
// upstream says now.
func (fs *flights) joinFill(fill *request.Fill, s *source, k *kind, w *reservation) (f *flight, joined bool, err error) {
	want := fetchOptions{reason: fill.Reason, direct: true, fill: true, look: fill.Look, reservation: w}
	if !fill.RecordsOnly {
		return fs.join(fill.Target, s, k, want)
	}
	fs.Lock()
	defer fs.Unlock()
	if fs.env.closed.Load() {
		return nil, false, understudy.ErrClosed
	}
	if f = fs.running[fill.Target.Key]; f == nil || f.invalidated() || f.completed() {
		want.recordsOnly = true
		f = fs.begin(fill.Target, s, k, want)
	} else {
		joined = true
	}
	f.waiting.waiters++
	return f, joined, nil
}

// forStore is the page as it is saved: one that is for its records only has a
// source and no key. A record that no write up to a generation has touched since
// the fetch began is saved under that generation.
func (f *flight) forStore(p *understudy.Page, generation int64) *understudy.Page {
	records := *p
	if f.origin.target.Instance != nil {
		records.Generation = generation
	}
	if !f.origin.recordsOnly {
		return &records
	}
	records.Key, records.Of, records.Next = understudy.Key{Source: p.Key.Source}, p.Key, understudy.Key{}
	return &records
}

// fromStore is the page as saved, under its own key again.
func (f *flight) fromStore(saved, p *understudy.Page) *understudy.Page {
	if f.origin.recordsOnly {
		saved.Key, saved.Of, saved.Next = p.Key, p.Of, p.Next
	}
	return saved
}

// reservation tells a filler what its fetch weighs, until the filler has left or
// a reader has joined: a reader is never refused. A nil reservation tells nothing.
type reservation struct {
	tell   func(context.Context, int64) error
	ctx    context.Context
	cancel context.CancelFunc
	busy   chan struct{} // full while tell runs
}

// overQuotaError is the end of a fetch that was too heavy for its filler.
type overQuotaError struct{ error }

// Unwrap is the filler's error.
func (e *overQuotaError) Unwrap() error { return e.error }

func newReservation(ctx context.Context, tell func(context.Context, int64) error) *reservation {
	if tell == nil {
		return nil
	}
	w := &reservation{tell: tell, busy: make(chan struct{}, 1)}
	w.ctx, w.cancel = context.WithCancel(ctx)
	return w
}

// reserve is the Reserve of the fetch. It waits no longer than the fetch, nor than
// the filler waits.
func (w *reservation) reserve(ctx context.Context, bytes int64) error {
	w.busy <- struct{}{}
	defer func() { <-w.busy }()
	if w.ctx.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.ctx, cancel)()
	if err := w.tell(ctx, bytes); err != nil && w.ctx.Err() == nil {
		return &overQuotaError{err}
	}
	return nil
}

// stop makes nothing count any more; end also waits for tell to be over.
func (w *reservation) stop() {
	if w != nil {
		w.cancel()
	}
}

func (w *reservation) end() {
	if w != nil {
		w.cancel()
		w.busy <- struct{}{}
		<-w.busy
	}
}

const (
	prefetchers   = 8
	maxCandidates = 64               // waiting for a prefetcher; more are forgotten
	followAgain   = 10 * time.Second // before the next page of a page is queued again
)

// prefetcher fetches next pages before a reader asks for them.
type prefetcher struct {
	env      *env
	entries  *entries
	flights  *flights
	holdings *holdings
	writer   *writer
	queue    chan candidate
}

// candidate is a next page that may be asked for. It is no promise: it
// lives in memory, knows no caller, and is forgotten when there are many.
type candidate struct {
	next   understudy.Key
	source *source
	from   weak.Pointer[cache.Entry] // the page that was read: one that waits here keeps no page in memory
}

// follow queues the next page of a held page that is read. It costs a comparison
// unless the pause is over.
func (pf *prefetcher) follow(h held, s *source, now time.Time) {
	if h.entry == nil {
		pf.addCandidate(h.page, s, nil)
		return
	}
	ages := pf.env.ages()
	if h.page.Next.URI != "" && pf.env.throttle(&h.entry.Followed, now, followAgain, max(followAgain, ages.Older, ages.Newest)) {
		pf.addCandidate(h.page, s, h.entry)
	}
}

// addCandidate asks for the next page of one that was read. Nothing waits for it.
func (pf *prefetcher) addCandidate(p *understudy.Page, s *source, from *cache.Entry) {
	if p.Next.URI == "" || !p.List || p.NotStored == understudy.NotStoredSaid || pf.writer.saving.trouble() != "" {
		return
	}
	select {
	case pf.queue <- candidate{next: p.Next, source: s, from: weak.Make(from)}:
	default:
	}
}

// run fetches candidates, one after the other. A page it fetched is not
// itself followed: only a reader begins the next candidate.
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

func (pf *prefetcher) prefetchOne(h candidate) {
	t, err := h.source.config.Spec.TargetOf(h.next)
	if err != nil {
		return // upstream's next page is no page of ours
	}
	k := h.source.of(t)
	if k == nil || k.name == "" {
		return
	}
	if left := pf.freshFor(t, k); left > 0 {
		h.until(pf, left)
		return
	}
	f := pf.flights.startBackground(t, h.source, k, fetchOptions{reason: request.Prefetch})
	if f == nil {
		return
	}
	<-f.signals.done
	if f.result.err == nil {
		h.source.counts.prefetched.Add(1)
		h.until(pf, pf.env.ages().fresh(t, f.result.page))
	}
}

// until notes on the page read that its next one is fresh for so long.
func (h candidate) until(pf *prefetcher, left time.Duration) {
	if from := h.from.Value(); from != nil {
		from.Followed.Store(pf.env.monotonic(pf.env.now()) + int64(left))
	}
}

// freshFor is how long what is held for the target stays fresh; 0 when it is
// not. It is no reading: nothing is counted.
func (pf *prefetcher) freshFor(t *spec.Target, k *kind) time.Duration {
	now := pf.env.now()
	h, ok, err := pf.holdings.find(pf.env.ctx, t, k, now)
	if err != nil || !ok {
		return 0
	}
	pf.entries.together(t, &h, now)
	if v, age := pf.env.ages().decide(&h, pf.env.ages().usual(), now); v == fresh {
		return h.fresh - age
	}
	return 0
}
