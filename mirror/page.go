// Page: one request answered, from memory, from the store or from upstream.

package mirror

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/mirror/cache"
	"understudy/mirror/compose"
	"understudy/request"
	"understudy/spec"
)

// within is the age from which an answer needs upstream first.
func within(a *request.Request) time.Duration {
	if a.NoCache {
		return 0
	}
	limit := time.Duration(math.MaxInt64)
	if a.AgeLimit != nil {
		limit = max(*a.AgeLimit, 0)
	}
	if a.MaxAge != nil {
		limit = min(limit, justPast(*a.MaxAge)) // an answer exactly that old will do
	}
	return limit
}

// justPast is the first duration above a limit that is itself allowed.
func justPast(limit time.Duration) time.Duration {
	return min(max(limit, 0), math.MaxInt64-1) + 1
}

// Page answers a request. What is fresh is answered; what is a little older is
// answered too and refilled behind; for the rest the reader waits for
// upstream, together with all readers of the same page. If upstream fails
// or takes too long the held answer goes out as long as it is younger than
// Ages.Hard.
//
// A list of a kind that is walked can be made from records (see Answers): first,
// when that has proven to be what upstream says, or when upstream fails and the
// records are younger than the page held. With Ask.Wish it is made from them or
// it is ErrNotMirrored.
//
// Errors: ErrNotHeld, ErrNotMirrored, ErrUnavailable (nearly always an *understudy.UpstreamError, whose
// Page may be passed on), the context's error when it ended first and nothing
// was held, ErrInvalid, ErrClosed.
func (m *Mirror) Page(ctx context.Context, a request.Request) (*request.Response, error) {
	answer, err := m.respond(ctx, a)
	if err == nil && a.Target.List != nil {
		m.entries.gave(a.Target, a.Flow, answer.Page)
	}
	return answer, err
}

func (m *Mirror) respond(ctx context.Context, a request.Request) (*request.Response, error) {
	if m.env.closed.Load() {
		return nil, fmt.Errorf("mirror: %w", understudy.ErrClosed)
	}
	if a.Target == nil || m.env.sources[a.Target.Key.Source] == nil {
		return nil, fmt.Errorf("mirror: %w: no such source", understudy.ErrInvalid)
	}
	s, now := m.env.sources[a.Target.Key.Source], m.env.now()
	wasRead(&s.lastRead, m.env.monotonic(now))
	k := s.of(a.Target)
	if k != nil {
		wasRead(&k.lastRead, m.env.monotonic(now))
	}
	if k == nil {
		return nil, fmt.Errorf("mirror: %w: kind %s is not of source %s", understudy.ErrInvalid, a.Target.Kind.Name, s.config.Name)
	}
	if !a.AsOf.IsZero() {
		then := a // a stays off the heap: it is on the warm path
		return m.reader.asOf(ctx, s, k, &then)
	}
	if a.Local != nil {
		return m.reader.recordsOnly(ctx, &reading{request: a, source: s, kind: k, now: now})
	}
	if k.name == "" || a.SkipHeld {
		return m.reader.ahead(ctx, &reading{request: a, source: s, kind: k, now: now, barred: a.SkipHeld})
	}
	if a.NoCache && a.JoinOnly && !m.flights.flies(a.Target.Key) {
		a.NoCache = false
	}
	e, ok := a.Found.(*cache.Entry)
	if !ok {
		e = m.entries.hot.Find(a.Target.Key)
	}
	if h, ok := m.entries.remembered(e, a.Target.Key, k, now); ok {
		if v, age := m.entries.judge(&a, k, &h, now); v == fresh {
			return m.reader.hit(&h, &a, s, age, now), nil
		}
	}
	return m.reader.search(ctx, &reading{request: a, source: s, kind: k, now: now, entry: e})
}

