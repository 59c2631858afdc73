// Save: what upstream gave goes into the store, then into the hot tier.

package mirror

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"understudy"
	"understudy/mirror/cache"
	"understudy/mirror/compose"
	"understudy/request"
)

// fill keeps a flight's page as far as it may be kept, and completes the flight.
func (fl *filler) fill(f *flight, p *understudy.Page) {
	fl.moved(f, p)
	p = notStoredSaid(fl.pastGone(f, p))
	switch {
	case f.kind.name == "":
		f.complete(p, nil) // for its waiters only
		return
	case f.purged():
		f.saveErr = errOvertaken
		f.complete(p, nil) // likewise
		return
	case p.NotStored == "" && fl.saving.pauses(p.Asked(), fl.now()):
		paused := *p
		paused.NotStored, p = "saving it took too long a moment ago", &paused
	}
	if p.NotStored != "" {
		f.source.counts.notStored.Add(1)
		f.detail = notStored(p)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(fl.ctx), saveTime)
	defer cancel()
	defer f.offerUnsaved(p)()
	if p.NotStored == understudy.NotStoredDeleted {
		if err := fl.recordDeleted(ctx, f.kind, p); err != nil {
			fl.log.Warn("mirror: a record that upstream deleted cannot be removed", "key", p.Key.String(), "error", err)
		}
	}
	if !fl.storable(ctx, f, p) {
		if p.NotStored != "" && p.Status < 400 {
			f.saveErr = fmt.Errorf("%w: %s", understudy.ErrNotStored, p.NotStored)
		}
		before := f.kind.changes.Load()
		if p.NotStored == understudy.NotStoredSaid {
			fl.leave(f)
		}
		f.complete(p, nil)
		fl.hold(f, p, before)
		fl.saveWhole(ctx, f, p)
		return
	}
	if f.target.Instance != nil && p.Status >= 400 {
		fl.recordWent(f.kind, f.target.ID) // its record went, whether or not it was known
		fl.dropUnstored(f.kind)
	}
	begin := fl.now()
	if err := f.kind.lock(ctx); err != nil {
		f.saving = fl.now().Sub(begin)
		fl.unsaved(f, err)
		f.complete(p, nil)
		return
	}
	defer f.kind.unlock()
	generation := f.kind.generation.Load() // before the look: what is written after it is refused by the store
	if f.invalidated() {
		f.saveErr = errOvertaken
		fl.saveRest(ctx, f, p, generation)
		f.complete(p, nil)
		return
	}
	before := f.kind.changes.Load()
	saved, err := fl.save(ctx, f.kind, f.forStore(p, generation))
	f.saving, f.saveErr = fl.now().Sub(begin), err
	switch {
	case err == nil:
		p, f.stored, f.changes = fl.allowed(f, f.fromStore(saved.Page, p)), saved.Page.NotStored == "", saved.Changes
		if !f.recordsOnly {
			p = fl.checked(ctx, f, p, before)
		}
		except := p.Key
		if f.recordsOnly {
			except = understudy.Key{} // no entry is made of this page
		}
		if fl.supersede(f.kind, p.Shape, saved.Changes, except) {
			before++
		}
		fl.pageSaved(p, saved.Changes, f.reason)
		if before == f.counter || len(saved.Changes) > 0 && before == f.counter+1 {
			f.saved = f.kind.changes.Load() + 1
		}
	case errors.Is(err, understudy.ErrOutdated) && f.invalidated():
		f.complete(p, nil)
		return
	case !errors.Is(err, understudy.ErrOutdated):
		fl.unsaved(f, err)
	}
	f.complete(p, nil)
	fl.hold(f, p, before)
}

// saveWhole stores an answer whose records are not kept. It is answered when upstream fails, and at no
// other time.
func (fl *filler) saveWhole(ctx context.Context, f *flight, p *understudy.Page) {
	why := f.target.Alone()
	if why == "" || p.NotStored != why || p.Status >= http.StatusMultipleChoices || f.target.Widened() || f.recordsOnly {
		return
	}
	if b := said(p); b != nil && b.NoStore || f.kind.lock(ctx) != nil {
		return
	}
	defer f.kind.unlock()
	if !f.invalidated() {
		_, _ = fl.save(ctx, f.kind, f.forStore(p.Whole(), f.kind.generation.Load())) // its readers have their answer
	}
}

// pageSaved tells the function that the options name of a save. The caller has the
// kind's lock, so that the changes of a kind are told in the order of their
// numbers.
func (wr *writer) pageSaved(p *understudy.Page, changes []understudy.Change, why request.Reason) {
	if wr.tell != nil && (len(p.Rows) > 0 || len(changes) > 0 || wr.sampled(p)) {
		wr.tell(request.PageSaved{Page: p, Changes: changes, Reason: why})
	}
}

// sampled reports whether a page has numbers that are kept as series.
func (wr *writer) sampled(p *understudy.Page) bool {
	s := wr.sources[p.Key.Source]
	if s == nil || p.Status != 200 {
		return false
	}
	k := s.Spec.Kind(p.Kind)
	return k != nil && len(k.Sampled()) > 0
}

