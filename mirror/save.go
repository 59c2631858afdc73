// Saving: a fetched page is written to the store and put into memory.

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

// fill saves the page of a flight, as far as it may be stored, and then completes the flight.
func (fl *filler) fill(f *flight, p *understudy.Page) {
	fl.findMovedRows(f, p)
	if f.origin.nonFinal {
		f.origin.kind.nonFinalLooks.Put(p.At.UnixNano(), true, 1)
	}
	p = markNoStore(fl.resumeAfterDeleted(f, p))
	switch {
	case f.origin.kind.name == "":
		f.complete(p, nil) // the page is not stored and goes only to the readers that wait for it
		return
	case f.origin.kind.writes.IsPurged(f.origin.began):
		f.result.saveErr = errOutdatedByWrite
		f.complete(p, nil) // the page is not stored and goes only to the readers that wait for it
		return
	case p.NotStored == "" && fl.writer.saving.isSuspended(p.RequestKey(), fl.env.now()):
		paused := *p
		paused.NotStored, p = "saving took too long just before", &paused
	}
	if p.NotStored != "" {
		f.origin.source.counts.notStored.Add(1)
		f.result.detail = storeDetail(p)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(fl.env.ctx), maxSaveTime)
	defer cancel()
	defer f.offerUnsaved(p)()
	if p.NotStored == understudy.NotStoredDeleted {
		if err := fl.writer.recordDeleted(ctx, f.origin.kind, p); err != nil {
			fl.env.log.Warn("mirror: a record that upstream deleted cannot be removed", "key", p.Key.String(), "error", err)
		}
	}
	if !fl.canStore(ctx, f, p) {
		if p.NotStored != "" && p.Status < 400 {
			f.result.saveErr = fmt.Errorf("%w: %s", understudy.ErrNotStored, p.NotStored)
		}
		before := f.origin.kind.writes.Changes()
		if p.NotStored == understudy.NotStoredNoStore {
			fl.flights.Lock()
			fl.flights.remove(f)
			fl.flights.Unlock()
		}
		f.complete(p, nil)
		fl.putPage(f, p, before)
		fl.saveWhole(ctx, f, p)
		return
	}
	if f.origin.target.Instance != nil && p.Status >= 400 {
		// the record was deleted, so its audio and images are deleted too, whether or not it was stored
		fl.entries.forgetContents(f.origin.kind, f.origin.target.ID)
		var unstored []*cache.Entry // it is not known which records these pages show
		fl.entries.hot.WalkGroup(f.origin.kind.pages, func(e *cache.Entry) {
			if !e.Stored && !e.Composed {
				unstored = append(unstored, e)
			}
		})
		fl.entries.hot.DropAll(unstored)
	}
	begin, saving := fl.env.now(), f.origin.trace.Begin("save")
	if err := f.origin.kind.lock(ctx); err != nil {
		f.result.saveDuration = fl.env.now().Sub(begin)
		fl.noteUnsaved(f, err)
		f.complete(p, nil)
		return
	}
	defer f.origin.kind.unlock()
	generation := f.origin.kind.writes.Generation() // this is read before the check, because the store refuses pages of an older generation
	if f.isInvalidated() {
		f.result.saveErr = errOutdatedByWrite
		fl.saveRest(ctx, f, p, generation)
		f.complete(p, nil)
		return
	}
	before := f.origin.kind.writes.Changes()
	saved, err := fl.writer.save(ctx, f.origin.kind, f.pageToSave(p, generation))
	f.result.saveDuration, f.result.saveErr = fl.env.now().Sub(begin), err
	f.origin.trace.End(saving, 0)
	switch {
	case err == nil:
		p, f.result.stored, f.result.changes = fl.noteNotStored(f, f.restoreKey(saved.Page, p)), saved.Page.NotStored == "", saved.Changes
		if !f.origin.recordsOnly {
			p = fl.checkSuperseded(ctx, f, p, before)
		}
		except := p.Key
		if f.origin.recordsOnly {
			except = understudy.Key{} // a page that is not put into memory needs no exception
		}
		if fl.entries.markSuperseded(f.origin.kind, p.Shape, saved.Changes, except) {
			before++
		}
		fl.writer.notifySaved(p, saved.Changes, f.origin.reason)
		if before == f.origin.began.Changes || len(saved.Changes) > 0 && before == f.origin.began.Changes+1 {
			f.result.changesAfterSave = f.origin.kind.writes.Changes() + 1
		}
	case errors.Is(err, understudy.ErrOutdated) && f.isInvalidated():
		f.complete(p, nil)
		return
	case !errors.Is(err, understudy.ErrOutdated):
		fl.noteUnsaved(f, err)
	}
	f.complete(p, nil)
	fl.putPage(f, p, before)
}

