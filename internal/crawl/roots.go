// Roots: a source may cover many accounts or repositories. Each has walks of its own.

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
	"sync"

	"understudy"
	"understudy/request"
	"understudy/spec"
)

// Bounds of the roots of one source.
const (
	maxRoots = 10_000
	maxAsked = 500 // beyond so many, those that callers ask for are not covered
	maxName  = 120 // bytes of the name of one that a caller asks for: all have to fit into a value
)

// in is the walk of a kind in one root, "" for that of the source's user; nil: the root is
// not covered.
func (x *kindCrawl) in(root string) *kindCrawl {
	if root == "" || root == x.plan.source.User && !x.plan.bare {
		return x
	}
	if known := x.roots.Load(); known != nil {
		return (*known)[root]
	}
	return nil
}

// each are the walks of a kind: in every root, that of the source's user first.
func (x *kindCrawl) each() iter.Seq[*kindCrawl] {
	return func(yield func(*kindCrawl) bool) {
		if !x.plan.bare && !yield(x) {
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

// each are the walks of all kinds.
func (w *Crawler) each() iter.Seq[*kindCrawl] {
	return func(yield func(*kindCrawl) bool) {
		for _, name := range w.names {
			for x := range w.walks[name].each() {
				if !yield(x) {
					return
				}
			}
		}
	}
}

// roots keeps a crawler's walks in line with the roots that are known.
type roots struct {
	crawler *Crawler

	mu    sync.Mutex
	asked map[*spec.Source]map[string]bool // roots that callers asked for, not covered yet
}

// discovers reports whether every record of the roots' kind is a root.
func discovers(src *spec.Source) bool { return slices.Contains(src.Roots, spec.AllRoots) }

// remembers reports whether roots are those that callers ask for.
func remembers(src *spec.Source) bool { return slices.Contains(src.Roots, spec.AskedRoots) }

// load finds the roots of every source.
func (r *roots) load(ctx context.Context) error {
	for _, src := range r.crawler.o.Sources {
		if len(src.Roots) == 0 {
			continue
		}
		if discovers(src) {
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

// update brings the walks of a source in line with the roots that are known, those that
// callers asked for since included.
func (r *roots) update(ctx context.Context, src *spec.Source, asked map[string]bool) error {
	roots := map[string]bool{}
	for _, root := range src.Roots {
		roots[root] = root != spec.AllRoots && root != spec.AskedRoots
	}
	if err := r.recall(ctx, src, asked, roots); err != nil {
		return err
	}
	if err := r.discover(ctx, src, roots); err != nil {
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

// recall adds the roots that callers asked for, and writes down new ones.
func (r *roots) recall(ctx context.Context, src *spec.Source, asked, roots map[string]bool) error {
	if !remembers(src) {
		return nil
	}
	name := "roots/" + src.Name
	raw, err := r.crawler.o.KV.Value(ctx, name)
	if err != nil && !errors.Is(err, understudy.ErrNotFound) {
		return fmt.Errorf("walk: roots of %s: %w", src.Name, err)
	}
	var known []string
	if len(raw) > 0 && json.Unmarshal(raw, &known) != nil {
		known = nil
	}
	before := len(known)
	for _, root := range slices.Sorted(maps.Keys(asked)) {
		if !slices.Contains(known, root) && len(known) < maxAsked {
			known = append(known, root)
		}
	}
	for _, root := range known {
		roots[root] = true
	}
	if len(known) == before {
		return nil
	}
	if raw, err = json.Marshal(known); err != nil {
		return err
	}
	return r.crawler.o.KV.SetValue(ctx, name, raw)
}

// discover adds the held records of the roots' kind.
func (r *roots) discover(ctx context.Context, src *spec.Source, roots map[string]bool) error {
	base := r.crawler.walks[src.Name+"/"+src.Spec.Roots.Kind]
	if base == nil || !discovers(src) {
		return nil
	}
	for at := (childPosition{}); !at.Ended; {
		rows, next, err := r.crawler.nesting.parents(ctx, base, at)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if len(roots) < maxRoots {
				roots[row.ID] = true
			} else if !roots[row.ID] {
				r.crawler.o.Logger.Warn("walk: a source has more roots than are walked", "source", src.Name, "walked", maxRoots)
				return nil
			}
		}
		at = next
	}
	return nil
}

// replace makes the walks of one kind those of the given roots. Walks that stay are not
// disturbed.
func (r *roots) replace(ctx context.Context, base *kindCrawl, roots map[string]bool) error {
	before := *base.roots.Load()
	now := map[string]*kindCrawl{}
	var begun []*kindCrawl
	for root, wanted := range roots {
		x := before[root]
		if !wanted || root == base.plan.source.User && !base.plan.bare {
			continue
		}
		if x == nil {
			p, err := planOf(base.plan.source, base.plan.kind, root)
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
		if err := r.crawler.recall(ctx, x); err != nil {
			return err
		}
		if err := r.crawler.states.change(ctx, x, func(m *kindState) { m.Keep = kept.Keep }); err != nil {
			return err
		}
	}
	base.roots.Store(&now)
	return nil
}

// look begins the walks of roots that came, and ends those of roots that went.
func (r *roots) look(ctx context.Context, stirs map[string]bool) error {
	r.mu.Lock()
	asked := r.asked
	r.asked = map[*spec.Source]map[string]bool{}
	r.mu.Unlock()
	for _, src := range r.crawler.o.Sources {
		if !(discovers(src) && stirs[src.Name+"/"+src.Spec.Roots.Kind]) && len(asked[src]) == 0 {
			continue
		}
		if err := r.update(ctx, src, asked[src]); err != nil {
			return err
		}
		if err := errors.Join(r.crawler.polls(ctx), r.crawler.due(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// saved is the walk that a saved page belongs to, nil when it is of a root that is not
// covered. A page that a caller asked for makes its root covered, where the source says so.
func (r *roots) saved(l request.PageSaved) *kindCrawl {
	base := r.crawler.walks[l.Page.Key.Source+"/"+l.Page.Kind]
	if base == nil || base.roots.Load() == nil {
		return base
	}
	t, err := base.plan.source.Spec.TargetOf(l.Page.Key)
	if err != nil {
		return nil
	}
	root := t.Root()
	x := base.in(root)
	if x == nil && remembers(base.plan.source) && l.Page.Status == 200 && len(root) <= maxName && len(*base.roots.Load()) < maxAsked {
		r.mu.Lock()
		if r.asked[base.plan.source] == nil {
			r.asked[base.plan.source] = map[string]bool{}
		}
		if len(r.asked[base.plan.source]) < maxAsked {
			r.asked[base.plan.source][root] = true
		}
		r.mu.Unlock()
		rouse(r.crawler.wake)
	}
	return cmp.Or(x, base)
}

// spelled is a root as people write it.
func spelled(root string) string { return strings.ReplaceAll(root, spec.IDSeparator, "/") }
