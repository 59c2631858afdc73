// How old an answer may be.

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

// Ages says how old an answer may be and how long a reader waits. A zero field
// takes its default; a negative one means none (Stale < 0: nothing past fresh
// is answered while upstream is well).
type Ages struct {
	Newest   time.Duration // fresh time of a list's newest page; 30 s
	Older    time.Duration // of any other page of a list; 5 min
	Final    time.Duration // of a record in a final state; 24 h
	Other    time.Duration // of any other record; 30 s
	NotFound time.Duration // of a 404, 410 and any other refusal; 10 s
	Records  time.Duration // of a list made from records, counted from the oldest walk it rests on; 24 h
	Stale    time.Duration // past fresh, still answered at once; 5 min
	Hard     time.Duration // nothing older is ever answered; 30 days
	Wait     time.Duration // what a reader waits when something is held; 8 s
	Try      time.Duration // what the last try may take when nothing is; 30 s
}

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

// grace is how long a superseded page that is kept warm may still be answered
// as stale while its refill is under way.
const grace = 30 * time.Second

// termOf is the term of a page of the target.
func termOf(t *spec.Target, p *understudy.Page) cache.Term {
	switch {
	case p.Status >= 400:
		return cache.TermNotFound
	case t.List != nil && (t.First || t.Sliding() != ""): // pages by number grow old together
		return cache.TermNewest
	case t.List != nil:
		return cache.TermOlder
	case len(p.Rows) == 1 && p.Rows[0].Final:
		return cache.TermFinal
	}
	return cache.TermOther
}

