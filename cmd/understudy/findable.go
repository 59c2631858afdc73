// Findable: what the gate looks up for row rules: our own numbers, and the
// newest version of a record.

package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/kit/jsonspan"
)

// owned are the numbers of our own that are held, by source, in memory.
type owned struct {
	sets  map[string]*atomic.Pointer[map[string]bool]
	stale chan struct{} // told when they may have changed
}

// ownedEvery is how often own numbers are read without being told to.
const ownedEvery = time.Minute

// lookTime bounds one look into the store for a row rule.
const lookTime = 5 * time.Second

func newOwned() owned {
	return owned{sets: map[string]*atomic.Pointer[map[string]bool]{}, stale: make(chan struct{}, 1)}
}

// is reports whether a number, as access.Number writes it, is one of ours.
func (o *owned) is(source, number string) bool {
	if set := o.sets[source]; set != nil {
		if all := set.Load(); all != nil {
			return (*all)[number]
		}
	}
	return false
}

// openOwned reads the numbers, and listens for pages that show them.
func (h *house) openOwned(ctx context.Context) error {
	for _, src := range h.sources {
		h.owned.sets[src.Name] = &atomic.Pointer[map[string]bool]{}
	}
	h.landed.Subscribe(func(_ context.Context, l understudy.Landed) error {
		if k := h.kindOf(l.Page.Key.Source, l.Page.Kind); k != nil && k.Own != "" {
			select {
			case h.owned.stale <- struct{}{}:
			default:
			}
		}
		return nil
	})
	return h.readOwned(ctx)
}

// keepOwned reads them again when they may have changed, until ctx ends.
func (h *house) keepOwned(ctx context.Context) error {
	every := time.NewTicker(ownedEvery)
	defer every.Stop()
	for {
		select {
		case <-h.owned.stale:
		case <-every.C:
		case <-ctx.Done():
			return nil
		}
		if err := h.readOwned(ctx); err != nil && ctx.Err() == nil {
			h.log.Error("own numbers cannot be read; row rules go by the former ones", "err", err)
		}
	}
}

// readOwned reads the numbers of every source.
func (h *house) readOwned(ctx context.Context) error {
	for _, src := range h.sources {
		all := map[string]bool{}
		for _, k := range src.Spec.Kinds {
			if k.Own == "" {
				continue
			}
			for _, shape := range shapesOf(k) {
				w := understudy.Window{Source: src.Name, Kind: k.Name, Shape: shape}
				for _, w.Unclocked = range []bool{false, true} {
					err := h.db.RecordsAt(ctx, w, time.Time{}, func(rec *understudy.Record, _ int64) bool {
						if n := fieldOf(rec.Body, k.Own); n != "" {
							all[access.Number(n)] = true
						}
						return true
					})
					if err != nil {
						return err
					}
				}
			}
		}
		h.owned.sets[src.Name].Store(&all)
	}
	return nil
}

// fieldOf is the text of a field of a record, "" when it has none.
func fieldOf(body []byte, name string) string {
	doc, err := jsonspan.Document(body)
	if err != nil {
		return ""
	}
	v, ok := jsonspan.Find(body, doc, name)
	if !ok || v.Kind != jsonspan.String {
		return ""
	}
	return jsonspan.Text(body, v)
}

// kindOf is a kind of a source, nil when there is none of the name.
func (h *house) kindOf(source, kind string) *understudy.Kind {
	for _, src := range h.sources {
		if src.Name == source {
			return src.Spec.Kind(kind)
		}
	}
	return nil
}

// shapesOf are the shapes of a kind, those of lists first.
func shapesOf(k *understudy.Kind) (all []string) {
	seen := map[string]bool{}
	add := func(shape string) {
		if !seen[shape] {
			seen[shape] = true
			all = append(all, shape)
		}
	}
	for _, l := range k.Lists {
		add(l.Shape)
	}
	for _, in := range k.Instances {
		add(in.Shape)
	}
	return all
}

// newest is the version of a record that upstream showed last, in whichever
// shape; nil when none is held, it is gone, or the store cannot be read: what
// cannot be looked up nobody finds.
func (h *house) newest(source, kind, id string) *understudy.Record {
	k := h.kindOf(source, kind)
	if k == nil || h.db == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	var best *understudy.Record
	for _, shape := range shapesOf(k) {
		rec, err := h.db.Record(ctx, source, kind, shape, id)
		switch {
		case errors.Is(err, understudy.ErrNotFound):
		case err != nil:
			h.log.Error("a record could not be looked up for a row rule", "kind", kind, "err", err)
			return nil
		case best == nil || rec.Seen.After(best.Seen):
			best = rec
		}
	}
	return best
}

// pastOf is how many versions are looked through for the last one of a record
// that is gone.
const pastOf = 8

// last is newest, or the last version of a record that is gone.
func (h *house) last(source, kind, id string) *understudy.Record {
	if rec := h.newest(source, kind, id); rec != nil || h.db == nil {
		return rec
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	versions, err := h.db.History(ctx, source, kind, id, pastOf)
	if err != nil {
		return nil
	}
	for _, v := range versions {
		if !v.Gone && v.Body != nil {
			return &understudy.Record{Source: source, Kind: kind, Shape: v.Shape, ID: id, Version: v.Number, Body: v.Body}
		}
	}
	return nil
}
