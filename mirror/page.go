// Answering: a request for a page is answered from memory, from the store or from upstream.

package mirror

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/mirror/cache"
	"understudy/mirror/compose"
	"understudy/request"
	"understudy/spec"
)

// ageLimit returns the age from which upstream must be asked before a stored page is used for the request.
func ageLimit(a *request.Request) time.Duration {
	if a.NoCache {
		return 0
	}
	limit := time.Duration(math.MaxInt64)
	if a.AgeLimit != nil {
		limit = max(*a.AgeLimit, 0)
	}
	if a.MaxAge != nil {
		limit = min(limit, nextDuration(*a.MaxAge)) // the request accepts an answer of exactly this age
	}
	return limit
}

// nextDuration returns the smallest duration that is longer than limit.
func nextDuration(limit time.Duration) time.Duration {
	return min(max(limit, 0), math.MaxInt64-1) + 1
}

// Answer answers a request. A fresh page is the answer at once. A stale page is too, and is then fetched again in the
// background. Otherwise the reader waits for upstream, together with all readers of the same page. If upstream fails or is too
// slow, a stored page younger than Ages.Hard is the answer.
//
// A list can be composed from records if all of them are stored (see Source.Answers). This is done before upstream is asked, if
// comparisons have shown that both give the same list. It is also done if upstream fails and the records are newer than the
// stored page. A request with Local is answered only from records, or with ErrNotMirrored.
//
// Errors: ErrNoStoredAnswer, ErrNotMirrored, ErrUnavailable (nearly always an *understudy.UpstreamError, whose Page may be
// passed to the client), the context's error if it ended first and no page was stored, ErrInvalid, and ErrClosed.
func (m *Mirror) Answer(ctx context.Context, a request.Request) (*request.Response, error) {
	answer, err := m.answerRequest(ctx, a)
	if err == nil && a.Target.List != nil && a.Target.SlidingList() != "" && answer.Page.Status == http.StatusOK {
		m.entries.slides.NoteGiven(a.Target.SlidingList(), a.Target.Key, a.Flow, answer.Page.At, m.env.now())
	}
	return answer, err
}

// answerRequest is Answer, but does not note which page the reader has received.
func (m *Mirror) answerRequest(ctx context.Context, a request.Request) (*request.Response, error) {
	if m.env.closed.Load() {
		return nil, fmt.Errorf("mirror: %w", understudy.ErrClosed)
	}
	if a.Target == nil || m.env.sources[a.Target.Key.Source] == nil {
		return nil, fmt.Errorf("mirror: %w: no such source", understudy.ErrInvalid)
	}
	s, now := m.env.sources[a.Target.Key.Source], m.env.now()
	noteReadTime(&s.lastRead, m.env.monotonicTime(now))
	k := s.kindOf(a.Target)
	if k != nil {
		noteReadTime(&k.lastRead, m.env.monotonicTime(now))
	}
	if k == nil {
		return nil, fmt.Errorf("mirror: %w: kind %s is not of source %s", understudy.ErrInvalid, a.Target.Kind.Name, s.config.Name)
	}
	if !a.AsOf.IsZero() {
		then := a // copying the request keeps a off the heap when the page is in memory
		return m.reader.answerAsOf(ctx, s, k, &then)
	}
	if a.Local != nil {
		composed, err := m.composer.answerQuery(ctx, &reading{request: a, source: s, kind: k, now: now})
		if err != nil {
			s.counts.failed.Add(1)
			return nil, fmt.Errorf("mirror: %s: %w", a.Target.Key, err)
		}
		return composed, nil
	}
	if k.name == "" || a.SkipStored {
		return m.reader.forward(ctx, &reading{request: a, source: s, kind: k, now: now, storedForbidden: a.SkipStored})
	}
	if a.NoCache && a.JoinOnly && !m.flights.isFetching(a.Target.Key) {
		a.NoCache = false
	}
	e, ok := a.ReadyResult.(*cache.Entry)
	if !ok {
		e = m.entries.hot.Find(a.Target.Key)
	}
	if h, ok := m.entries.readyPage(e, a.Target.Key, k, now); ok {
		if v, age := m.entries.judge(&a, k, &h, now); v == fresh {
			return m.reader.answerFresh(&h, &a, s, age, now), nil
		}
	}
	return m.reader.search(ctx, &reading{request: a, source: s, kind: k, now: now, entry: e})
}

// FindReady reports whether Answer would return a fresh page from memory for a target. It also returns the entry of
// the page in memory, for Request.Found. It does not count as a request.
func (m *Mirror) FindReady(t *spec.Target) (found any, ok bool) {
	s := m.env.sources[t.Key.Source]
	if s == nil || m.env.closed.Load() {
		return nil, false
	}
	k := s.kindOf(t)
	if k == nil || k.name == "" {
		return nil, false
	}
	now, e := m.env.now(), m.entries.hot.Find(t.Key)
	h, ok := m.entries.readyPage(e, t.Key, k, now)
	if !ok {
		return nil, false
	}
	m.entries.markIfMoved(t, &h, now)
	v, _ := m.env.ages().decide(&h, m.env.ages().usualBounds(), now)
	return e, v == fresh
}