// of is how long what has that term stays fresh.
func (a *Ages) of(t cache.Term) time.Duration {
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

// fresh is how long a page of the target stays fresh.
func (a *Ages) fresh(t *spec.Target, p *understudy.Page) time.Duration {
	return freshBy(said(p), a.of(termOf(t, p)))
}

// said are the bounds that upstream set to a page's age, where its source goes by them
// (spec.Source.UpstreamAges); nil: none.
func said(p *understudy.Page) *httpcache.Bounds {
	h := p.AgeHeader()
	if h == nil {
		return nil
	}
	r := httpcache.Received(p.Status, h, p.At.Add(-p.Took), p.At)
	if b := r.Bounds(); b.Explicit || b.Strict || b.NoStore {
		return &b
	}
	return nil
}

// freshBy is how long a page stays fresh by our own ages and by what upstream said: the
// shorter of both.
func freshBy(b *httpcache.Bounds, own time.Duration) time.Duration {
	switch {
	case b == nil:
		return own
	case b.Validate || b.NoStore:
		return 0
	case b.Explicit:
		return min(own, max(0, b.Fresh))
	}
	return own
}

// lasts reports whether upstream's bounds let a page be answered without asking again.
func (v *env) lasts(p *understudy.Page) bool {
	b := said(p)
	age, sane := v.ages().age(v.now(), p.At)
	return b == nil || sane && age < freshBy(b, v.ages().Hard)
}

// saidOf is what upstream's bounds leave of a decision on a held answer. One whose age is not
// known counts as past fresh (RFC 9111, 4.2.1).
func saidOf(h *held, b bounds, age time.Duration, sane bool, v decision) decision {
	until := h.said.Fresh
	if !h.said.Explicit || h.said.Validate || h.said.NoStore {
		until = h.fresh
	}
	switch {
	case sane && age < until:
		return v
	case h.said.NoStore || h.said.Strict || age > h.said.Down:
		return spent
	case h.said.Explicit && (!sane || age > h.said.Behind) && !b.asked:
		return max(v, wait)
	}
	return max(v, stale)
}

// notStoredSaid is a page as it may be kept: what upstream lets nobody store is for those
// alone who wait for it.
func notStoredSaid(p *understudy.Page) *understudy.Page {
	if p == nil || p.NotStored != "" {
		return p
	}
	if b := said(p); b == nil || !b.NoStore {
		return p
	}
	out := *p
	out.NotStored = understudy.NotStoredSaid
	return &out
}

// freshFor is that for one ask, of what stays fresh for so long for everybody.
func (a *Ages) freshFor(ask *request.Request, p *understudy.Page, fresh time.Duration) time.Duration {
	if ask.NotFinal && ask.Target.List == nil && p.Status < 400 {
		return min(a.Other, fresh)
	}
	return fresh
}

// asFor has what is held judged for one ask.
func (a *Ages) asFor(ask *request.Request, k *kind, h *held) {
	h.fresh = a.freshFor(ask, h.page, h.fresh)
	if ask.NotFinal && !h.page.List {
		if _, look := k.looks.Get(h.page.At.UnixNano()); look {
			h.fresh = 0
		}
	}
	shown := ask.Shown // ask stays off the heap
	if shown != nil && !h.page.List {
		h.composed = false // that a list has shown something new of it
	}
	if shown == nil || h.state == current || !h.page.List || h.page.NotStored != "" || h.page.Generation < k.writes.Generation() {
		return // a write makes lists old for everybody
	}
	for field := range h.changed().All() {
		if shown(field) {
			return
		}
	}
	h.state = current
}

// ages are the ages in force.
func (v *env) ages() *Ages { return v.aging.Load() }

// SetAges replaces the ages, of what is held already too. Zero fields take
// their defaults.
func (m *Mirror) SetAges(a Ages) {
	a = a.withDefaults()
	m.env.aging.Store(&a)
	m.media.SetAges(media.Ages{Final: a.Final, Hard: a.Hard, Wait: a.Wait, Try: a.Try})
	for _, s := range m.env.sources {
		for _, p := range s.polls() {
			p.list.Nudge() // its next turn may come sooner
		}
	}
}

// age is how old at is: monotonic where both times have such a reading, wall
// minus wall otherwise (what came before a restart). It is clamped to [0,
// Hard]; sane is false for a time that lies in the future, because then
// its age is unknown.
func (a *Ages) age(now, at time.Time) (age time.Duration, sane bool) {
	age = now.Sub(at)
	if age < 0 {
		return 0, false
	}
	return min(age, a.Hard), true
}

// decision is what may be done with what is held.
type decision uint8

const (
	fresh decision = iota // answer it
	stale                 // answer it and refill behind
	wait                  // ask upstream first; hold it in case that fails
	spent                 // too old for anything
)

// bounds are the limits on one answer's age.
type bounds struct {
	within time.Duration // from this age on upstream is asked first; cuts fresh and stale time alike
	left   time.Duration // fresh time that must be left; negative: none need be
	past   time.Duration // past fresh by less than this it is answered at once
	asked  bool          // the request permits that itself
}

// usual are the bounds of a reader who says nothing.
func (a *Ages) usual() bounds { return bounds{within: math.MaxInt64, left: -1, past: a.Stale} }

// bounds are those of an ask. Only PastFresh can be wider than the usual ones.
func (a *Ages) bounds(ask *request.Request) bounds {
	b := a.usual()
	b.within = within(ask)
	if ask.MinFresh != nil {
		b.left = max(*ask.MinFresh, 0)
	}
	b.asked = ask.MaxStale != nil
	switch {
	case ask.NotFinal && ask.Target.List == nil:
		b.past = 0 // a record that is not final is looked at again, and would be answered as younger than one that is
	case ask.MaxStale == nil:
	case *ask.MaxStale < 0:
		b.past = a.Hard
	default:
		b.past = justPast(*ask.MaxStale)
	}
	return b
}

// asNew is the age below which an answer counts as being as fresh as upstream
// can make it. Else a reader who wants more fresh time than there is would
// have upstream asked at every request.
const asNew = time.Second

// decide decides what a reader may get.
func (a *Ages) decide(h *held, b bounds, now time.Time) (v decision, age time.Duration) {
	age, sane := a.age(now, h.page.At)
	v = a.own(h, b, age, sane)
	if h.said != nil {
		v = saidOf(h, b, age, sane, v)
	}
	return v, age
}

// own is decide by our own ages.
func (a *Ages) own(h *held, b bounds, age time.Duration, sane bool) decision {
	switch {
	case sane && age >= a.Hard:
		return spent
	case h.state == outdated:
		return wait
	case !sane:
		// Stale, but a reader with a limit of its own cannot be told it is kept.
		if b.within < a.Hard || b.left >= 0 {
			return wait
		}
		return stale
	case age >= b.within:
		return wait
	case b.left >= 0 && (h.state != current || h.fresh-age < b.left && age >= asNew):
		return wait
	case age < h.fresh && h.state == current:
		return fresh
	case age-h.fresh < b.past:
		return stale
	}
	return wait
}
