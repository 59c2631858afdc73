// Ages: how old an answer may be.

package mirror

import (
	"math"
	"time"

	"understudy"
	"understudy/internal/aging"
	"understudy/mirror/cache"
	"understudy/mirror/httpcache"
	"understudy/mirror/media"
	"understudy/request"
	"understudy/spec"
)

// Ages are limits on the age of answers and on how long a reader waits. A zero field takes its default, and a
// negative field means zero. With a negative Stale, no stale page is answered while upstream works.
type Ages struct {
	Newest   time.Duration // how long the newest page of a list is fresh; default 30 s
	Older    time.Duration // how long any other page of a list is fresh; default 5 min
	Final    time.Duration // how long a record in a final state is fresh; default 24 h
	Other    time.Duration // how long any other record is fresh; default 30 s
	NotFound time.Duration // how long a response with status 404 or 410, or any other refusal, is fresh; default 10 s
	Records  time.Duration // how long a list composed from records is fresh, from the oldest full read of its records; default 24 h
	Stale    time.Duration // how long after its fresh time a page is still used as an answer without waiting for upstream; default 5 min
	Hard     time.Duration // the age from which a page is never used as an answer; default 30 days
	Wait     time.Duration // how long a reader waits for upstream if a stored page can be answered instead; default 8 s
	Try      time.Duration // how long the last attempt of a fetch may take if no page is stored; default 30 s
	since    time.Time     // Options.Since
}

// withDefaults returns the ages with defaults for zero fields and zero for negative fields.
func (a Ages) withDefaults() Ages {
	for _, d := range []struct {
		age   *time.Duration
		usual time.Duration
	}{
		{&a.Newest, 30 * time.Second},
		{&a.Older, 5 * time.Minute},
		{&a.Final, 24 * time.Hour},
		{&a.Other, 30 * time.Second},
		{&a.NotFound, 10 * time.Second},
		{&a.Records, 24 * time.Hour},
		{&a.Stale, 5 * time.Minute},
		{&a.Hard, 30 * 24 * time.Hour},
		{&a.Wait, 8 * time.Second},
		{&a.Try, 30 * time.Second},
	} {
		switch {
		case *d.age == 0:
			*d.age = d.usual
		case *d.age < 0:
			*d.age = 0
		}
	}
	return a
}

// refillGrace is how long an outdated page of a polled list may still be answered as stale, while its poll fetches it again.
const refillGrace = 30 * time.Second

// termOf returns the Term, which says which of the Ages limits the fresh time of a page.
func termOf(t *spec.Target, p *understudy.Page) cache.Term {
	switch {
	case p.Status >= 400:
		return cache.TermNotFound
	case t.List != nil && (t.First || t.SlidingList() != ""): // all pages of a list that are named by a number become stale at the same time
		return cache.TermNewest
	case t.List != nil:
		return cache.TermOlder
	case len(p.Rows) == 1 && p.Rows[0].Final:
		return cache.TermFinal
	}
	return cache.TermOther
}

// termFreshTime returns how long pages with a Term stay fresh.
func (a *Ages) termFreshTime(t cache.Term) time.Duration {
	switch t {
	case cache.TermNotFound:
		return a.NotFound
	case cache.TermNewest:
		return a.Newest
	case cache.TermOlder:
		return a.Older
	case cache.TermFinal:
		return a.Final
	}
	return a.Other
}

// pageFreshTime returns how long a page of the target stays fresh.
func (a *Ages) pageFreshTime(t *spec.Target, p *understudy.Page) time.Duration {
	return limitFreshTime(upstreamBounds(p), a.termFreshTime(termOf(t, p)))
}

// upstreamBounds returns the limits that upstream's headers set to a page's age. It returns nil if there are
// none, or if the source ignores them (spec.Source.UpstreamAges).
func upstreamBounds(p *understudy.Page) *httpcache.Bounds {
	h := p.AgeHeader()
	if h == nil {
		return nil
	}
	r := httpcache.NewResponse(p.Status, h, p.At.Add(-p.Took), p.At)
	if b := r.Bounds(); b.Explicit || b.Strict || b.NoStore {
		return &b
	}
	return nil
}

// limitFreshTime returns how long a page stays fresh: the shorter of our own fresh time and upstream's.
func limitFreshTime(b *httpcache.Bounds, own time.Duration) time.Duration {
	switch {
	case b == nil:
		return own
	case b.Validate || b.NoStore:
		return 0
	case b.Explicit:
		return min(own, max(0, b.FreshUntil))
	}
	return own
}

// isReusable reports whether upstream's headers allow the page to answer other requests.
func (v *env) isReusable(p *understudy.Page) bool {
	b := upstreamBounds(p)
	age, sane := v.ages().age(v.now(), p.At)
	return b == nil || sane && age < limitFreshTime(b, v.ages().Hard)
}

// applyUpstreamBounds changes the decision about a stored page so that it respects the limits in upstream's headers.
// A page of unknown age counts as stale (RFC 9111, 4.2.1).
func applyUpstreamBounds(h *storedPage, b bounds, age time.Duration, sane bool, v decision) decision {
	until := h.bounds.FreshUntil
	if !h.bounds.Explicit || h.bounds.Validate || h.bounds.NoStore {
		until = h.fresh
	}
	switch {
	case sane && age < until:
		return v
	case h.bounds.NoStore || h.bounds.Strict || age > h.bounds.DownUntil:
		return tooOld
	case h.bounds.Explicit && (!sane || age > h.bounds.RefreshUntil) && !b.staleAllowed:
		return max(v, askFirst)
	}
	return max(v, stale)
}

