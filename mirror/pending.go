// Pending invalidations: what the store has to be told of writes, until it has been.
//
//	write's answer --> owed --> saved --> touched --> forgotten
//	                    ^         |          |
//	                    '---------'----------'  the store refuses: tried again by
//	                                            itself, and before anything else
//	                                            of the kind is saved

package mirror

import (
	"context"
	"errors"
	"time"

	"understudy"
	"understudy/kit/retry"
	"understudy/request"
)

// writer tells the store what is saved and what is old, one kind at a time.
type writer struct {
	env     *env
	entries *entries
	saving  saving
	tell    func(request.PageSaved)              // may be nil
	confirm func(k *kind, id string, end func()) // fetches a record until upstream has told of it, and calls end then
	owing   chan struct{}                        // something is owed to the store
}

const maxRepay = 15 * time.Second

// flush tells the store of every write it has not been told of; the caller has
// the kind's lock. Afterwards the store's generation is not below the mirror's,
// or a page kept under the mirror's would look too new after a restart.
func (wr *writer) flush(ctx context.Context, k *kind) error {
	generation := k.writes.Generation()
	all, told := k.writes.Pending(), int64(0)
	touch := func(id string) (err error) {
		told, err = wr.env.store.Touch(ctx, request.Invalidation{Source: k.source.config.Name, Kind: k.name, ID: id})
		k.writes.Reached(told)
		return err
	}
	for _, d := range all {
		for _, p := range d.Shows {
			kept, err := wr.show(ctx, k, d.ID, p)
			if err != nil {
				return err
			}
			k.writes.Shown(d.ID, kept)
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
	for _, d := range all { // last: until then the store is told again
		k.writes.Told(d.ID, d.Generation, func(end func()) { wr.confirm(k, d.ID, end) })
	}
	return nil
}

// show saves what a write's own answer shows, whatever else was written
// meanwhile. A page that the store can never keep is not kept, which is no error: its record is fetched instead.
func (wr *writer) show(ctx context.Context, k *kind, id string, p *understudy.Page) (kept bool, err error) {
	saved, err := wr.env.store.Save(ctx, p)
	var fault interface{ Short() string }
	switch {
	case err == nil:
		wr.news(k, saved)
		return true, nil
	case errors.Is(err, understudy.ErrNotStored) && !errors.As(err, &fault), errors.Is(err, understudy.ErrInvalid):
		wr.env.log.Warn("mirror: what a write's answer shows cannot be kept, its record is fetched",
			"source", k.source.config.Name, "kind", k.name, "id", id, "error", err)
		return false, nil
	}
	return false, err
}

// news makes held pages old that show what a saved page without a key changed,
// and tells of it. The caller has the kind's lock.
func (wr *writer) news(k *kind, saved request.Saved) {
	wr.entries.supersede(k, saved.Page.Shape, saved.Changes, understudy.Key{})
	wr.pageSaved(saved.Page, saved.Changes, request.Waiting)
}

// recallIntents makes old what the writes of a killed process may have changed.
func (iv *invalidator) recallIntents() {
	if iv.env.intents == nil {
		return
	}
	numbers, touched := iv.env.intents.Left()
	for i, t := range touched {
		if s := iv.env.sources[t.Source]; s != nil && s.kinds[t.Kind] != nil {
			s.kinds[t.Kind].writes.Recall(iv.env.now(), t.ID, numbers[i])
		} else {
			iv.env.intents.End(numbers[i])
		}
	}
}

// flushSoon has the pending invalidations written by themselves.
func (wr *writer) flushSoon() {
	select {
	case wr.owing <- struct{}{}:
	default:
	}
}

// flusher tells the store what it refused, until it takes it.
func (wr *writer) flusher() {
	for {
		select {
		case <-wr.env.ctx.Done():
			return
		case <-wr.owing:
		}
		for before := 0; wr.flushAll(wr.env.ctx) > 0; before++ {
			if retry.Sleep(wr.env.ctx, retry.Backoff(time.Second, maxRepay, before)) != nil {
				return
			}
		}
	}
}

// flushAll tries to repay every kind's pending invalidations once and counts what is left.
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
				wr.saving.works(wr.entries.env)
			}
			left += len(k.writes.Pending())
		}
	}
	return left
}

// flushLast tries once more when the mirror has ended, and says what is lost.
func (wr *writer) flushLast() {
	ctx, cancel := context.WithTimeout(context.Background(), saveTime)
	defer cancel()
	if left := wr.flushAll(ctx); left > 0 {
		wr.env.log.Error("mirror: the store was not told of all that was written; a sweep or a read will find out", "records", left)
	}
}
