// This file removes a page or a record from the store, and contains the operations of the viewer.

// Package operations carries out operations that people and commands start: purges, erasures and rebuilds of indexes.
package operations

import (
	"context"
	"fmt"
	"strings"

	"understudy"
	"understudy/internal/crawl"
	"understudy/internal/diagnostics"
	"understudy/internal/forecast"
	"understudy/internal/store/contents"
	"understudy/kit/suggest"
	"understudy/mirror"
	"understudy/spec"
)

// Purger removes pages and records from the store.
type Purger struct {
	Sources   []*spec.Source
	Files     contents.Store
	Crawler   *crawl.Crawler
	Mirror    *mirror.Mirror
	Forecasts *forecast.Forecasts
}

// Purge removes a page or a record from the store.
func (h *Purger) Purge(ctx context.Context, p diagnostics.Purge) (diagnostics.Purged, error) {
	a, err := parseTarget(h.Sources, p)
	if err != nil {
		return diagnostics.Purged{}, err
	}
	var found mirror.Forgotten
	files := 0
	if a.isRecord() {
		if files, err = h.Files.Forget(a.source.Name, a.kind, a.id); err != nil {
			return diagnostics.Purged{}, err
		}
		if err := h.Crawler.NoteLost(ctx, a.source.Name, a.kind); err != nil {
			return diagnostics.Purged{}, err
		}
	}
	samples := 0
	if a.target != nil {
		if found, err = h.Mirror.Forget(ctx, a.target); err == nil {
			samples, err = h.Forecasts.Forget(ctx, a.target.Key)
		}
	} else {
		found, err = h.Mirror.ForgetRecord(ctx, a.source.Name, a.kind, a.id)
	}
	return diagnostics.Purged{Pages: found.Pages, Versions: found.Versions, Files: files, Samples: samples}, err
}

// target is the page or record that a purge names.
type target struct {
	source   *spec.Source
	target   *spec.Target // the page to remove; nil if the purge names a record
	kind, id string       // the record to remove; also set if the purge names the key of a record
}

// findSource returns the source with a name. Its error wraps ErrInvalid and lists the existing names.
func findSource(sources []*spec.Source, name string) (*spec.Source, error) {
	var known []string
	for _, src := range sources {
		if src.Name == name {
			return src, nil
		}
		known = append(known, src.Name)
	}
	if name == "" {
		return nil, newInvalid("the name of the source is empty; there is %s", strings.Join(known, ", "))
	}
	name = understudy.Clip(name)
	return nil, newInvalid("no source is called %q%s; there is %s", name, suggest.Hint(name, known), strings.Join(known, ", "))
}

// parseTarget parses the name of the page or record that a purge removes. Its errors wrap ErrInvalid and suggest
// similar names.
func parseTarget(sources []*spec.Source, p diagnostics.Purge) (target, error) {
	src, err := findSource(sources, p.Source)
	if err != nil {
		return target{}, err
	}
	if src.Spec.IsGeneric() {
		t, err := src.Spec.ResolveVerbatim(src.Name, p.What)
		return target{source: src, target: t}, err
	}
	if strings.HasPrefix(p.What, "/") || strings.Contains(p.What, "://") {
		t, err := src.Spec.ResolveLink(src.Name, p.What)
		switch {
		case err != nil:
			return target{}, err
		case t.Kind == nil:
			return target{}, newInvalid("%s is not a path of %s, so nothing is stored of it", understudy.Clip(p.What), src.Spec.Title)
		}
		return target{source: src, target: t, kind: t.Kind.Name, id: t.ID}, nil
	}
	name, id, ok := strings.Cut(p.What, "/")
	if !ok || name == "" || id == "" {
		return target{}, newInvalid("%q names neither a key nor a record; write a path like %s or a record like calls/CA…",
			understudy.Clip(p.What), examplePath(src.Spec))
	}
	kind := src.Spec.Kind(name)
	if kind == nil {
		return target{}, newInvalid("%s has no kind %q%s", src.Spec.Title, understudy.Clip(name),
			suggest.Hint(understudy.Clip(name), src.Spec.KindNames()))
	}
	if len(kind.ID) == 0 {
		return target{}, newInvalid("%s have no ids; name a key, a path with its query", kind.Title)
	}
	return target{source: src, kind: name, id: id}, nil
}

// isRecord reports whether the purge removes a record: it names the record's id, its path or the path of its media content.
func (a *target) isRecord() bool {
	return a.id != "" && (a.target == nil || a.target.Instance != nil || a.target.Media != nil)
}

func newInvalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{understudy.ErrInvalid}, args...)...)
}

// examplePath returns the path of a list, as an example of a key.
func examplePath(sp *spec.Spec) string {
	for _, k := range sp.Kinds {
		for _, l := range k.Lists {
			return l.Path
		}
	}
	return "/"
}

// Operator carries out the operations that people start in the viewer.
type Operator struct {
	Crawler *crawl.Crawler
	Purger  *Purger
	Eraser  *Eraser
}

// Sync implements actions.Operator.
func (h Operator) Sync(ctx context.Context, source, kind string) error {
	return h.Crawler.Keep(ctx, source, kind)
}

// Purge implements actions.Operator.
func (h Operator) Purge(ctx context.Context, source, kind, id string) error {
	_, err := h.Purger.Purge(ctx, diagnostics.Purge{Source: source, What: kind + "/" + id})
	return err
}

// CountErasable implements actions.Operator.
func (h Operator) CountErasable(ctx context.Context, source, what string) (kinds map[string]int, own bool, err error) {
	found, err := h.Eraser.List(ctx, diagnostics.Erase{Source: source, What: what, Dry: true})
	return found.Found, found.Own, err
}

// Erase implements actions.Operator.
func (h Operator) Erase(ctx context.Context, source, what string, own bool) (receipt int64, err error) {
	got, err := h.Eraser.Erase(ctx, diagnostics.Erase{Source: source, What: what, Own: own})
	if got.Receipt != nil {
		receipt = got.Receipt.Number
	}
	return receipt, err
}
