// Stored pages: they are found in memory or in the store, or composed from a stored record.

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

// entries are the pages in memory, and what the mirror knows about their age.
type entries struct {
	env    *env
	hot    *cache.Tier
	slides *slide.Lists // what is remembered of lists whose pages are named by numbers
	// for each page of a list that continues after an id, the key of the page before it
	previousPages  *lru.Cache[understudy.Key, understudy.Key]
	forgetContents func(*kind, string) // deletes the audio and images of a deleted record
}

// pageFinder finds the page of a key in memory, in a completed flight and in the store.
type pageFinder struct {
	env     *env
	entries *entries
	flights *flights
}

// state says whether a stored page is still what upstream would answer.
type state uint8

const (
	current   state = iota
	refilling       // the page is outdated and a poll is fetching it again, so it may be used as a stale answer
	outdated        // the page is outdated or a write has touched it, so it is used as an answer only during an outage
)

// storedPage is a stored page, with what decides whether it may be used as an answer.
type storedPage struct {
	page     *understudy.Page
	gzip     []byte
	entry    *cache.Entry // the page's entry in memory; nil if it is only in the store
	fresh    time.Duration
	bounds   *httpcache.Bounds // the limits that upstream's headers set to the page's age; nil if there are none
	state    state
	composed bool
	stored   bool
	cutOff   bool          // the page is from memory, which may be wrong, and the store does not answer
	loadTime time.Duration // how long it took to read the page from the store
}

// changedFields returns the names of the fields that are known to have changed since the list was fetched.
func (h *storedPage) changedFields() understudy.Names {
	if h.entry == nil {
		return h.page.Changed
	}
	if names := h.entry.Changed.Load(); names != nil {
		return *names
	}
	return ""
}

// readyPage returns the page of an encoded entry. It uses no lock and allocates no memory. e may be nil.
func (es *entries) readyPage(e *cache.Entry, key understudy.Key, k *kind, now time.Time) (storedPage, bool) {
	if e == nil {
		return storedPage{}, false
	}
	r := e.EncodedPage()
	if r == nil || r.Page.Key != key {
		return storedPage{}, false
	}
	e.Use()
	r.Use()
	return es.newStoredPage(e, r.Page, r.Gzip, es.state(e, k, now)), true
}

// newStoredPage returns the stored page with an entry in memory.
func (es *entries) newStoredPage(e *cache.Entry, p *understudy.Page, gzip []byte, s state) storedPage {
	return storedPage{page: p, gzip: gzip, entry: e, fresh: limitFreshTime(e.Bounds, es.env.ages().termFreshTime(e.Term)),
		bounds: e.Bounds, state: s, composed: e.Composed, stored: e.Stored}
}

// find looks for the page of a target in memory, in the flights and in the store. ok is false if no page is stored.
// err is the context's error or ErrClosed.
func (hs *pageFinder) find(ctx context.Context, t *spec.Target, k *kind, now time.Time) (h storedPage, ok bool, err error) {
	return hs.findWithEntry(ctx, hs.entries.hot.Find(t.Key), t, k, now)
}

// findWithEntry is find for a caller that has already looked into memory. e is the entry that the caller has found, or nil.
func (hs *pageFinder) findWithEntry(
	ctx context.Context, e *cache.Entry, t *spec.Target, k *kind, now time.Time,
) (h storedPage, ok bool, err error) {
	// If memory may be wrong, the store is asked. It has what other processes have changed.
	if h, ok = hs.entries.unpackEntry(e, t.Key, k, now); ok && hs.env.isMemoryCurrent() {
		v, _ := hs.env.ages().decide(&h, hs.env.ages().usualBounds(), now)
		// A list may have shown a newer version of this record. Only the store knows that.
		if v == fresh || t.Instance == nil {
			return h, true, nil
		}
	}
	if !ok {
		if h, ok = hs.flightPage(t); ok {
			return h, true, nil
		}
	}
	begin := hs.env.now()
	current := hs.env.isMemoryCurrent()
	stored, found, err := hs.loadInTime(ctx, t, k, ok && !current)
	if err != nil {
		return storedPage{}, false, err
	}
	h.cutOff = ok && !found && !current
	if found && (!ok || stored.page.At.After(h.page.At) || stored.state < h.state) {
		h, ok = stored, true
	}
	h.loadTime = hs.env.now().Sub(begin)
	return h, ok, nil
}

// maxStoreWait is how long a reader waits for the store if memory has a page for it that may be wrong.
const maxStoreWait = time.Second

// loadInTime is load, which gives up after maxStoreWait if limited is set.
func (hs *pageFinder) loadInTime(ctx context.Context, t *spec.Target, k *kind, limited bool) (h storedPage, ok bool, err error) {
	if !limited {
		return hs.load(ctx, t, k)
	}
	short, cancel := context.WithTimeout(ctx, maxStoreWait)
	defer cancel()
	if h, ok, err = hs.load(short, t, k); err != nil && ctx.Err() == nil {
		err = nil
	}
	return h, ok, err
}

// unpackEntry returns the page of an entry in memory, whether it is encoded or only packed. e may be nil.
func (es *entries) unpackEntry(e *cache.Entry, key understudy.Key, k *kind, now time.Time) (storedPage, bool) {
	if e == nil {
		return storedPage{}, false
	}
	if r := e.EncodedPage(); r != nil {
		return es.newStoredPage(e, r.Page, r.Gzip, es.state(e, k, now)), r.Page.Key == key
	}
	p, err := es.hot.Unpack(e)
	if err != nil || p.Key != key {
		return storedPage{}, false
	}
	if e.Use() >= cache.PromoteAfter {
		es.hot.Promote(e)
	}
	return es.newStoredPage(e, p, nil, es.state(e, k, now)), true
}

