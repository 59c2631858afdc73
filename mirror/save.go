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
	if f.origin.look {
		f.origin.kind.looks.Put(p.At.UnixNano(), true, 1)
	}
	p = notStoredSaid(fl.pastGone(f, p))
	switch {
	case f.origin.kind.name == "":
		f.complete(p, nil) // for its waiters only
		return
	case f.origin.kind.writes.IsPurged(f.origin.began):
		f.result.saveErr = errOvertaken
		f.complete(p, nil) // likewise
		return
	case p.NotStored == "" && fl.writer.saving.pauses(p.Asked(), fl.env.now()):
		paused := *p
		paused.NotStored, p = "saving it took too long a moment ago", &paused
	}
	if p.NotStored != "" {
		f.origin.source.counts.notStored.Add(1)
		f.result.detail = notStored(p)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(fl.env.ctx), saveTime)
	defer cancel()
	defer f.offerUnsaved(p)()
	if p.NotStored == understudy.NotStoredDeleted {
		if err := fl.writer.recordDeleted(ctx, f.origin.kind, p); err != nil {
			fl.env.log.Warn("mirror: a record that upstream deleted cannot be removed", "key", p.Key.String(), "error", err)
		}
	}
	if !fl.storable(ctx, f, p) {
		if p.NotStored != "" && p.Status < 400 {
			f.result.saveErr = fmt.Errorf("%w: %s", understudy.ErrNotStored, p.NotStored)
		}
		before := f.origin.kind.writes.Changes()
		if p.NotStored == understudy.NotStoredSaid {
			fl.flights.leave(f)
		}
		f.complete(p, nil)
		fl.hold(f, p, before)
		fl.saveWhole(ctx, f, p)
		return
	}
	if f.origin.target.Instance != nil && p.Status >= 400 {
		fl.entries.recordWent(f.origin.kind, f.origin.target.ID) // its record went, whether or not it was known
		fl.entries.dropUnstored(f.origin.kind)
	}
	begin := fl.env.now()
	if err := f.origin.kind.lock(ctx); err != nil {
		f.result.saving = fl.env.now().Sub(begin)
		fl.unsaved(f, err)
		f.complete(p, nil)
		return
	}
	defer f.origin.kind.unlock()
	generation := f.origin.kind.writes.Generation() // before the look: what is written after it is refused by the store
	if f.invalidated() {
		f.result.saveErr = errOvertaken
		fl.saveRest(ctx, f, p, generation)
		f.complete(p, nil)
		return
	}
	before := f.origin.kind.writes.Changes()
	saved, err := fl.writer.save(ctx, f.origin.kind, f.forStore(p, generation))
	f.result.saving, f.result.saveErr = fl.env.now().Sub(begin), err
	switch {
	case err == nil:
		p, f.result.stored, f.result.changes = fl.allowed(f, f.fromStore(saved.Page, p)), saved.Page.NotStored == "", saved.Changes
		if !f.origin.recordsOnly {
			p = fl.checked(ctx, f, p, before)
		}
		except := p.Key
		if f.origin.recordsOnly {
			except = understudy.Key{} // no entry is made of this page
		}
		if fl.entries.supersede(f.origin.kind, p.Shape, saved.Changes, except) {
			before++
		}
		fl.writer.pageSaved(p, saved.Changes, f.origin.reason)
		if before == f.origin.began.Changes || len(saved.Changes) > 0 && before == f.origin.began.Changes+1 {
			f.result.saved = f.origin.kind.writes.Changes() + 1
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
	why := f.origin.target.Alone()
	if why == "" || p.NotStored != why || p.Status >= http.StatusMultipleChoices || f.origin.target.Widened() || f.origin.recordsOnly {
		return
	}
	if b := said(p); b != nil && b.NoStore || f.origin.kind.lock(ctx) != nil {
		return
	}
	defer f.origin.kind.unlock()
	if !f.invalidated() {
		k := f.origin.kind
		_, _ = fl.writer.save(ctx, k, f.forStore(p.Whole(), k.writes.Generation())) // its readers have their answer
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
	s := wr.env.sources[p.Key.Source]
	if s == nil || p.Status != 200 {
		return false
	}
	k := s.config.Spec.Kind(p.Kind)
	return k != nil && len(k.Sampled()) > 0
}

// saveRest saves the records of an invalidated list that were not written since
// its fetch began, or nothing would be saved while writes keep coming. The list
// itself is not kept.
func (fl *filler) saveRest(ctx context.Context, f *flight, p *understudy.Page, generation int64) {
	if !p.List || p.Status != 200 || f.origin.kind.writes.IsPurged(f.origin.began) {
		return
	}
	rest := *p
	rest.Key, rest.Of, rest.Next = understudy.Key{Source: p.Key.Source}, p.Key, understudy.Key{}
	rest.Rows, rest.Generation = f.untouched(p.Rows), generation
	if len(rest.Rows) == 0 {
		return
	}
	saved, err := fl.writer.save(ctx, f.origin.kind, &rest)
	if err != nil {
		fl.unsaved(f, err)
		return
	}
	fl.entries.supersede(f.origin.kind, p.Shape, saved.Changes, understudy.Key{})
	told := *saved.Page
	told.Key, told.Of, told.Next = p.Key, p.Of, p.Next
	fl.writer.pageSaved(&told, saved.Changes, f.origin.reason)
	f.result.restSaved = true
}

// errOvertaken is a page that a write or a purge made old before it was saved.
var errOvertaken = fmt.Errorf("%w: a write or a purge came after the fetch began", understudy.ErrOutdated)

// checked asks the store whether a page just saved is already superseded: when
// something changed while it was fetched, another fetch may have seen a record
// later than this one did.
func (fl *filler) checked(ctx context.Context, f *flight, p *understudy.Page, before int64) *understudy.Page {
	if before == f.origin.began.Changes {
		return p
	}
	kept, err := fl.env.store.Page(ctx, p.Key)
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
	case p.Status == 200, p.Status == 206 && f.origin.target.List != nil: // PostgREST's status of a page that is not the whole list
		return true
	case p.Status != 404 && p.Status != 410:
		return false
	case f.origin.target.Instance == nil:
		return true
	}
	// A record asked for under another account's path is not there, but it is
	// not gone. Nor is one that upstream forgets by itself: the answer passes, and
	// what is remembered stays.
	rec := fl.holdings.known(ctx, f.origin.source, f.origin.target.Kind, f.origin.target.ID)
	return rec == nil || compose.Belongs(f.origin.target, rec.Body) && !fl.forgotten(ctx, f.origin.kind, rec)
}

// save saves; the caller has the kind's lock. What the store has not been told
// of earlier writes is told first.
func (wr *writer) save(ctx context.Context, k *kind, p *understudy.Page) (request.Saved, error) {
	if err := wr.flush(ctx, k); err != nil {
		return request.Saved{}, wr.saving.failed(wr.entries.env, err)
	}
	saved, err := wr.env.store.Save(ctx, p)
	switch {
	case errors.Is(err, understudy.ErrNotStored) && errors.Is(err, context.DeadlineExceeded):
		wr.saving.tooLong(p.Asked(), wr.env.now()) // the page's own fault: others can be saved
		return saved, err
	case err != nil && !errors.Is(err, understudy.ErrOutdated):
		return saved, wr.saving.failed(wr.entries.env, err)
	}
	wr.saving.works(wr.entries.env)
	return saved, err
}

// hold puts a page into the hot tier. It becomes ready at once when the one it
// follows was, when it is polled, or when several waited for it.
func (fl *filler) hold(f *flight, p *understudy.Page, before int64) {
	fl.flights.Lock()
	readers := f.waiting.readers
	fl.flights.Unlock()
	if f.origin.recordsOnly || f.origin.filled && readers == 0 && !fl.entries.wanted(p.Key, f.origin.source) {
		return
	}
	if p.Status == http.StatusAccepted || p.NotStored == understudy.NotStoredError {
		return // not yet: the next reader asks again
	}
	h := held{page: p, fresh: fl.env.ages().fresh(f.origin.target, p), said: said(p), stored: f.result.stored}
	if h.said != nil && h.said.NoStore {
		return
	}
	e := fl.entries.entryOf(f.origin.kind, f.origin.target, &h)
	if e == nil {
		fl.entries.hot.Forget(fl.entries.hot.Hash(p.Key))
		return
	}
	var r *cache.Encoded
	if e.Polled || readers > 1 || fl.entries.hot.IsReady(e.Hash) {
		r = fl.entries.hot.Encode(p)
	}
	if fl.entries.hot.Put(e, r) && (f.origin.kind.writes.Changes() != before || f.invalidated()) {
		fl.entries.hot.Drop(e)
	}
}

// wanted reports whether a page without a reader is for memory all the same.
func (es *entries) wanted(key understudy.Key, s *source) bool {
	return es.hot.Find(key) != nil || s.polls()[key] != nil
}

// unsaved notes that a flight's page could not be saved.
func (fl *filler) unsaved(f *flight, err error) {
	f.origin.source.counts.notStored.Add(1)
	f.result.saveErr, f.result.detail = err, "not stored: "+lastWords(err)
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
