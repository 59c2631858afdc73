// Pending invalidations: writes of which the store does not know yet.
//
// After the response to a write, the version in the response is saved, the store marks the record as invalid, and the
// write is removed from the pending ones. If the store fails, all of this is tried again: in the background, and
// before anything else of the kind is saved.

package mirror

import (
	"context"
	"errors"
	"time"

	"understudy"
	"understudy/kit/retry"
	"understudy/request"
)

// writer saves pages, and stores which records writes have made invalid. It does so for each kind one at a time.
type writer struct {
	env         *env
	entries     *entries
	saving      saveState
	onSaved     func(request.PageSaved)              // the function Options.PageSaved; nil if there is none
	confirm     func(k *kind, id string, end func()) // fetches a record until upstream shows the result of a write, then calls end
	flushNeeded chan struct{}                        // receives a value when there are pending invalidations
}

const maxFlushDelay = 15 * time.Second

// flush passes all pending writes to the store. The caller holds the lock of the kind. Afterwards the store's
// generation is at least as high as the mirror's. Otherwise a page saved with the mirror's generation would seem
// newer than it is after a restart.
func (wr *writer) flush(ctx context.Context, k *kind) error {
	generation := k.writes.Generation()
	all, told := k.writes.Pending(), int64(0)
	touch := func(id string) (err error) {
		told, err = wr.env.store.Touch(ctx, request.Invalidation{Source: k.source.config.Name, Kind: k.name, ID: id})
		if err == nil && k.writes.AdvanceTo(wr.env.now(), told, 1) {
			wr.entries.dropSource(k.source)
		}
		return err
	}
	for _, d := range all {
		for _, p := range d.Versions {
			kept, err := wr.saveWritten(ctx, k, d.ID, p)
			if err != nil {
				return err
			}
			k.writes.RemoveShown(d.ID, kept)
		}
		if err := touch(d.ID); err != nil {
			return err
		}
	}
	for len(all) > 0 && told < generation {
		if err := touch(all[0].ID); err != nil { // there were several writes to a record
			return err
		}
	}
	for _, d := range all { // this is last, because the writes must stay pending until all steps have succeeded
		k.writes.NoteStored(d.ID, d.Generation, func(end func()) { wr.confirm(k, d.ID, end) })
	}
	return nil
}

// saveWritten saves the version of a record that is in the response to a write, whatever was written in the meantime. If the
// store can never store this version, kept is false and err is nil. The record is then fetched instead.
func (wr *writer) saveWritten(ctx context.Context, k *kind, id string, p *understudy.Page) (kept bool, err error) {
	saved, err := wr.env.store.Save(ctx, p)
	var fault interface{ ShortString() string }
	switch {
	case err == nil:
		wr.publishChanges(k, saved)
		return true, nil
	case errors.Is(err, understudy.ErrNotStored) && !errors.As(err, &fault), errors.Is(err, understudy.ErrInvalid):
		wr.env.log.Warn("mirror: the answer of a write could not be saved; its record is fetched",
			"source", k.source.config.Name, "kind", k.name, "id", id, "error", err)
		return false, nil
	}
	return false, err
}

// publishChanges marks pages that show changed records as outdated, and calls PageSaved. saved has no key. The caller
// holds the lock of the kind.
func (wr *writer) publishChanges(k *kind, saved request.SaveResult) {
	wr.entries.markSuperseded(k, saved.Page.Shape, saved.Changes, understudy.Key{})
	wr.notifySaved(saved.Page, saved.Changes, request.ReasonWaiting)
}

// restoreIntents marks the records as pending that writes may have changed before the process was killed.
func (iv *invalidator) restoreIntents() {
	if iv.env.intents == nil {
		return
	}
	numbers, touched := iv.env.intents.UnendedWrites()
	for i, t := range touched {
		if !iv.restore(t, numbers[i]) {
			iv.env.intents.End(numbers[i])
		}
	}
}

// restore marks a record as pending that a write may have changed. It returns false if the mirror does not have the kind.
func (iv *invalidator) restore(t request.Invalidation, intent int64) bool {
	s := iv.env.sources[t.Source]
	if s == nil || s.kinds[t.Kind] == nil {
		return false
	}
	s.kinds[t.Kind].writes.Restore(iv.env.now(), t.ID, intent)
	iv.entries.dropTouched(s.kinds[t.Kind], t.ID)
	understudy.Wake(iv.writer.flushNeeded)
	return true
}

// RecheckWrite notes that another process has sent a write, and that the store may not know its result. It does not wait.
func (m *Mirror) RecheckWrite(t request.Invalidation) { m.invalidator.restore(t, 0) }

// Flush passes the pending writes to the store.
func (m *Mirror) Flush(ctx context.Context) { m.writer.flushAll(ctx) }

// runFlush flushes pending invalidations. If that fails, it tries again until the store accepts them.
func (wr *writer) runFlush() {
	for {
		select {
		case <-wr.env.ctx.Done():
			return
		case <-wr.flushNeeded:
		}
		for before := 0; wr.flushAll(wr.env.ctx) > 0; before++ {
			if retry.Wait(wr.env.ctx, retry.Backoff(time.Second, maxFlushDelay, before)) != nil {
				return
			}
		}
	}
}

// flushAll flushes the pending invalidations of all kinds once. It returns how many are still pending.
func (wr *writer) flushAll(ctx context.Context) (left int) {
	ctx, cancel := context.WithTimeout(ctx, maxTouchTime)
	defer cancel()
	for _, s := range wr.env.sources {
		for _, k := range s.kinds {
			if len(k.writes.Pending()) == 0 {
				continue
			}
			err := k.lock(ctx)
			if err == nil {
				err = wr.flush(ctx, k)
				k.unlock()
			}
			if err == nil {
				wr.saving.noteSuccess(wr.entries.env)
			}
			left += len(k.writes.Pending())
		}
	}
	return left
}