// markNoStore marks the page as not to be stored if upstream's headers forbid storing it. Such a page is an answer
// only for the readers that are waiting for it.
func markNoStore(p *understudy.Page) *understudy.Page {
	if p == nil || p.NotStored != "" {
		return p
	}
	if b := upstreamBounds(p); b == nil || !b.NoStore {
		return p
	}
	out := *p
	out.NotStored = understudy.NotStoredNoStore
	return &out
}

// requestFreshTime returns how long a page stays fresh for one request, which may shorten the given fresh time.
func (a *Ages) requestFreshTime(ask *request.Request, p *understudy.Page, fresh time.Duration) time.Duration {
	if ask.NotFinal && ask.Target.List == nil && p.Status < 400 {
		return min(a.Other, fresh)
	}
	return fresh
}

// applyRequest changes the fresh time and the state of a stored page to what is right for one request.
func (a *Ages) applyRequest(ask *request.Request, k *kind, h *storedPage) {
	h.fresh = a.requestFreshTime(ask, h.page, h.fresh)
	if ask.NotFinal && !h.page.List {
		if _, look := k.nonFinalLooks.Get(h.page.At.UnixNano()); look {
			h.fresh = 0
		}
	}
	shown := ask.CanSee // copying the function keeps ask off the heap
	if shown != nil && !h.page.List {
		h.composed = false // another page has shown a newer version of the record since this page was stored
	}
	if shown == nil || h.state == current || !h.page.List || h.page.NotStored != "" || h.page.Generation < k.writes.Generation() {
		return // a write makes the lists of its kind outdated for every reader
	}
	for field := range h.changedFields().All() {
		if shown(field) {
			return
		}
	}
	h.state = current
}

// ages returns the ages in force.
func (v *env) ages() *Ages { return v.currentAges.Load() }

// SetAges replaces the ages. They also apply to pages that are already stored. A zero field takes its default.
func (m *Mirror) SetAges(a Ages) {
	a = a.withDefaults()
	a.since = m.env.since
	m.env.currentAges.Store(&a)
	m.media.SetAges(media.Ages{Final: a.Final, Hard: a.Hard, Wait: a.Wait, Try: a.Try})
	for _, s := range m.env.sources {
		for _, p := range s.polls() {
			p.list.WakeUp() // with shorter ages, the next fetch of the list may be due earlier
		}
	}
}

// age returns how long ago a page was fetched, between 0 and Hard (see aging.Age). After a restart, only wall clocks tell.
// sane is false if the time is in the future, so that the age is not known.
func (a *Ages) age(now, at time.Time) (age time.Duration, sane bool) {
	age = aging.Age(at, now)
	if age < 0 {
		return 0, false
	}
	return min(age, a.Hard), true
}

// decision says whether a stored page may answer a request.
type decision uint8

const (
	fresh    decision = iota // the page is used as the answer
	stale                    // the page is used as the answer, and is fetched again in the background
	askFirst                 // upstream is asked first, and the page is the answer only if that fails
	tooOld                   // the page must not be used as an answer
)

// bounds are the limits that a request sets to the age of its answer.
type bounds struct {
	ageLimit     time.Duration // the age from which upstream is asked before the page is used
	minFresh     time.Duration // how long the page must remain fresh; negative means no minimum
	maxStale     time.Duration // how long after its fresh time a page may be used without asking upstream
	staleAllowed bool          // whether the request itself permits a stale answer
}

// usualBounds returns the bounds of a request that sets no limits.
func (a *Ages) usualBounds() bounds {
	return bounds{ageLimit: math.MaxInt64, minFresh: -1, maxStale: a.Stale}
}

// requestBounds returns the bounds of a request. They are stricter than the usual bounds, except that maxStale may be longer.
func (a *Ages) requestBounds(ask *request.Request) bounds {
	b := a.usualBounds()
	b.ageLimit = ageLimit(ask)
	if ask.MinFresh != nil {
		b.minFresh = max(*ask.MinFresh, 0)
	}
	b.staleAllowed = ask.MaxStale != nil
	switch {
	case ask.NotFinal && ask.Target.List == nil:
		b.maxStale = 0 // this request wants a record that is not final to be fetched again as soon as it is stale
	case ask.MaxStale == nil:
	case *ask.MaxStale < 0:
		b.maxStale = a.Hard
	default:
		b.maxStale = nextDuration(*ask.MaxStale)
	}
	return b
}

// maxNewAge is the age below which a page counts as new, whatever fresh time a request demands. Without it, a request
// that demands more fresh time than any page has would always cause a fetch.
const maxNewAge = time.Second

// decide returns whether a stored page may be used within the bounds, and the age of the page.
func (a *Ages) decide(h *storedPage, b bounds, now time.Time) (v decision, age time.Duration) {
	age, sane := a.age(now, h.page.At)
	v = a.decideByAges(h, b, age, sane)
	if h.bounds != nil {
		v = applyUpstreamBounds(h, b, age, sane, v)
	}
	return v, age
}

// decideByAges decides only by our own ages and the bounds, and ignores upstream's headers.
func (a *Ages) decideByAges(h *storedPage, b bounds, age time.Duration, sane bool) decision {
	switch {
	case sane && age >= a.Hard:
		return tooOld
	case h.state == outdated, h.page.At.Before(a.since):
		return askFirst
	case !sane:
		// The page is stale. If the reader limits the age and the age is not known, upstream must be asked first.
		if b.ageLimit < a.Hard || b.minFresh >= 0 {
			return askFirst
		}
		return stale
	case age >= b.ageLimit:
		return askFirst
	case b.minFresh >= 0 && (h.state != current || h.fresh-age < b.minFresh && age >= maxNewAge):
		return askFirst
	case age < h.fresh && h.state == current:
		return fresh
	case age-h.fresh < b.maxStale:
		return stale
	}
	return askFirst
}
