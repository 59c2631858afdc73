// What is held for a key: in the hot tier, as a page of the store, as a record.

package mirror

import (
	"context"
	"errors"
	"slices"
	"time"

	"understudy"
	"understudy/kit/lru"
	"understudy/mirror/cache"
	"understudy/mirror/compose"
	"understudy/mirror/httpcache"
	"understudy/mirror/slide"
	"understudy/spec"
)

// entries are the pages in memory, with what the mirror knows of their age.
type entries struct {
	env        *env
	hot        *cache.Tier
	slides     *slide.Lists                               // of pages that are named by numbers
	leads      *lru.Cache[understudy.Key, understudy.Key] // the page before one, of lists that go on after an id
	recordWent func(*kind, string)                        // tells the keeper of contents of a record that went
}

// holdings are what is held of a key anywhere: in memory, on its way there, in the store.
type holdings struct {
	env     *env
	entries *entries
	flights *flights
}

// state says what has happened to a held page since upstream gave it.
type state uint8

const (
	current  state = iota
	late           // superseded, kept warm, its refill is under way: stale at best
	outdated       // superseded or touched by a write: for an outage only
)

// held is a page found, ready to be judged.
type held struct {
	page     *understudy.Page
	gzip     []byte
	entry    *cache.Entry // nil: not in the hot tier
	fresh    time.Duration
	said     *httpcache.Bounds // by upstream, of its age; nil: nothing
	state    state
	composed bool
	stored   bool
	took     time.Duration // by the store
}

// changed are the names of fields that have changed in a list since it was
// fetched, as far as that is known.
func (h *held) changed() understudy.Names {
	if h.entry == nil {
		return h.page.Changed
	}
	if names := h.entry.Changed.Load(); names != nil {
		return *names
	}
	return ""
}

// remembered is an entry of the ready part of the hot tier: no locks held, nothing
// allocated. e may be nil.
func (es *entries) remembered(e *cache.Entry, key understudy.Key, k *kind, now time.Time) (held, bool) {
	if e == nil {
		return held{}, false
	}
	r := e.Encoded()
	if r == nil || r.Page.Key != key {
		return held{}, false
	}
	e.Use()
	r.Use()
	return es.heldOf(e, r.Page, r.Gzip, es.state(e, k, now)), true
}

// heldOf is an entry with its page.
func (es *entries) heldOf(e *cache.Entry, p *understudy.Page, gzip []byte, s state) held {
	return held{page: p, gzip: gzip, entry: e, fresh: freshBy(e.Said, es.env.ages().of(e.Term)), said: e.Said, state: s, composed: e.Composed,
		stored: e.Stored}
}

// find looks everywhere. ok is false when nothing is held; err is the
// context's, or ErrClosed.
func (hs *holdings) find(ctx context.Context, t *spec.Target, k *kind, now time.Time) (h held, ok bool, err error) {
	return hs.findFrom(ctx, hs.entries.hot.Find(t.Key), t, k, now)
}

// findFrom is find for a caller that has looked into the hot tier: e is what it
// found there, nil for nothing.
func (hs *holdings) findFrom(ctx context.Context, e *cache.Entry, t *spec.Target, k *kind, now time.Time) (h held, ok bool, err error) {
	if h, ok = hs.entries.unpacked(e, t.Key, k, now); ok {
		v, _ := hs.env.ages().decide(&h, hs.env.ages().usual(), now)
		// A list may have shown an instance's record since: the store knows.
		if v == fresh || t.Instance == nil {
			return h, true, nil
		}
	}
	if !ok {
		if h, ok = hs.landing(t); ok {
			return h, true, nil
		}
	}
	begin := hs.env.now()
	stored, found, err := hs.load(ctx, t, k)
	if err != nil {
		return held{}, false, err
	}
	if found && (!ok || stored.page.At.After(h.page.At) || stored.state < h.state) {
		h, ok = stored, true
	}
	h.took = hs.env.now().Sub(begin)
	return h, ok, nil
}

// unpacked is an entry of either part of the hot tier. e may be nil.
func (es *entries) unpacked(e *cache.Entry, key understudy.Key, k *kind, now time.Time) (held, bool) {
	if e == nil {
		return held{}, false
	}
	if r := e.Encoded(); r != nil {
		return es.heldOf(e, r.Page, r.Gzip, es.state(e, k, now)), r.Page.Key == key
	}
	p, err := es.hot.Unpack(e)
	if err != nil || p.Key != key {
		return held{}, false
	}
	if e.Use() >= cache.PromoteAfter {
		es.hot.Promote(e)
	}
	return es.heldOf(e, p, nil, es.state(e, k, now)), true
}