// saveRest saves the records of an invalidated list that were not written since
// its fetch began, or nothing would be saved while writes keep coming. The list
// itself is not kept.
func (fl *filler) saveRest(ctx context.Context, f *flight, p *understudy.Page, generation int64) {
	if !p.List || p.Status != 200 || f.purged() {
		return
	}
	rest := *p
	rest.Key, rest.Of, rest.Next = understudy.Key{Source: p.Key.Source}, p.Key, understudy.Key{}
	rest.Rows, rest.Generation = f.untouched(p.Rows), generation
	if len(rest.Rows) == 0 {
		return
	}
	saved, err := fl.save(ctx, f.kind, &rest)
	if err != nil {
		fl.unsaved(f, err)
		return
	}
	fl.supersede(f.kind, p.Shape, saved.Changes, understudy.Key{})
	told := *saved.Page
	told.Key, told.Of, told.Next = p.Key, p.Of, p.Next
	fl.pageSaved(&told, saved.Changes, f.reason)
	f.restSaved = true
}

// errOvertaken is a page that a write or a purge made old before it was saved.
var errOvertaken = fmt.Errorf("%w: a write or a purge came after the fetch began", understudy.ErrOutdated)

// checked asks the store whether a page just saved is already superseded: when
// something changed while it was fetched, another fetch may have seen a record
// later than this one did.
func (fl *filler) checked(ctx context.Context, f *flight, p *understudy.Page, before int64) *understudy.Page {
	if before == f.counter {
		return p
	}
	kept, err := fl.store.Page(ctx, p.Key)
	if err != nil || !kept.Superseded {
		return p
	}
	old := *p
	old.Superseded, old.Changed = true, kept.Changed
	return &old
}

// storable reports whether a page is for the store: a good answer, or word
// that a record is gone. Other refusals, and what cannot be kept faithfully,
// stay in memory for their short time.
func (fl *filler) storable(ctx context.Context, f *flight, p *understudy.Page) bool {
	switch {
	case p.NotStored != "":
		return false
	case p.Status == 200, p.Status == 206 && f.target.List != nil: // PostgREST's status of a page that is not the whole list
		return true
	case p.Status != 404 && p.Status != 410:
		return false
	case f.target.Instance == nil:
		return true
	}
	// A record asked for under another account's path is not there, but it is
	// not gone. Nor is one that upstream forgets by itself: the answer passes, and
	// what is remembered stays.
	rec := fl.known(ctx, f.source, f.target.Kind, f.target.ID)
	return rec == nil || compose.Belongs(f.target, rec.Body) && !fl.forgotten(ctx, f.kind, rec)
}

// save saves; the caller has the kind's lock. What the store has not been told
// of earlier writes is told first.
func (wr *writer) save(ctx context.Context, k *kind, p *understudy.Page) (request.Saved, error) {
	if err := wr.flush(ctx, k); err != nil {
		return request.Saved{}, wr.saving.failed(wr.env, err)
	}
	saved, err := wr.store.Save(ctx, p)
	switch {
	case errors.Is(err, understudy.ErrNotStored) && errors.Is(err, context.DeadlineExceeded):
		wr.saving.tooLong(p.Asked(), wr.now()) // the page's own fault: others can be saved
		return saved, err
	case err != nil && !errors.Is(err, understudy.ErrOutdated):
		return saved, wr.saving.failed(wr.env, err)
	}
	wr.saving.works(wr.env)
	return saved, err
}

// hold puts a page into the hot tier. It becomes ready at once when the one it
// follows was, when it is polled, or when several waited for it.
func (fl *filler) hold(f *flight, p *understudy.Page, before int64) {
	fl.flights.Lock()
	readers := f.readers
	fl.flights.Unlock()
	if f.recordsOnly || f.filled && readers == 0 && !fl.wanted(p.Key, f.source) {
		return
	}
	if p.Status == http.StatusAccepted || p.NotStored == understudy.NotStoredError {
		return // not yet: the next reader asks again
	}
	h := held{page: p, fresh: fl.ages().fresh(f.target, p), said: said(p), stored: f.stored}
	if h.said != nil && h.said.NoStore {
		return
	}
	e := fl.entryOf(f.kind, f.target, &h)
	if e == nil {
		fl.hot.Forget(fl.hot.Hash(p.Key))
		return
	}
	var r *cache.Encoded
	if e.Polled || readers > 1 || fl.hot.IsReady(e.Hash) {
		r = fl.hot.Encode(p)
	}
	if fl.hot.Put(e, r) && (f.kind.changes.Load() != before || f.invalidated()) {
		fl.hot.Drop(e)
	}
}

// wanted reports whether a page without a reader is for memory all the same.
func (es *entries) wanted(key understudy.Key, s *source) bool {
	return es.hot.Find(key) != nil || s.polls()[key] != nil
}

// unsaved notes that a flight's page could not be saved.
func (fl *filler) unsaved(f *flight, err error) {
	f.source.counts.notStored.Add(1)
	f.saveErr, f.detail = err, "not stored: "+lastWords(err)
}

// lastWords is what happened, less who says so: the store's own short reason,
// or the end of the error's text.
func lastWords(err error) string {
	text := err.Error()
	var reason interface{ Short() string }
	if errors.As(err, &reason) {
		text = reason.Short()
	} else if i := strings.LastIndex(text, ": "); i >= 0 && i+2 < len(text) {
		text = text[i+2:]
	}
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			return -1
		}
		return r
	}, text)
	return text[:min(len(text), 80)]
}
