// This file reads new changes and finds the watches whose search they match.

package watch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/retry"
)

// The intervals of Run and of saving.
const (
	pollInterval    = 3 * time.Second // the maximum time between two reads of the changes
	minPollInterval = time.Second     // the minimum time between two reads of the changes
	saveInterval    = time.Minute     // the time between two saves of the positions in the changes
	enqueueInterval = time.Minute     // the time after which a job that may have been lost is added again
	ownerInterval   = time.Hour       // the time after which the stored time of an owner's last request is updated
)

// Run reads new changes and adds jobs that send matches, until ctx ends.
func (b *Book) Run(ctx context.Context) error {
	look := time.NewTicker(pollInterval)
	defer look.Stop()
	saved, failing := b.o.Now(), false
	for {
		var err error
		if b.o.IsLeader == nil || b.o.IsLeader() {
			err = b.readChanges(ctx)
		}
		if err != nil && ctx.Err() == nil && !failing {
			b.o.Logger.Error("watch: the changes could not be read", "err", err)
		}
		failing = err != nil
		if now := b.o.Now(); now.Sub(saved) >= saveInterval {
			saved = now
			b.save(ctx)
		}
		_ = retry.Wait(ctx, minPollInterval)
		select {
		case <-b.wake:
		case <-look.C:
		case <-ctx.Done():
			b.save(context.WithoutCancel(ctx))
			return nil
		}
	}
}

// NoteOwner notes that an owner made a request, and the owner's current role. It returns quickly for callers
// without a watch and does not write to the store itself.
func (b *Book) NoteOwner(c understudy.Caller) {
	if !(*b.owners.Load())[c.Name] || c.Grant.IssuedBy == understudy.IssuedByViewAs {
		return
	}
	for _, e := range b.entries() {
		e.mu.Lock()
		o := e.owner()
		if isOwner(&e.kept.Watch, c) && (b.o.Now().Sub(o.LastSeen) >= ownerInterval || o.Role != c.Role()) {
			o = b.policy.Load().Owners.Owner(c)
			e.noted = &o
		}
		e.mu.Unlock()
	}
}

// watcher is an active watch with its compiled search and the current rights of its owner.
type watcher struct {
	entry   *entry
	caller  understudy.Caller
	request query.SearchRequest
	test    func(*understudy.Record) bool
	from    int64 // the position from which the watch tests the present page of changes
}

// readChanges tests all changes since the last call against the watches, and adds jobs for the matches.
func (b *Book) readChanges(ctx context.Context) error {
	var all []*watcher
	for _, e := range b.entries() {
		w, err := b.newWatcher(ctx, e)
		if err != nil {
			return err
		}
		if w != nil && w.entry.hasRoom() {
			all = append(all, w)
		}
	}
	var errs []error
	for _, src := range b.o.Sources {
		if len(all) > 0 {
			errs = append(errs, b.follow(ctx, src.Name, slices.Clone(all)))
		}
	}
	return errors.Join(append(errs, b.enqueue(ctx))...)
}

// newWatcher returns a watch with the current rights of its owner, or nil if the watch is stopped. If the owner may
// no longer run the search, it stops the watch.
func (b *Book) newWatcher(ctx context.Context, e *entry) (*watcher, error) {
	e.mu.Lock()
	stopped, owner, name := e.kept.Stopped != "" || e.removed, e.owner(), e.kept.Search
	e.mu.Unlock()
	if stopped {
		return nil, nil
	}
	p := b.policy.Load()
	stop := func(format string, args ...any) (*watcher, error) {
		why := fmt.Sprintf(format, args...)
		b.o.Logger.Warn("watch stopped", "watch", e.id, "why", why)
		err := b.stopWatch(ctx, e, why, false)
		if errors.Is(err, understudy.ErrNotFound) {
			err = nil
		}
		return nil, err
	}
	c, ok := p.Owners.Resolve(owner)
	if !ok {
		return stop("%s no longer has access, or has not signed in for %d days.", owner.Name, int(understudy.OwnerLifetime.Hours()/24))
	}
	saved, err := p.Search.FindSaved(ctx, owner.Name, name)
	if errors.Is(err, understudy.ErrNotFound) {
		return stop("The saved search “%s” no longer exists.", name)
	}
	if err != nil {
		return nil, err
	}
	w := &watcher{entry: e, caller: c, request: saved.Request}
	if w.test, err = p.Search.CompileTest(c, w.request); err != nil {
		if errors.Is(err, understudy.ErrForbidden) || errors.Is(err, understudy.ErrInvalid) {
			return stop("The role %s can no longer run this search.", c.Role())
		}
		return nil, err
	}
	return w, nil
}

// follow tests the changes of a source page by page until the last change. Watches that are ahead of other watches
// wait for them.
func (b *Book) follow(ctx context.Context, source string, all []*watcher) error {
	for len(all) > 0 && ctx.Err() == nil {
		after := int64(math.MaxInt64)
		for _, w := range all {
			w.from = w.entry.readPosition(source)
			after = min(after, w.from)
		}
		page, err := b.o.Records.ReadChanges(ctx, source, after, changesPerRead)
		if err != nil || len(page) == 0 {
			return err
		}
		s := pageFilter{b: b, source: source, watchers: all, found: map[*watcher][]match{}}
		if err := s.findMatches(ctx, page); err != nil {
			return err
		}
		last := page[len(page)-1].N
		for _, w := range all {
			if err := b.advance(ctx, w, source, last, s.found[w]); err != nil {
				return err
			}
		}
		all = slices.DeleteFunc(all, func(w *watcher) bool { return !w.entry.hasRoom() })
	}
	return ctx.Err()
}

// advance moves a watch to a change and adds the matches found up to that change. If there is no match, the new
// position stays only in memory, so after a crash the same changes are tested again. If another process has moved the
// watch meanwhile, the matches are dropped, because they may be among those of the other process. Then the watch is tested
// again from its new position.
func (b *Book) advance(ctx context.Context, w *watcher, source string, to int64, found []match) error {
	if to <= w.from {
		return nil
	}
	if len(found) == 0 {
		w.entry.setPosition(source, to)
		return nil
	}
	at := w.from
	err := b.update(ctx, w.entry, func(k *kept) {
		if at = k.At[source]; at > w.from || len(k.Pending)+len(found) > maxPending {
			return
		}
		if k.Stopped == "" {
			k.Pending = append(k.Pending, found...)
		}
		at = to
		k.At = newerPositions(k.At, map[string]int64{source: to})
	})
	if err == nil {
		w.entry.setPosition(source, at)
	}
	if errors.Is(err, understudy.ErrNotFound) {
		w.entry.setPosition(source, to) // the watch was removed
		return nil
	}
	return err
}

func (b *Book) enqueue(ctx context.Context) error {
	for _, e := range b.entries() {
		e.mu.Lock()
		due := len(e.kept.Pending) > 0 && e.kept.Stopped == "" && !e.removed
		e.mu.Unlock()
		if !due {
			continue
		}
		if err := e.line.Enqueue(ctx, b.o.Enqueue, Kind, e.id, b.o.Now(), enqueueInterval); err != nil {
			return err
		}
	}
	return nil
}
