// Purge: forgets a page or a record; and what people order in the viewer.

// Package operations carries out what people and commands order: purges, erasures, indexes made anew.
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

// Purger forgets pages and records.
type Purger struct {
	Sources   []*spec.Source
	Files     *contents.Files
	Crawler   *crawl.Crawler
	Mirror    *mirror.Mirror
	Forecasts *forecast.Forecasts
}

// Purge forgets a page or a record.
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

// target is what a purge names.
type target struct {
	source   *spec.Source
	target   *spec.Target // a key; nil: a record
	kind, id string       // the record; of a key too, when it names one
}

// findSource returns the source of a name. An error wraps ErrInvalid and names those that there are.
func findSource(sources []*spec.Source, name string) (*spec.Source, error) {
	var known []string
	for _, src := range sources {
		if src.Name == name {
			return src, nil
		}
		known = append(known, src.Name)
	}
	if name == "" {
		return nil, invalid("the name of the source is empty; there is %s", strings.Join(known, ", "))
	}
	name = understudy.Clip(name)
	return nil, invalid("no source is called %q%s; there is %s", name, suggest.Hint(name, known), strings.Join(known, ", "))
}

// parseTarget reads what a purge names. Errors wrap ErrInvalid and say what is near.
func parseTarget(sources []*spec.Source, p diagnostics.Purge) (target, error) {
	src, err := findSource(sources, p.Source)
	if err != nil {
		return target{}, err
	}
	if src.Spec.Generic() {
		t, err := src.Spec.Passed(src.Name, p.What)
		return target{source: src, target: t}, err
	}
	if strings.HasPrefix(p.What, "/") || strings.Contains(p.What, "://") {
		t, err := src.Spec.Follow(src.Name, p.What)
		switch {
		case err != nil:
			return target{}, err
		case t.Kind == nil:
			return target{}, invalid("%s is no path of %s; nothing is ever held of it", understudy.Clip(p.What), src.Spec.Title)
		}
		return target{source: src, target: t, kind: t.Kind.Name, id: t.ID}, nil
	}
	name, id, ok := strings.Cut(p.What, "/")
	if !ok || name == "" || id == "" {
		return target{}, invalid("%q names neither a key nor a record; write a path like %s or a record like calls/CA…", understudy.Clip(p.What),
			examplePath(src.Spec))
	}
	kind := src.Spec.Kind(name)
	if kind == nil {
		var kinds []string
		for _, k := range src.Spec.Kinds {
			kinds = append(kinds, k.Name)
		}
		return target{}, invalid("%s has no kind %q%s", src.Spec.Title, understudy.Clip(name), suggest.Hint(understudy.Clip(name), kinds))
	}
	if len(kind.ID) == 0 {
		return target{}, invalid("%s have no ids; name a key, a path with its query", kind.Title)
	}
	return target{source: src, kind: name, id: id}, nil
}

// isRecord reports whether a record is to be forgotten, by its id, its path or
// the path of its content.
func (a *target) isRecord() bool {
	return a.id != "" && (a.target == nil || a.target.Instance != nil || a.target.Media != nil)
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{understudy.ErrInvalid}, args...)...)
}

// examplePath returns the path of a list, to show what a key looks like.
func examplePath(sp *spec.Spec) string {
	for _, k := range sp.Kinds {
		for _, l := range k.Lists {
			return l.Path
		}
	}
	return "/"
}

// Operator does what people order in the viewer.
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

// Belongs implements actions.Operator.
func (h Operator) Belongs(ctx context.Context, source, what string) (kinds map[string]int, own bool, err error) {
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