// reader answers requests from stored pages, from stored records, and from upstream.
type reader struct {
	env          *env
	entries      *entries
	flights      *flights
	holdings     *pageFinder
	composer     *composer
	follow       func(storedPage, *source, time.Time)          // queues the page after a stored page to be prefetched
	addCandidate func(*understudy.Page, *source, *cache.Entry) // queues the page after a fetched page to be prefetched; the entry may be nil
}

// reading is a request while it is being answered.
type reading struct {
	request         request.Request
	source          *source
	kind            *kind
	now             time.Time
	entry           *cache.Entry // the page's entry in memory; nil if there is none
	stored          storedPage   // the stored page, which is the answer if upstream fails; its field page is nil if there is none
	forced          bool         // whether the request demands a fetch although the stored page is fresh
	storedForbidden bool         // whether upstream's headers forbid the stored page, and no other answer may replace it
	secondLook      bool         // whether the stored pages are being looked up for the second time

	// If upstream does not answer and no page is stored, the answer may be a composed list, or the refusal that
	// upstream would send. This is decided once, when it is first needed.
	planning         sync.Once
	hasPlan          bool // whether a composed list or a refusal can be the answer if upstream does not answer
	composedFallback *composePlan
	refusal          *understudy.Page
	planFailure      error // why no list can be composed; nil if one can, or if the request is for no list

	// The plan of a composed list, or the error of planning it, until the list is composed.
	plan    *composePlan
	planErr error
}

// search looks for a stored page in all places, and then decides how to answer.
func (rd *reader) search(ctx context.Context, r *reading) (*request.Response, error) {
	cause := request.TraceOf(ctx)
	looking := cause.Begin("find")
	h, ok, err := rd.holdings.findWithEntry(ctx, r.entry, r.request.Target, r.kind, r.now)
	if cause.End(looking, 0); err != nil {
		return nil, err
	}
	v, age := tooOld, time.Duration(0)
	if ok {
		v, age = rd.entries.judge(&r.request, r.kind, &h, r.now)
	}
	if v == fresh {
		return rd.answerFresh(&h, &r.request, r.source, age, r.now), nil
	}
	if h.cutOff && v != tooOld {
		return rd.answerStale(r, &h, age, "the database does not answer"), nil
	}
	if l := r.source.lists.Find(r.request.Target); l != nil && (l.IsRecordsFirst() || r.request.OnlyIfCached && v != stale) {
		if a := rd.composer.tryRecordsFirst(ctx, r); a != nil {
			rd.check(l, r)
			return a, nil
		}
	}
	r.storedForbidden = ok && v == tooOld && h.bounds != nil
	switch v {
	case stale:
		if !r.request.OnlyIfCached {
			rd.flights.startBackground(r.request.Target, r.source, r.kind, fetchOptions{reason: request.ReasonRefresh, cause: request.TraceOf(ctx)})
		}
		return rd.answerStale(r, &h, age, ""), nil
	case askFirst:
		r.stored = h
		usual, _ := rd.env.ages().decide(&h, rd.env.ages().usualBounds(), r.now)
		r.forced = usual == fresh
	}
	return rd.forward(ctx, r)
}

// forward asks upstream. It returns an error if the request forbids that.
func (rd *reader) forward(ctx context.Context, r *reading) (*request.Response, error) {
	if r.request.OnlyIfCached {
		r.source.counts.failed.Add(1)
		return nil, fmt.Errorf("mirror: %s: %w", r.request.Target.Key, understudy.ErrNoStoredAnswer)
	}
	return rd.askUpstream(ctx, r)
}

// isFetching reports whether a flight for a key is running that a reader may join.
func (fs *flights) isFetching(key understudy.Key) bool {
	fs.Lock()
	defer fs.Unlock()
	f := fs.running[key]
	return f != nil && !f.isCompleted() && !f.isInvalidated()
}

// answerFresh answers with a fresh page. If the page is in memory, it uses no locks and allocates memory only once.
func (rd *reader) answerFresh(h *storedPage, ask *request.Request, s *source, age time.Duration, now time.Time) *request.Response {
	a := ask.ResponseBuffer
	if a == nil {
		a = new(request.Response)
	}
	*a = request.Response{Page: h.page, Gzip: h.gzip, Outcome: request.Warm, Age: age, TTL: h.fresh - age, Stored: h.stored,
		StoreTime: h.loadTime}
	switch {
	case h.composed:
		a.Outcome, a.Detail = request.Composed, "composed"
		s.counts.composed.Add(1)
	default:
		a.Detail = storeDetail(h.page)
		s.counts.warm.Add(1)
	}
	if l := s.lists.Find(ask.Target); ask.OnlyIfCached || l != nil && l.IsRecordsFirst() {
		return a // this list is usually composed from records, so its page is not fetched early
	}
	if h.entry != nil {
		rd.renew(h, ask.Target, s, age, now)
	}
	rd.follow(*h, s, now)
	return a
}