// flightPage returns the page of a flight that has ended, if it is not in memory yet.
func (hs *pageFinder) flightPage(t *spec.Target) (storedPage, bool) {
	hs.flights.Lock()
	f := hs.flights.running[t.Key]
	hs.flights.Unlock()
	if f == nil || !f.isCompleted() || f.result.err != nil || f.result.page.Superseded || f.isInvalidated() {
		return storedPage{}, false
	}
	p := f.result.page
	return storedPage{page: p, fresh: hs.env.ages().pageFreshTime(t, p), bounds: upstreamBounds(p), stored: f.result.stored}, true
}

// state returns the current state of an entry in memory.
func (es *entries) state(e *cache.Entry, k *kind, now time.Time) state {
	if e.List && e.Generation < k.writes.Generation() || !es.env.isMemoryCurrent() {
		return outdated
	}
	since := e.Superseded.Load()
	if since == 0 {
		return current
	}
	if d := time.Duration(es.env.monotonicTime(now) - since); e.Polled && d >= 0 && d < refillGrace {
		return refilling
	}
	return outdated
}

// load reads the page from the store, and for a single record also the record. It returns the newer of both and puts
// it into memory.
func (hs *pageFinder) load(ctx context.Context, t *spec.Target, k *kind) (h storedPage, ok bool, err error) {
	before := k.writes.Changes()
	pending := t.ID != "" && k.writes.IsPending(t.ID) // this is read before the page, because the store may learn of the write in between
	p, err := hs.env.store.ReadPage(ctx, t.Key)
	switch {
	case err == nil:
		h, ok = storedPage{page: p, fresh: hs.env.ages().pageFreshTime(t, p), bounds: upstreamBounds(p), stored: true}, true
		if p.Superseded || p.List && p.Generation < k.writes.Generation() || !p.List && (pending || k.writes.IsPending(p.ID)) {
			h.state = outdated
		}
		hs.env.noteStoreRead("", nil)
	case errors.Is(err, understudy.ErrNotFound):
		hs.env.noteStoreRead("", nil)
	default:
		if ctx.Err() != nil {
			return storedPage{}, false, ctx.Err()
		}
		hs.env.noteStoreRead(t.Key.String(), err)
	}
	t = resolveAddress(ctx, hs.env.store, k.source, t)
	if t.Instance != nil && t.ID != "" && len(t.Query) == 0 && !t.HasKeyHeader() {
		h, ok = hs.composeInstance(ctx, t, k, h, ok, pending)
	}
	if !ok {
		return storedPage{}, false, nil
	}
	hs.entries.putStored(k, t, &h, before)
	return h, true, nil
}

// composeInstance composes the answer for a single record from the stored record, if that is newer than the stored
// page or the page is outdated. A write to the record outdates both. If the source obeys upstream's cache headers, a
// composed page is used only during an outage, because it has no such headers.
func (hs *pageFinder) composeInstance(ctx context.Context, t *spec.Target, k *kind, h storedPage, ok, pending bool) (storedPage, bool) {
	rec, err := hs.env.store.Record(ctx, k.source.config.Name, k.name, t.StorageShape(k.source.config.User), t.ID)
	if err != nil {
		return h, ok
	}
	invalid := rec.Invalidated || pending || k.writes.IsPending(t.ID)
	if ok && invalid {
		h.state = outdated
	}
	holds := ok && h.state == current && (k.source.config.UpstreamAges || !rec.Seen.After(h.page.At))
	if holds || h.bounds != nil && h.bounds.Strict || !compose.IsUnderTarget(t, rec.Body) {
		return h, ok
	}
	p := compose.InstancePage(k.source.config, t, rec)
	h = storedPage{page: p, fresh: hs.env.ages().pageFreshTime(t, p), composed: true, stored: true}
	if invalid || k.source.config.UpstreamAges {
		h.state = outdated
	}
	return h, true
}

// putStored puts a page from the store into memory, unless something has changed since it was read.
func (es *entries) putStored(k *kind, t *spec.Target, h *storedPage, before int64) {
	if have := es.hot.Find(t.Key); have != nil && have.Superseded.Load() == 0 && !have.At.Before(h.page.At) {
		return // the page in memory is as new, and its time is more exact because it has a monotonic reading
	}
	e := es.packEntry(k, t, h)
	if e == nil || !es.hot.Put(e, nil) {
		return
	}
	if k.writes.Changes() != before {
		es.hot.Drop(e)
		return
	}
	h.entry = e
	if h.state == outdated && e.Polled && h.page.Superseded && h.page.Generation >= k.writes.Generation() {
		h.state = refilling // the page was found to be outdated only now, so the time for fetching it again begins now
	}
}

// packEntry returns an entry for memory with the packed page. It returns nil if the page cannot be packed.
func (es *entries) packEntry(k *kind, t *spec.Target, h *storedPage) *cache.Entry {
	p := k.source.polls()[t.Key]
	e := es.hot.Pack(k.pages, h.page)
	if e == nil {
		return nil
	}
	e.Term, e.Composed, e.Stored, e.Polled, e.List = termOf(t, h.page), h.composed, h.stored, p != nil, t.List != nil
	e.ShowsAnyKind, e.Bounds = t.UnknownParam() != "", h.bounds
	if h.state != current || h.page.Superseded {
		e.Superseded.Store(es.env.monotonicTime(es.env.now()))
		e.Note(slices.Collect(h.page.Changed.All()))
	}
	if p != nil {
		p.list.SetNewest(h.page, h.state == current)
	}
	return e
}
