// This file walks the roots of a source. A source may have many accounts or repositories, each with its own walks.

package crawl

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"understudy"
	"understudy/kit/lockwatch"
	"understudy/request"
	"understudy/spec"
)

// Limits of the roots of one source.
const (
	maxRoots          = 10_000
	maxRequestedRoots = 500 // the maximum number of requested roots that are walked
	maxName           = 120 // the maximum length of a requested root's name in bytes, because all names must fit into one value
)

// rootWalk returns the walk of a kind in one root; "" is the root of the source's user. It returns nil if the root
// is not walked.
func (x *kindCrawl) rootWalk(root string) *kindCrawl {
	if root == "" || root == x.plan.source.User && !x.plan.rootsOnly {
		return x
	}
	if known := x.roots.Load(); known != nil {
		return (*known)[root]
	}
	return nil
}

// allRoots returns the walks of a kind in all roots. The walk in the root of the source's user is first.
func (x *kindCrawl) allRoots() iter.Seq[*kindCrawl] {
	return func(yield func(*kindCrawl) bool) {
		if !x.plan.rootsOnly && !yield(x) {
			return
		}
		known := x.roots.Load()
		if known == nil {
			return
		}
		for _, root := range slices.Sorted(maps.Keys(*known)) {
			if !yield((*known)[root]) {
				return
			}
		}
	}
}

// allWalks returns the walks of all kinds.
func (w *Crawler) allWalks() iter.Seq[*kindCrawl] {
	return func(yield func(*kindCrawl) bool) {
		for _, name := range w.names {
			for x := range w.walks[name].allRoots() {
				if !yield(x) {
					return
				}
			}
		}
	}
}

// roots creates the walks of new roots and removes the walks of deleted roots.
type roots struct {
	crawler *Crawler

	mu        lockwatch.Mutex
	requested map[*spec.Source]map[string]bool // the roots that callers requested and that are not walked yet, by source
}

// isDiscovering reports whether every stored record of the kind that names roots is a root.
func isDiscovering(src *spec.Source) bool { return slices.Contains(src.Roots, spec.AllRoots) }

// isRemembering reports whether roots that callers request are walked.
func isRemembering(src *spec.Source) bool { return slices.Contains(src.Roots, spec.RequestedRoots) }

// load finds the roots of every source.
func (r *roots) load(ctx context.Context) error {
	for _, src := range r.crawler.o.Sources {
		if len(src.Roots) == 0 {
			continue
		}
		if isDiscovering(src) {
			if err := r.crawler.keep(ctx, src.Name, src.Spec.Roots.Kind); err != nil {
				return fmt.Errorf("roots: %s: %w", spec.AllRoots, err)
			}
		}
		if err := r.update(ctx, src, nil); err != nil {
			return err
		}
	}
	return nil
}

// update creates and removes walks of a source to match the known roots. asked are the roots that callers requested
// since the last update.
func (r *roots) update(ctx context.Context, src *spec.Source, asked map[string]bool) error {
	roots := map[string]bool{}
	for _, root := range src.Roots {
		roots[root] = root != spec.AllRoots && root != spec.RequestedRoots
	}
	if err := r.restoreAsked(ctx, src, asked, roots); err != nil {
		return err
	}
	if err := r.addDiscovered(ctx, src, roots); err != nil {
		return err
	}
	for _, name := range r.crawler.names {
		if base := r.crawler.walks[name]; base.plan.source == src && base.roots.Load() != nil {
			if err := r.replace(ctx, base, roots); err != nil {
				return err
			}
		}
	}
	return nil
}

// restoreAsked adds the roots that callers requested, and stores new ones.
func (r *roots) restoreAsked(ctx context.Context, src *spec.Source, asked, roots map[string]bool) error {
	if !isRemembering(src) {
		return nil
	}
	name, known := "roots/"+src.Name, []string(nil)
	add := func(old []byte) ([]byte, error) {
		if known = nil; json.Unmarshal(old, &known) != nil {
			known = nil // the value is empty or unreadable
		}
		before := len(known)
		for _, root := range slices.Sorted(maps.Keys(asked)) {
			if !slices.Contains(known, root) && len(known) < maxRequestedRoots {
				known = append(known, root)
			}
		}
		if len(known) == before {
			return old, nil
		}
		return json.Marshal(known)
	}
	raw, err := understudy.ReadValue(ctx, r.crawler.o.KV, name)
	if err == nil && len(asked) > 0 {
		err = r.crawler.o.KV.Change(ctx, name, add)
	} else if err == nil {
		_, err = add(raw)
	}
	if err != nil {
		return fmt.Errorf("walk: roots of %s: %w", src.Name, err)
	}
	for _, root := range known {
		roots[root] = true
	}
	return nil
}