// landing is the page of a flight that has completed and is on its way into the
// hot tier.
func (hs *holdings) landing(t *spec.Target) (held, bool) {
	hs.flights.Lock()
	f := hs.flights.running[t.Key]
	hs.flights.Unlock()
	if f == nil || !f.completed() || f.result.err != nil || f.result.page.Superseded || f.invalidated() {
		return held{}, false
	}
	return held{page: f.result.page, fresh: hs.env.ages().fresh(t, f.result.page), said: said(f.result.page), stored: f.result.stored}, true
}

// state of an entry now.
func (es *entries) state(e *cache.Entry, k *kind, now time.Time) state {
	if e.List && e.Generation < k.writes.Generation() {
		return outdated
	}
	since := e.Superseded.Load()
	if since == 0 {
		return current
	}
	if d := time.Duration(es.env.monotonic(now) - since); e.Polled && d >= 0 && d < grace {
		return late
	}
	return outdated
}

// load asks the store for the page and, for an instance, for the record; the
// better one counts. What came from the store goes into the hot tier.
func (hs *holdings) load(ctx context.Context, t *spec.Target, k *kind) (h held, ok bool, err error) {
	before := k.writes.Changes()
	pending := t.ID != "" && k.writes.IsPending(t.ID) // asked first: the store may be told between its answer and the question
	p, err := hs.env.store.Page(ctx, t.Key)
	switch {
	case err == nil:
		h, ok = held{page: p, fresh: hs.env.ages().fresh(t, p), said: said(p), stored: true}, true
		if p.Superseded || p.List && p.Generation < k.writes.Generation() || !p.List && (pending || k.writes.IsPending(p.ID)) {
			h.state = outdated
		}
		hs.env.reads("", nil)
	case errors.Is(err, understudy.ErrNotFound):
		hs.env.reads("", nil)
	default:
		if ctx.Err() != nil {
			return held{}, false, ctx.Err()
		}
		hs.env.reads(t.Key.String(), err)
	}
	t = named(ctx, hs.env.store, k.source, t)
	if t.Instance != nil && t.ID != "" && len(t.Query) == 0 && !t.Apart() {
		h, ok = hs.compose(ctx, t, k, h, ok, pending)
	}
	if !ok {
		return held{}, false, nil
	}
	hs.entries.cacheHeld(k, t, &h, before)
	return h, true, nil
}

// compose answers an instance from its record when that is better than the
// page held: newer, or the page is outdated. A write that touched the record
// makes both outdated. Where upstream's word on an age counts, what is made of records is
// for an outage only: upstream has said nothing of it.
func (hs *holdings) compose(ctx context.Context, t *spec.Target, k *kind, h held, ok, pending bool) (held, bool) {
	rec, err := hs.env.store.Record(ctx, k.source.config.Name, k.name, t.KeptAs(k.source.config.User), t.ID)
	if err != nil {
		return h, ok
	}
	invalid := rec.Invalid || pending || k.writes.IsPending(t.ID)
	if ok && invalid {
		h.state = outdated
	}
	holds := ok && h.state == current && (k.source.config.UpstreamAges || !rec.Seen.After(h.page.At))
	if holds || h.said != nil && h.said.Strict || !compose.Belongs(t, rec.Body) {
		return h, ok
	}
	p := compose.Instance(k.source.config, t, rec)
	h = held{page: p, fresh: hs.env.ages().fresh(t, p), composed: true, stored: true}
	if invalid || k.source.config.UpstreamAges {
		h.state = outdated
	}
	return h, true
}

// cacheHeld puts what the store held into the hot tier, unless something
// became old meanwhile.
func (es *entries) cacheHeld(k *kind, t *spec.Target, h *held, before int64) {
	if have := es.hot.Find(t.Key); have != nil && have.Superseded.Load() == 0 && !have.At.Before(h.page.At) {
		return // as new, and its time still has its monotonic reading
	}
	e := es.entryOf(k, t, h)
	if e == nil || !es.hot.Put(e, nil) {
		return
	}
	if k.writes.Changes() != before {
		es.hot.Drop(e)
		return
	}
	h.entry = e
	if h.state == outdated && e.Polled && h.page.Superseded && h.page.Generation >= k.writes.Generation() {
		h.state = late // noticed now, so its grace begins now
	}
}

// entryOf packs a held page; nil when it cannot be.
func (es *entries) entryOf(k *kind, t *spec.Target, h *held) *cache.Entry {
	p := k.source.polls()[t.Key]
	e := es.hot.Pack(k.pages, h.page)
	if e == nil {
		return nil
	}
	e.Term, e.Composed, e.Stored, e.Polled, e.List = termOf(t, h.page), h.composed, h.stored, p != nil, t.List != nil
	e.Wide, e.Said = t.Unnamed() != "", h.said
	if h.state != current || h.page.Superseded {
		e.Superseded.Store(es.env.monotonic(es.env.now()))
		e.Note(slices.Collect(h.page.Changed.All()))
	}
	if p != nil {
		p.list.Completed(h.page, h.state == current)
	}
	return e
}