// saveWhole stores a page whose records cannot be stored separately. The page is an answer only when upstream fails.
func (fl *filler) saveWhole(ctx context.Context, f *flight, p *understudy.Page) {
	why := f.origin.target.DropReason()
	if why == "" || p.NotStored != why || p.Status >= http.StatusMultipleChoices || f.origin.target.IsWidened() || f.origin.recordsOnly {
		return
	}
	if b := upstreamBounds(p); b != nil && b.NoStore || f.origin.kind.lock(ctx) != nil {
		return
	}
	defer f.origin.kind.unlock()
	if !f.isInvalidated() {
		k := f.origin.kind
		// an error is ignored, because the readers already have their answer
		_, _ = fl.writer.save(ctx, k, f.pageToSave(p.OutageCopy(), k.writes.Generation()))
	}
}

// notifySaved calls Options.PageSaved. The caller holds the lock of the kind, so that it is called with the kind's
// changes in the order of their numbers.
func (wr *writer) notifySaved(p *understudy.Page, changes []understudy.Change, why request.Reason) {
	if wr.onSaved != nil && (len(p.Rows) > 0 || len(changes) > 0 || wr.hasSeries(p)) {
		wr.onSaved(request.PageSaved{Page: p, Changes: changes, Reason: why})
	}
}

// hasSeries reports whether a page has numbers that the store keeps as a time series.
func (wr *writer) hasSeries(p *understudy.Page) bool {
	s := wr.env.sources[p.Key.Source]
	if s == nil || p.Status != 200 {
		return false
	}
	k := s.config.Spec.Kind(p.Kind)
	return k != nil && len(k.SampledFields()) > 0
}

// saveRest saves those records of an invalidated list to which nothing was written since its fetch began. Without it,
// nothing would be saved while writes arrive all the time. It does not store the list itself.
func (fl *filler) saveRest(ctx context.Context, f *flight, p *understudy.Page, generation int64) {
	if !p.List || p.Status != 200 || f.origin.kind.writes.IsPurged(f.origin.began) {
		return
	}
	rest := *p
	rest.Key, rest.RecordsKey, rest.Next = understudy.Key{Source: p.Key.Source}, p.Key, understudy.Key{}
	rest.Rows, rest.Generation = f.untouchedRows(p.Rows), generation
	if len(rest.Rows) == 0 {
		return
	}
	saved, err := fl.writer.save(ctx, f.origin.kind, &rest)
	if err != nil {
		fl.noteUnsaved(f, err)
		return
	}
	fl.entries.markSuperseded(f.origin.kind, p.Shape, saved.Changes, understudy.Key{})
	told := *saved.Page
	told.Key, told.RecordsKey, told.Next = p.Key, p.RecordsKey, p.Next
	fl.writer.notifySaved(&told, saved.Changes, f.origin.reason)
	f.result.restSaved = true
}

// errOutdatedByWrite is the error that a write or a purge has outdated a page before it was saved.
var errOutdatedByWrite = fmt.Errorf("%w: a write or a purge happened after the fetch began", understudy.ErrOutdated)

// checkSuperseded asks the store whether a page that was just saved is already outdated. If records have changed
// during its fetch, another fetch may have saved newer versions of them.
func (fl *filler) checkSuperseded(ctx context.Context, f *flight, p *understudy.Page, before int64) *understudy.Page {
	if before == f.origin.began.Changes {
		return p
	}
	kept, err := fl.env.store.ReadPage(ctx, p.Key)
	if err != nil || !kept.Superseded {
		return p
	}
	old := *p
	old.Superseded, old.Changed = true, kept.Changed
	return &old
}

