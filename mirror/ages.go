// Ages: how old an answer may be.

package mirror

import (
	"math"
	"time"

	"understudy"
	"understudy/mirror/cache"
	"understudy/mirror/httpcache"
	"understudy/mirror/media"
	"understudy/request"
	"understudy/spec"
)

// Ages are limits on the age of answers and on how long a reader waits. A zero field takes its default, and a
// negative field means zero. With a negative Stale, no stale page is answered while upstream works.
type Ages struct {
	Newest   time.Duration // fresh time of a list's newest page; 30 s
	Older    time.Duration // fresh time of any other page of a list; 5 min
	Final    time.Duration // fresh time of a record in a final state; 24 h
	Other    time.Duration // fresh time of any other record; 30 s
	NotFound time.Duration // fresh time of a 404, a 410 and any other refusal; 10 s
	Records  time.Duration // fresh time of a list made from records, counted from its oldest walk; 24 h
	Stale    time.Duration // how long after its fresh time a page is still answered at once; 5 min
	Hard     time.Duration // the age from which a page is never answered; 30 days
	Wait     time.Duration // how long a reader waits for upstream if a stored page can be answered instead; 8 s
	Try      time.Duration // the maximum time of the last try if there is no stored page; 30 s
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

// refillGrace is how long a superseded page of a polled list may be answered as stale while it is fetched
// again.
const refillGrace = 30 * time.Second

// termOf returns the class of fresh time that a page of the target belongs to.
func termOf(t *spec.Target, p *understudy.Page) cache.Term {
	switch {
	case p.Status >= 400:
		return cache.TermNotFound
	case t.List != nil && (t.First || t.SlidingList() != ""): // pages named by a number age together
		return cache.TermNewest
	case t.List != nil:
		return cache.TermOlder
	case len(p.Rows) == 1 && p.Rows[0].Final:
		return cache.TermFinal
	}
	return cache.TermOther
}

// termFreshTime returns how long a page of that term stays fresh.
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

// isReusable reports whether upstream's headers allow the page to be answered without another request.
func (v *env) isReusable(p *understudy.Page) bool {
	b := upstreamBounds(p)
	age, sane := v.ages().age(v.now(), p.At)
	return b == nil || sane && age < limitFreshTime(b, v.ages().Hard)
}

// applyUpstreamBounds restricts a decision on a stored page by the limits that upstream's headers set. A page
// of unknown age counts as stale (RFC 9111, 4.2.1).
func applyUpstreamBounds(h *heldPage, b bounds, age time.Duration, sane bool, v decision) decision {
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

// markNoStore returns the page marked as not to be stored if upstream's headers forbid storing it. Such a
// page is answered only to the readers that wait for it.
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

// requestFreshTime returns how long a page with the given fresh time stays fresh for one request.
func (a *Ages) requestFreshTime(ask *request.Request, p *understudy.Page, fresh time.Duration) time.Duration {
	if ask.NotFinal && ask.Target.List == nil && p.Status < 400 {
		return min(a.Other, fresh)
	}
	return fresh
}

// applyRequest adjusts the fresh time and the state of a stored page to one request.
func (a *Ages) applyRequest(ask *request.Request, k *kind, h *heldPage) {
	h.fresh = a.requestFreshTime(ask, h.page, h.fresh)
	if ask.NotFinal && !h.page.List {
		if _, look := k.nonFinalLooks.Get(h.page.At.UnixNano()); look {
			h.fresh = 0
		}
	}
	shown := ask.CanSee // a copy, so that ask is not moved to the heap
	if shown != nil && !h.page.List {
		h.composed = false // a list has shown a newer version of the record since
	}
	if shown == nil || h.state == current || !h.page.List || h.page.NotStored != "" || h.page.Generation < k.writes.Generation() {
		return // a write makes lists outdated for every reader
	}
	for field := range h.changedFields().All() {
		if shown(field) {
			return
		}
	}
	h.state = current
}

// ages returns the ages in force.
func (v *env) ages() *Ages { return v.agesInForce.Load() }

// SetAges replaces the ages, also for pages that are already stored. A zero field takes its default.
func (m *Mirror) SetAges(a Ages) {
	a = a.withDefaults()
	m.env.agesInForce.Store(&a)
	m.media.SetAges(media.Ages{Final: a.Final, Hard: a.Hard, Wait: a.Wait, Try: a.Try})
	for _, s := range m.env.sources {
		for _, p := range s.polls() {
			p.list.WakeUp() // its next poll may be due earlier
		}
	}
}

// age returns how old a page fetched at that time is, at least 0 and at most Hard. It compares monotonic
// clocks if both times have one, otherwise wall clocks (after a restart). sane is false if the time lies in
// the future, so that the age is unknown.
func (a *Ages) age(now, at time.Time) (age time.Duration, sane bool) {
	age = now.Sub(at)
	if age < 0 {
		return 0, false
	}
	return min(age, a.Hard), true
}

// decision is how a stored page may be used for a request.
type decision uint8

const (
	fresh    decision = iota // the page is the answer
	stale                    // answer the page and fetch it again in the background
	askFirst                 // ask upstream first and keep the page in case that fails
	tooOld                   // do not answer the page in any case
)

// bounds are the limits on the age of one answer.
type bounds struct {
	ageLimit     time.Duration // from this age on upstream is asked first, whether the page is fresh or stale
	minFresh     time.Duration // the fresh time that must remain; negative means no minimum
	maxStale     time.Duration // a page is answered at once until this long after its fresh time
	staleAllowed bool          // the request itself permits a stale answer
}

// usualBounds returns the bounds of a request that sets none.
func (a *Ages) usualBounds() bounds {
	return bounds{ageLimit: math.MaxInt64, minFresh: -1, maxStale: a.Stale}
}

// requestBounds returns the bounds of a request. Only maxStale can be wider than in usualBounds.
func (a *Ages) requestBounds(ask *request.Request) bounds {
	b := a.usualBounds()
	b.ageLimit = ageLimit(ask)
	if ask.MinFresh != nil {
		b.minFresh = max(*ask.MinFresh, 0)
	}
	b.staleAllowed = ask.MaxStale != nil
	switch {
	case ask.NotFinal && ask.Target.List == nil:
		b.maxStale = 0 // a record that is not final is fetched again after its fresh time
	case ask.MaxStale == nil:
	case *ask.MaxStale < 0:
		b.maxStale = a.Hard
	default:
		b.maxStale = nextDuration(*ask.MaxStale)
	}
	return b
}

// maxNewAge is the age below which an answer counts as just fetched. Without it, a reader that requires more
// fresh time than a page ever has would cause a fetch with every request.
const maxNewAge = time.Second

// decide returns how a stored page may be used under the bounds, and its age.
func (a *Ages) decide(h *heldPage, b bounds, now time.Time) (v decision, age time.Duration) {
	age, sane := a.age(now, h.page.At)
	v = a.decideByAges(h, b, age, sane)
	if h.bounds != nil {
		v = applyUpstreamBounds(h, b, age, sane, v)
	}
	return v, age
}

// decideByAges is decide by our own ages, without upstream's headers.
func (a *Ages) decideByAges(h *heldPage, b bounds, age time.Duration, sane bool) decision {
	switch {
	case sane && age >= a.Hard:
		return tooOld
	case h.state == outdated:
		return askFirst
	case !sane:
		// The page is stale. A reader with its own limit on the age must wait, because the age is unknown.
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
