// Look: what changed, and which watches it concerns.

package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/retry"
)

// How often watches look.
const (
	lookEvery = 3 * time.Second // without being told
	lookPause = time.Second     // at least, between two looks
	saveEvery = time.Minute     // places in the changes
	askEvery  = time.Minute     // a job that may be lost is asked for again
	seenEvery = time.Hour       // the last request of an owner is noted
)

// Run looks at what changes and has it told, until ctx ends.
func (b *Book) Run(ctx context.Context) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	saved, failing := b.o.Now(), false
	for {
		err := b.look(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			b.o.Logger.Error("watch: look at changes", "err", err)
		}
		failing = err != nil
		if now := b.o.Now(); now.Sub(saved) >= saveEvery {
			saved = now
			b.save(ctx)
		}
		_ = retry.Sleep(ctx, lookPause)
		select {
		case <-b.wake:
		case <-look.C:
		case <-ctx.Done():
			b.save(context.WithoutCancel(ctx))
			return nil
		}
	}
}

// save writes what is newer in memory: where watches stand, and when owners were here.
func (b *Book) save(ctx context.Context) {
	for _, e := range b.entries() {
		e.mu.Lock()
		dirty := e.dirty
		e.mu.Unlock()
		if !dirty {
			continue
		}
		if err := b.change(ctx, e, func(*kept) {}); err != nil && !errors.Is(err, understudy.ErrNotFound) {
			b.o.Logger.Warn("watch: save", "watch", e.id, "err", err)
		}
	}
}

// Seen notes that an owner is here, with the role it has. It is cheap for anybody else and
// writes nothing itself.
func (b *Book) Seen(c understudy.Caller) {
	if !(*b.owners.Load())[c.Name] || c.Grant.IssuedBy == understudy.IssuedByViewAs {
		return
	}
	for _, e := range b.entries() {
		e.mu.Lock()
		o := &e.kept.Owner
		if owns(&e.kept.Watch, c) && (b.o.Now().Sub(o.LastSeen) >= seenEvery || o.Role != c.Role()) {
			*o, e.dirty = b.policy.Load().Owners.Owner(c), true
		}
		e.mu.Unlock()
	}
}

// watcher is a watch that looks, as its owner may now.
type watcher struct {
	entry   *entry
	caller  understudy.Caller
	request query.SearchRequest
	test    func(*understudy.Record) bool
}

// look looks at all changes since the last look, and asks for the jobs that tell.
func (b *Book) look(ctx context.Context) error {
	var all []*watcher
	for _, e := range b.entries() {
		w, err := b.watcher(ctx, e)
		if err != nil {
			return err
		}
		if w != nil && w.entry.room() {
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

// watcher is a watch with the rights its owner has now, nil when it is stopped. One whose
// owner may not search so any more is stopped.
func (b *Book) watcher(ctx context.Context, e *entry) (*watcher, error) {
	e.mu.Lock()
	stopped, owner, name := e.kept.Stopped != "" || e.gone, e.kept.Owner, e.kept.Search
	e.mu.Unlock()
	if stopped {
		return nil, nil
	}
	p := b.policy.Load()
	stop := func(format string, args ...any) (*watcher, error) {
		why := fmt.Sprintf(format, args...)
		b.o.Logger.Warn("watch stopped", "watch", e.id, "why", why)
		err := b.stop(ctx, e, why, false)
		if errors.Is(err, understudy.ErrNotFound) {
			err = nil
		}
		return nil, err
	}
	c, ok := p.Owners.Resolve(owner)
	if !ok {
		return stop("%s may not come in any more, or was not here for %d days.", owner.Name, int(understudy.OwnerLifetime.Hours()/24))
	}
	saved, err := p.Search.FindSaved(ctx, owner.Name, name)
	if errors.Is(err, understudy.ErrNotFound) {
		return stop("There is no saved search “%s” any more.", name)
	}
	if err != nil {
		return nil, err
	}
	w := &watcher{entry: e, caller: c, request: saved.Request}
	if w.test, err = p.Search.CompileTest(c, w.request); err != nil {
		if errors.Is(err, understudy.ErrForbidden) || errors.Is(err, understudy.ErrInvalid) {
			return stop("The role %s may not search so any more.", c.Role())
		}
		return nil, err
	}
	return w, nil
}

// room reports whether all of a page may match.
func (e *entry) room() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.kept.Pending)+pageSize <= mostPending
}

// place is the last change of a source that an entry has looked at.
func (e *entry) place(source string) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.at[source]
}

// follow brings watches to the last change of a source, page by page. One that is ahead of
// others waits for them.
func (b *Book) follow(ctx context.Context, source string, all []*watcher) error {
	for len(all) > 0 && ctx.Err() == nil {
		after := all[0].entry.place(source)
		for _, w := range all {
			after = min(after, w.entry.place(source))
		}
		page, err := b.o.Records.ReadChanges(ctx, source, after, pageSize)
		if err != nil || len(page) == 0 {
			return err
		}
		s := sifting{b: b, source: source, watchers: all, found: map[*watcher][]match{}}
		if err := s.sift(ctx, page); err != nil {
			return err
		}
		last := page[len(page)-1].N
		for _, w := range all {
			if err := b.advance(ctx, w, source, last, s.found[w]); err != nil {
				return err
			}
		}
		all = slices.DeleteFunc(all, func(w *watcher) bool { return !w.entry.room() })
	}
	return ctx.Err()
}

// advance moves a watch to a change, with what matched up to it. Without a match that is
// in memory only: after a crash the same changes are looked at again.
func (b *Book) advance(ctx context.Context, w *watcher, source string, to int64, found []match) error {
	w.entry.mu.Lock()
	was := w.entry.at[source]
	if to <= was || w.entry.gone {
		w.entry.mu.Unlock()
		return nil
	}
	w.entry.at[source], w.entry.dirty = to, true
	w.entry.mu.Unlock()
	if len(found) == 0 {
		return nil
	}
	err := b.change(ctx, w.entry, func(k *kept) {
		if k.Stopped == "" {
			k.Pending = append(k.Pending, found...)
		}
	})
	if err == nil || errors.Is(err, understudy.ErrNotFound) {
		return nil
	}
	w.entry.mu.Lock()
	w.entry.at[source] = was
	w.entry.mu.Unlock()
	return err
}

// enqueue asks for a job for each watch that has something to tell.
func (b *Book) enqueue(ctx context.Context) error {
	for _, e := range b.entries() {
		e.mu.Lock()
		due := len(e.kept.Pending) > 0 && e.kept.Stopped == "" && !e.gone
		e.mu.Unlock()
		if !due {
			continue
		}
		if err := e.line.Enqueue(ctx, b.o.Enqueue, Kind, e.id, b.o.Now(), askEvery); err != nil {
			return err
		}
	}
	return nil
}