// Ready reports whether Page would answer a target at once, from memory and as fresh, and gives what it
// found there (Request.Found). It counts nothing.
func (m *Mirror) Ready(t *spec.Target) (found any, ok bool) {
	s := m.env.sources[t.Key.Source]
	if s == nil || m.env.closed.Load() {
		return nil, false
	}
	k := s.of(t)
	if k == nil || k.name == "" {
		return nil, false
	}
	now, e := m.env.now(), m.entries.hot.Find(t.Key)
	h, ok := m.entries.remembered(e, t.Key, k, now)
	if !ok {
		return nil, false
	}
	m.entries.together(t, &h, now)
	v, _ := m.env.ages().decide(&h, m.env.ages().usual(), now)
	return e, v == fresh
}

// reader answers requests, from what is held and from upstream.
type reader struct {
	env          *env
	entries      *entries
	flights      *flights
	holdings     *holdings
	composer     *composer
	follow       func(held, *source, time.Time)                // prefetches the page after one that is held
	addCandidate func(*understudy.Page, *source, *cache.Entry) // the same for one that was fetched; the entry may be nil
}

// reading is one request on its way down.
type reading struct {
	request request.Request
	source  *source
	kind    *kind
	now     time.Time
	entry   *cache.Entry // what the hot tier has of the key; may be nil
	held    held         // what to answer if upstream fails; page nil: nothing
	forced  bool         // what is held is fresh, but not enough for the request
	barred  bool         // upstream forbids what is held: nothing takes its place
	again   bool         // it looks for the second time

	// What to answer if upstream gives nothing: the list made from records, or upstream's
	// own refusal. It is planned once, when it is needed.
	planning         sync.Once
	planned          bool // there is one of both
	composedFallback *composePlan
	refusal          *understudy.Page
	unplanned        error // why records make no list; nil: they do, or no list is asked for

	// The plan of the list made from records, if it was made and not used.
	plan    *composePlan
	planErr error
}

// search looks through everything held, then decides.
func (rd *reader) search(ctx context.Context, r *reading) (*request.Response, error) {
	h, ok, err := rd.holdings.findFrom(ctx, r.entry, r.request.Target, r.kind, r.now)
	if err != nil {
		return nil, err
	}
	v, age := spent, time.Duration(0)
	if ok {
		v, age = rd.entries.judge(&r.request, r.kind, &h, r.now)
	}
	if v == fresh {
		return rd.hit(&h, &r.request, r.source, age, r.now), nil
	}
	if l := r.source.lists.Of(r.request.Target); l != nil && (l.RecordsFirst() || r.request.OnlyIfCached && v != stale) {
		if a := rd.composer.recordsFirst(ctx, r); a != nil {
			rd.check(l, r)
			return a, nil
		}
	}
	r.barred = ok && v == spent && h.said != nil
	switch v {
	case stale:
		if !r.request.OnlyIfCached {
			rd.flights.startBackground(r.request.Target, r.source, r.kind, fetchOptions{reason: request.Refresh})
		}
		return rd.answerStale(r, &h, age, ""), nil
	case wait:
		r.held = h
		usual, _ := rd.env.ages().decide(&h, rd.env.ages().usual(), r.now)
		r.forced = usual == fresh
	}
	return rd.ahead(ctx, r)
}

// ahead asks upstream, unless the reader forbids it.
func (rd *reader) ahead(ctx context.Context, r *reading) (*request.Response, error) {
	if r.request.OnlyIfCached {
		r.source.counts.failed.Add(1)
		return nil, fmt.Errorf("mirror: %s: %w", r.request.Target.Key, understudy.ErrNotHeld)
	}
	return rd.ask(ctx, r)
}

// flies reports whether a fetch of the key is under way that a reader may join.
func (fs *flights) flies(key understudy.Key) bool {
	fs.Lock()
	defer fs.Unlock()
	f := fs.running[key]
	return f != nil && !f.completed() && !f.invalidated()
}