// addDiscovered adds the stored records of the kind that names roots.
func (r *roots) addDiscovered(ctx context.Context, src *spec.Source, roots map[string]bool) error {
	base := r.crawler.walks[src.Name+"/"+src.Spec.Roots.Kind]
	if base == nil || !isDiscovering(src) {
		return nil
	}
	for at := (childPosition{}); !at.Ended; {
		rows, next, err := r.crawler.nesting.readParents(ctx, base, at)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if len(roots) < maxRoots {
				roots[row.ID] = true
			} else if !roots[row.ID] {
				r.crawler.o.Logger.Warn("walk: a source has too many accounts or repositories; the rest are not synced",
					"source", src.Name, "walked", maxRoots)
				return nil
			}
		}
		at = next
	}
	return nil
}

// replace creates and removes walks of one kind to match the given roots. Walks of roots that remain are not disturbed.
func (r *roots) replace(ctx context.Context, base *kindCrawl, roots map[string]bool) error {
	before := *base.roots.Load()
	now := map[string]*kindCrawl{}
	var begun []*kindCrawl
	for root, wanted := range roots {
		x := before[root]
		if !wanted || root == base.plan.source.User && !base.plan.rootsOnly {
			continue
		}
		if x == nil {
			p, err := newPlan(base.plan.source, base.plan.kind, root)
			if err != nil {
				return fmt.Errorf("walk: %s: %w", base.plan.name(), err)
			}
			x = newCrawl(p)
			x.children = base.children
			begun = append(begun, x)
		}
		now[root] = x
	}
	kept, err := r.crawler.states.read(ctx, base)
	if err != nil {
		return err
	}
	for _, x := range begun {
		if err := r.crawler.restore(ctx, x); err != nil {
			return err
		}
		if err := r.crawler.states.change(ctx, x, func(m *kindState) { m.Keep = kept.Keep }); err != nil {
			return err
		}
	}
	base.roots.Store(&now)
	return nil
}

// look starts the walks of new roots and removes the walks of deleted roots.
func (r *roots) look(ctx context.Context, stirs map[string]bool) error {
	r.mu.Lock()
	asked := r.requested
	r.requested = map[*spec.Source]map[string]bool{}
	r.mu.Unlock()
	for _, src := range r.crawler.o.Sources {
		if !(isDiscovering(src) && stirs[src.Name+"/"+src.Spec.Roots.Kind]) && len(asked[src]) == 0 {
			continue
		}
		if err := r.update(ctx, src, asked[src]); err != nil {
			return err
		}
		if err := errors.Join(r.crawler.updatePolls(ctx), r.crawler.enqueueDue(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// findWalk returns the walk that a saved page belongs to, or nil if its root is not walked. If the settings of the
// source permit it, a page that a caller requested adds its root.
func (r *roots) findWalk(l request.PageSaved) *kindCrawl {
	base := r.crawler.walks[l.Page.Key.Source+"/"+l.Page.Kind]
	if base == nil || base.roots.Load() == nil {
		return base
	}
	t, err := base.plan.source.Spec.ResolveKey(l.Page.Key)
	if err != nil {
		return nil
	}
	root := t.RootID()
	x := base.rootWalk(root)
	if x == nil && isRemembering(base.plan.source) && l.Page.Status == 200 && len(root) <= maxName &&
		len(*base.roots.Load()) < maxRequestedRoots {
		r.mu.Lock()
		if r.requested[base.plan.source] == nil {
			r.requested[base.plan.source] = map[string]bool{}
		}
		if len(r.requested[base.plan.source]) < maxRequestedRoots {
			r.requested[base.plan.source][root] = true
		}
		r.mu.Unlock()
		understudy.Wake(r.crawler.wake)
	}
	return cmp.Or(x, base)
}

// rootText returns a root as people write it.
func rootText(root string) string { return strings.ReplaceAll(root, spec.IDSeparator, "/") }
