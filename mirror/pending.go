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
	tell    func(request.PageSaved)                // may be nil
	confirm func(k *kind, id string, ended func()) // has a record fetched until upstream has told of it; then ended is called
	owing   chan struct{}                          // something is owed to the store
}

const maxRepay = 15 * time.Second

// unflushed reports whether the store has not yet been told that the record is
// invalid.
func (k *kind) unflushed(id string) bool {
	return k.pending.Has(id)
}

// flush tells the store of every write it has not been told of; the caller has
// the kind's lock. Afterwards the store's generation is not below the mirror's,
// or a page kept under the mirror's would look too new after a restart.
func (wr *writer) flush(ctx context.Context, k *kind) error {
	generation := k.counters.generation.Load()
	all := k.pending.All()
	for _, d := range all {
		for _, p := range d.Shows {
			if err := wr.show(ctx, k, d.ID, p); err != nil {
				return err
			}
			k.pending.Shown(d.ID)
		}
		n, err := wr.env.store.Touch(ctx, request.Invalidation{Source: k.source.config.Name, Kind: k.name, ID: d.ID})
		if err != nil {
			return err
		}
		k.reached(n)
		k.pending.Flushed(d.ID, d.Generation)
	}
	for len(all) > 0 && k.counters.known.Load() < generation {
		n, err := wr.env.store.Touch(ctx, request.Invalidation{Source: k.source.config.Name, Kind: k.name})
		if err != nil {
			return err
		}
		k.reached(n)
	}
	return nil
}

// show saves what a write's own answer shows, whatever else was written
// meanwhile. A page the store can never keep is no pending invalidation: its record is fetched
// instead.
func (wr *writer) show(ctx context.Context, k *kind, id string, p *understudy.Page) error {
	saved, err := wr.env.store.Save(ctx, p)
	var fault interface{ Short() string }
	switch {
	case err == nil:
		wr.news(k, saved)
	case errors.Is(err, understudy.ErrNotStored) && !errors.As(err, &fault), errors.Is(err, understudy.ErrInvalid):
		wr.env.log.Warn("mirror: what a write's answer shows cannot be kept, its record is fetched",
			"source", k.source.config.Name, "kind", k.name, "id", id, "error", err)
		wr.confirm(k, id, func() {})
	default:
		return err
	}
	return nil
}

// news makes held pages old that show what a saved page without a key changed,
// and tells of it. The caller has the kind's lock.
func (wr *writer) news(k *kind, saved request.Saved) {
	wr.entries.supersede(k, saved.Page.Shape, saved.Changes, understudy.Key{})
	wr.pageSaved(saved.Page, saved.Changes, request.Waiting)
}

// reached notes the store's generation.
func (k *kind) reached(generation int64) {
	k.counters.known.Store(generation)
	k.invalidations.Raise(&k.counters.generation, generation)
}

// Intents remember the writes under way where a crash does not take them.
type Intents interface {
	// Begin notes a write before it is passed on; its number ends it.
	Begin(request.Invalidation) (n int64, err error)
	// End notes that the store was told of the write, or that there was none.
	End(n int64)
	// Left are the writes that have not ended, by number.
	Left() (numbers []int64, touched []request.Invalidation)
}

// leftover is a record that a write of a process that was killed may have changed.
type leftover struct {
	kind *kind
	id   string
	end  func()
}

// recallIntents makes old what the writes of a killed process may have changed.
func (iv *invalidator) recallIntents(intents Intents) {
	if iv.intents = intents; intents == nil {
		return
	}
	numbers, touched := intents.Left()
	for i, t := range touched {
		end := func() { intents.End(numbers[i]) }
		s := iv.env.sources[t.Source]
		if s == nil || s.kinds[t.Kind] == nil {
			end()
			continue
		}
		k := s.kinds[t.Kind]
		generation := k.invalidations.Touch(&k.counters.generation, t.ID)
		k.recentWrites.Note(iv.env.now(), t.ID)
		if t.ID == "" {
			k.pending.Add("", generation, nil, end)
			continue
		}
		k.pending.Add(t.ID, generation, nil, func() {})
		iv.leftovers = append(iv.leftovers, leftover{k, t.ID, end})
	}
}

// confirmLeft has upstream asked for what they may have changed.
func (iv *invalidator) confirmLeft() {
	for _, l := range iv.leftovers {
		iv.writer.confirm(l.kind, l.id, l.end)
	}
	iv.leftovers = nil
	iv.writer.flushSoon()
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
			if len(k.pending.All()) == 0 {
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
			left += len(k.pending.All())
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
