// Purge: forgets a page or a record, in the running application or in a folder.

package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/diagnostics"
	"understudy/kit/suggest"
	"understudy/mirror"
	"understudy/spec"
)

// purge forgets in the running application.
func (h *App) purge(ctx context.Context, p diagnostics.Purge) (diagnostics.Purged, error) {
	a, err := targetOf(h.sources, p)
	if err != nil {
		return diagnostics.Purged{}, err
	}
	var found mirror.Forgotten
	files := 0
	if a.isRecord() {
		if files, err = h.files.Forget(a.source.Name, a.kind, a.id); err != nil {
			return diagnostics.Purged{}, err
		}
		if err := h.walker.Forgot(ctx, a.source.Name, a.kind); err != nil {
			return diagnostics.Purged{}, err
		}
	}
	if a.target != nil {
		found, err = h.mirror.Forget(ctx, a.target)
	} else {
		found, err = h.mirror.ForgetRecord(ctx, a.source.Name, a.kind, a.id)
	}
	return diagnostics.Purged{Pages: found.Pages, Versions: found.Versions, Files: files}, err
}

// target is what a purge names, understood.
type target struct {
	source   *spec.Source
	target   *spec.Target // a key; nil: a record
	kind, id string       // the record; of a key too, when it names one
}

// targetOf understands a purge. Errors wrap ErrInvalid and say what is near.
func targetOf(sources []*spec.Source, p diagnostics.Purge) (target, error) {
	byName := map[string]*spec.Source{}
	for _, src := range sources {
		byName[src.Name] = src
	}
	src := byName[p.Source]
	if src == nil {
		names := slices.Sorted(maps.Keys(byName))
		return target{}, invalid("no source is called %q%s; there is %s", understudy.Clip(p.Source),
			suggest.Hint(understudy.Clip(p.Source), names), strings.Join(names, ", "))
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
			somePath(src.Spec))
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

// somePath is a list's path, to show what a key looks like.
func somePath(sp *spec.Spec) string {
	for _, k := range sp.Kinds {
		for _, l := range k.Lists {
			return l.Path
		}
	}
	return "/"
}