// hit answers with something fresh. It is the warm path: no locks, no
// formatting, one allocation.
func (rd *reader) hit(h *held, ask *request.Request, s *source, age time.Duration, now time.Time) *request.Response {
	a := ask.Into
	if a == nil {
		a = new(request.Response)
	}
	*a = request.Response{Page: h.page, Gzip: h.gzip, Outcome: request.Warm, Age: age, TTL: h.fresh - age, Stored: h.stored, Store: h.took}
	switch {
	case h.composed:
		a.Outcome, a.Detail = request.Composed, "composed"
		s.counts.composed.Add(1)
	default:
		a.Detail = notStored(h.page)
		s.counts.warm.Add(1)
	}
	if l := s.lists.Of(ask.Target); ask.OnlyIfCached || l != nil && l.RecordsFirst() {
		return a // upstream is not asked, or only now and then
	}
	if h.entry != nil {
		rd.renew(h, ask.Target, s, age, now)
	}
	rd.follow(*h, s, now)
	return a
}

// answerStale answers with something older.
func (rd *reader) answerStale(r *reading, h *held, age time.Duration, detail string) *request.Response {
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
		detail = notStored(h.page)
	}
	return &request.Response{Page: h.page, Gzip: h.gzip, Outcome: request.Stale, Age: age, TTL: min(h.fresh-age, 0), Stored: h.stored,
		Detail: detail, Store: h.took}
}

// renewAgain is how long after one refresh of a fresh page the next may begin,
// should it fail.
const renewAgain = 2 * time.Second

// renew fetches a list's newest page once more in the last third of its fresh
// time, so that a steady reader never finds it past fresh. Polled pages
// have a poll that does that.
func (rd *reader) renew(h *held, t *spec.Target, s *source, age time.Duration, now time.Time) {
	if t.List == nil || !t.First || age < h.fresh-h.fresh/3 || h.entry.Polled {
		return
	}
	if rd.env.throttle(&h.entry.Renewed, now, renewAgain, renewAgain) {
		rd.flights.startBackground(t, s, s.of(t), fetchOptions{reason: request.Refresh})
	}
}

// wasRead notes a read, to the second: it is on the warm path.
func wasRead(at *atomic.Int64, word int64) {
	if last := at.Load(); word-last > int64(time.Second) || word < last {
		at.Store(word)
	}
}

func notStored(p *understudy.Page) string {
	if p.NotStored == "" {
		return ""
	}
	return "not stored: " + p.NotStored
}

// asOf answers with what was known at Request.AsOf. Upstream is not asked: what
// was not seen by then is not there.
func (rd *reader) asOf(ctx context.Context, s *source, k *kind, a *request.Request) (*request.Response, error) {
	begin := rd.env.now()
	at := a.AsOf.UTC()
	kept, ok := rd.env.store.(compose.Snapshots)
	switch {
	case !ok:
		return nil, fmt.Errorf("mirror: %w: this store keeps no history", understudy.ErrInvalid)
	case at.After(begin.Add(time.Second)): // clocks differ a little
		return nil, fmt.Errorf("mirror: %w: %s lies in the future", understudy.ErrInvalid, at.Format(time.RFC3339))
	case k.name == "" || a.Target.List == nil && a.Target.Instance == nil || a.Target.Apart():
		return nil, fmt.Errorf("mirror: %w: nothing is remembered of this path", understudy.ErrInvalid)
	case a.Local != nil && (a.Local.Up || a.Local.Since != 0 || a.Local.Text != nil):
		return nil, fmt.Errorf("mirror: %w: of an earlier time lists have one order and no text", understudy.ErrInvalid)
	}
	ctx, cancel := context.WithTimeout(ctx, rd.env.ages().Wait)
	defer cancel()
	asked := *a
	asked.Target = named(ctx, rd.env.store, s, a.Target)
	p, err := compose.PageAt(ctx, kept, s.config, &asked, at)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("mirror: %s as of %s: %w: that is too much to look through; narrow it by a filter on time", a.Target.Key,
			at.Format(time.RFC3339), understudy.ErrInvalid)
	case err != nil:
		return nil, fmt.Errorf("mirror: %s as of %s: %w", a.Target.Key, at.Format(time.RFC3339), err)
	}
	s.counts.composed.Add(1)
	now := rd.env.now()
	return &request.Response{
		Page: p, Outcome: request.Composed, Age: max(now.Sub(at), 0), Stored: true,
		Detail: "composed as of " + at.Format(time.RFC3339), Store: now.Sub(begin),
	}, nil
}