// canStore reports whether a page may be stored: a successful response, or a response that a record was deleted.
// Other refusals, and pages that cannot be stored exactly, are only in memory during their short fresh time.
func (fl *filler) canStore(ctx context.Context, f *flight, p *understudy.Page) bool {
	switch {
	case p.NotStored != "":
		return false
	case p.Status == 200, p.Status == 206 && f.origin.target.List != nil: // PostgREST sends 206 for a list that has more pages
		return true
	case p.Status != 404 && p.Status != 410:
		return false
	case f.origin.target.Instance == nil:
		return true
	}
	// Upstream also answers 404 if the path names another account than the record's, and if it has dropped the record
	// by itself. In these cases the 404 is only passed on, and the stored record stays.
	rec := fl.holdings.knownRecord(ctx, f.origin.source, f.origin.target.Kind, f.origin.target.ID)
	return rec == nil || compose.IsUnderTarget(f.origin.target, rec.Body) && !fl.isExpired(ctx, f.origin.kind, rec)
}

// save passes the pending writes of the kind to the store and then stores a page. The caller holds the lock of the kind.
func (wr *writer) save(ctx context.Context, k *kind, p *understudy.Page) (request.SaveResult, error) {
	if err := wr.flush(ctx, k); err != nil {
		return request.SaveResult{}, wr.saving.noteFailure(wr.entries.env, err)
	}
	saved, err := wr.env.store.Save(ctx, p)
	switch {
	case errors.Is(err, understudy.ErrNotStored) && errors.Is(err, context.DeadlineExceeded):
		wr.saving.pausePage(p.RequestKey(), wr.env.now()) // other pages can still be saved, so only this page is paused
		return saved, err
	case err != nil && !errors.Is(err, understudy.ErrOutdated):
		return saved, wr.saving.noteFailure(wr.entries.env, err)
	}
	wr.saving.noteSuccess(wr.entries.env)
	return saved, err
}

// putPage puts a page into memory. The page is encoded at once if it replaces an encoded page, if it is polled, or if
// several readers waited for it.
func (fl *filler) putPage(f *flight, p *understudy.Page, before int64) {
	fl.flights.Lock()
	readers := f.waiting.readers
	fl.flights.Unlock()
	if f.origin.recordsOnly || f.origin.isFill && readers == 0 && !fl.entries.isWanted(p.Key, f.origin.source) {
		return
	}
	if p.Status == http.StatusAccepted || p.NotStored == understudy.NotStoredError {
		return // upstream has no answer yet, so the next reader must ask again
	}
	h := storedPage{page: p, fresh: fl.env.ages().pageFreshTime(f.origin.target, p), bounds: upstreamBounds(p), stored: f.result.stored}
	if h.bounds != nil && h.bounds.NoStore {
		return
	}
	e := fl.entries.packEntry(f.origin.kind, f.origin.target, &h)
	if e == nil {
		fl.entries.hot.Forget(fl.entries.hot.Hash(p.Key))
		return
	}
	var r *cache.Encoded
	if e.Polled || readers > 1 || fl.entries.hot.IsReady(e.Hash) {
		r = fl.entries.hot.Encode(p)
	}
	if fl.entries.hot.Put(e, r) && (f.origin.kind.writes.Changes() != before || f.isInvalidated()) {
		fl.entries.hot.Drop(e)
	}
}

// isWanted reports whether a page that nobody has requested should be in memory.
func (es *entries) isWanted(key understudy.Key, s *source) bool {
	return es.hot.Find(key) != nil || s.polls()[key] != nil
}

// noteUnsaved notes that the page of a flight could not be saved.
func (fl *filler) noteUnsaved(f *flight, err error) {
	f.origin.source.counts.notStored.Add(1)
	f.result.saveErr, f.result.detail = err, "not stored: "+shortReason(err)
}

// shortReason returns the end of an error: the reason that the store gives, or the text after the last colon.
func shortReason(err error) string {
	text := err.Error()
	var reason interface{ ShortString() string }
	if errors.As(err, &reason) {
		text = reason.ShortString()
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
