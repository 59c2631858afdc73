// Pending invalidations: writes that the store has not recorded yet.
//
// After a write's response, its version is saved, its record is touched, and the write is removed from the
// pending ones. If the store refuses, all steps are tried again, in the background and before anything else
// of the kind is saved.

package mirror

import (
	"context"
	"errors"
	"time"

	"understudy"
	"understudy/kit/retry"
	"understudy/request"
)

// writer saves pages and records invalidations in the store, one kind at a time.
type writer struct {
	env         *env
	entries     *entries
	saving      saveState
	onSaved     func(request.PageSaved)              // Options.PageSaved; may be nil
	confirm     func(k *kind, id string, end func()) // fetches a record until upstream shows the write, then calls end
	flushNeeded chan struct{}                        // signals that invalidations are pending
}

const maxFlushDelay = 15 * time.Second

// flush passes all pending writes to the store. The caller has the kind's lock. Afterwards the store's
// generation is not below the mirror's. Otherwise a page saved under the mirror's generation would look too
// new after a restart.
func (wr *writer) flush(ctx context.Context, k *kind) error {
	generation := k.writes.Generation()
	all, told := k.writes.Pending(), int64(0)
	touch := func(id string) (err error) {
		told, err = wr.env.store.Touch(ctx, request.Invalidation{Source: k.source.config.Name, Kind: k.name, ID: id})
		k.writes.AdvanceTo(told)
		return err
	}
	for _, d := range all {
		for _, p := range d.Versions {
			kept, err := wr.show(ctx, k, d.ID, p)
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
		if err := touch(""); err != nil {
			return err
		}
	}
	for _, d := range all { // comes last: until then flush tries the store again
		k.writes.NoteTold(d.ID, d.Generation, func(end func()) { wr.confirm(k, d.ID, end) })
	}
	return nil
}

// show saves the version that a write's response shows, whatever was written meanwhile. kept is false,
// without an error, if the store can never keep this page. The record is then fetched instead.
func (wr *writer) show(ctx context.Context, k *kind, id string, p *understudy.Page) (kept bool, err error) {
	saved, err := wr.env.store.Save(ctx, p)
	var fault interface{ ShortString() string }
	switch {
	case err == nil:
		wr.publishChanges(k, saved)
		return true, nil
	case errors.Is(err, understudy.ErrNotStored) && !errors.As(err, &fault), errors.Is(err, understudy.ErrInvalid):
		wr.env.log.Warn("mirror: what a write's answer shows cannot be kept, its record is fetched",
			"source", k.source.config.Name, "kind", k.name, "id", id, "error", err)
		return false, nil
	}
	return false, err
}

// publishChanges marks pages that show the changed records as superseded and reports the save. The saved page
// has no key. The caller has the kind's lock.
func (wr *writer) publishChanges(k *kind, saved request.SaveResult) {
	wr.entries.markSuperseded(k, saved.Page.Shape, saved.Changes, understudy.Key{})
	wr.notifySaved(saved.Page, saved.Changes, request.ReasonWaiting)
}

// restoreIntents marks records as pending that writes of a killed process may have changed.
func (iv *invalidator) restoreIntents() {
	if iv.env.intents == nil {
		return
	}
	numbers, touched := iv.env.intents.UnendedWrites()
	for i, t := range touched {
		if s := iv.env.sources[t.Source]; s != nil && s.kinds[t.Kind] != nil {
			s.kinds[t.Kind].writes.Restore(iv.env.now(), t.ID, numbers[i])
		} else {
			iv.env.intents.End(numbers[i])
		}
	}
}

// flushSoon wakes runFlush.
func (wr *writer) flushSoon() {
	select {
	case wr.flushNeeded <- struct{}{}:
	default:
	}
}

// runFlush flushes pending invalidations, with retries until the store accepts them.
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

// flushAll tries once to flush the pending invalidations of all kinds. It returns how many are left.
func (wr *writer) flushAll(ctx context.Context) (left int) {
	ctx, cancel := context.WithTimeout(ctx, touchTime)
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

// flushLast flushes once more after the mirror has ended, and logs what is lost.
func (wr *writer) flushLast() {
	ctx, cancel := context.WithTimeout(context.Background(), saveTime)
	defer cancel()
	if left := wr.flushAll(ctx); left > 0 {
		wr.env.log.Error("mirror: the store was not told of all that was written; a sweep or a read will find out", "records", left)
	}
}