// answerStale answers with a page that is no longer fresh.
func (rd *reader) answerStale(r *reading, h *storedPage, age time.Duration, detail string) *request.Response {
	r.source.counts.stale.Add(1)
	if !r.request.OnlyIfCached {
		rd.follow(*h, r.source, r.now)
	}
	why := r.source.outage.reason()
	switch {
	case detail != "":
	case h.composed && why != "":
		detail = "composed: " + why
	case h.composed:
		detail = "composed"
	case why != "":
		detail = "stale: " + why
	default:
		detail = storeDetail(h.page)
	}
	return &request.Response{Page: h.page, Gzip: h.gzip, Outcome: request.Stale, Age: age, TTL: min(h.fresh-age, 0), Stored: h.stored,
		Detail: detail, StoreTime: h.loadTime}
}

// renewInterval is the minimum time between two attempts to fetch a fresh page again.
const renewInterval = 2 * time.Second

// renew fetches the newest page of a list again if it is in the last third of its fresh time, so that somebody who
// reads it regularly always finds it fresh. It does nothing for polled pages, which are fetched again by their polls.
func (rd *reader) renew(h *storedPage, t *spec.Target, s *source, age time.Duration, now time.Time) {
	if t.List == nil || !t.First || age < h.fresh-h.fresh/3 || h.entry.Polled {
		return
	}
	if rd.env.throttle(&h.entry.NextRenew, now, renewInterval, renewInterval) {
		rd.flights.startBackground(t, s, s.kindOf(t), fetchOptions{reason: request.ReasonRefresh})
	}
}

// noteReadTime stores the time of a read. It writes at most once a second, because it runs for every answer from memory.
func noteReadTime(at *atomic.Int64, word int64) {
	if last := at.Load(); word-last > int64(time.Second) || word < last {
		at.Store(word)
	}
}

// storeDetail returns the detail that a response has if its page is not stored. It returns "" for a stored page.
func storeDetail(p *understudy.Page) string {
	if p.NotStored == "" {
		return ""
	}
	return "not stored: " + p.NotStored
}

// answerAsOf answers with the data that was stored at Request.AsOf. It does not ask upstream. Records that were first
// seen later are missing.
func (rd *reader) answerAsOf(ctx context.Context, s *source, k *kind, a *request.Request) (*request.Response, error) {
	begin := rd.env.now()
	at := a.AsOf.UTC()
	kept, ok := rd.env.store.(compose.Snapshots)
	switch {
	case !ok:
		return nil, fmt.Errorf("mirror: %w: this store keeps no history", understudy.ErrInvalid)
	case at.After(begin.Add(time.Second)): // the clock of the client may be up to a second ahead of ours
		return nil, fmt.Errorf("mirror: %w: %s is in the future", understudy.ErrInvalid, at.Format(time.RFC3339))
	case k.name == "" || a.Target.List == nil && a.Target.Instance == nil || a.Target.HasKeyHeader():
		return nil, fmt.Errorf("mirror: %w: no history is kept for this path", understudy.ErrInvalid)
	case a.Local != nil && (a.Local.OldestFirst || a.Local.Since != 0 || a.Local.Text != nil || a.Local.Near != nil):
		return nil, fmt.Errorf("mirror: %w: lists of an earlier time can't be sorted or searched", understudy.ErrInvalid)
	}
	ctx, cancel := context.WithTimeout(ctx, rd.env.ages().Wait)
	defer cancel()
	asked := *a
	asked.Target = resolveAddress(ctx, rd.env.store, s, a.Target)
	p, err := compose.ComposePageAt(ctx, kept, s.config, &asked, at)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("mirror: %s as of %s: %w: there are too many records to search in time; add a filter on time", a.Target.Key,
			at.Format(time.RFC3339), understudy.ErrInvalid)
	case err != nil:
		return nil, fmt.Errorf("mirror: %s as of %s: %w", a.Target.Key, at.Format(time.RFC3339), err)
	}
	s.counts.composed.Add(1)
	now := rd.env.now()
	return &request.Response{
		Page: p, Outcome: request.Composed, Age: max(now.Sub(a.AsOf), 0), Stored: true,
		Detail: "composed as of " + at.Format(time.RFC3339), StoreTime: now.Sub(begin),
	}, nil
}
