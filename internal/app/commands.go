// Commands: a purge forgets a page or a record; a job fills the indexes; people order both in the viewer.

package app

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"understudy"
	"understudy/internal/crawl"
	"understudy/internal/diagnostics"
	"understudy/internal/forecast"
	"understudy/internal/jobs"
	"understudy/internal/store"
	"understudy/internal/store/contents"
	"understudy/kit/suggest"
	"understudy/mirror"
	"understudy/spec"
)

// purger forgets pages and records.
type purger struct {
	sources   []*spec.Source
	files     *contents.Files
	walker    *crawl.Crawler
	mirror    *mirror.Mirror
	forecasts *forecast.Forecasts
}

// purge forgets a page or a record.
func (h *purger) purge(ctx context.Context, p diagnostics.Purge) (diagnostics.Purged, error) {
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
	samples := 0
	if a.target != nil {
		if found, err = h.mirror.Forget(ctx, a.target); err == nil {
			samples, err = h.forecasts.Forget(ctx, a.target.Key)
		}
	} else {
		found, err = h.mirror.ForgetRecord(ctx, a.source.Name, a.kind, a.id)
	}
	return diagnostics.Purged{Pages: found.Pages, Versions: found.Versions, Files: files, Samples: samples}, err
}

// target is what a purge names, understood.
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

// targetOf understands a purge. Errors wrap ErrInvalid and say what is near.
func targetOf(sources []*spec.Source, p diagnostics.Purge) (target, error) {
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

// indexer fills the indexes of the store in a job.
type indexer struct {
	db   *store.DB
	jobs *jobs.Runner
	log  *slog.Logger
}

// indexJob fills what an index lacks.
const indexJob = "fill indexes"

// indexLogInterval is how often the log says how far the indexes are.
const indexLogInterval = 10 * time.Second

// kind returns the kind of the job.
func (h *indexer) kind() jobs.Kind {
	return jobs.Kind{Name: indexJob, Run: h.fill, Concurrency: 1, Attempts: 20, MaxBackoff: 5 * time.Minute}
}

// fill fills the indexes in a job.
func (h *indexer) fill(ctx context.Context, r *jobs.Run) error {
	begun, logged := time.Now(), time.Now()
	filled := false
	err := h.db.Index(ctx, func(done, total int64) {
		r.Progress(done, total, "")
		if filled = done == total; time.Since(logged) >= indexLogInterval {
			logged = time.Now()
			h.log.Info("the indexes are being filled; lists come from upstream and searches wait", "done", done, "of", total)
		}
	})
	if filled && err == nil {
		h.log.Info("the indexes are filled", "took", time.Since(begun).Round(time.Millisecond))
	}
	return err
}

// run plans the job when there is something to do. It ends with ctx: a task that ends earlier
// ends the server.
func (h *indexer) run(ctx context.Context) error {
	if _, err := h.plan(ctx); err != nil {
		h.log.Error("searches wait for the indexes", "err", err)
	}
	<-ctx.Done()
	return nil
}

// plan plans the job when there is something to do, and returns how far the indexes are.
func (h *indexer) plan(ctx context.Context) (at diagnostics.Indexed, err error) {
	at.Done, at.Total, err = h.db.Indexed(ctx)
	if err == nil && at.Done < at.Total {
		_, err = h.jobs.Enqueue(ctx, understudy.Job{Kind: indexJob, Key: "all", Priority: understudy.Steady})
	}
	return at, err
}

// index returns how far the indexes are, with anew after they were emptied.
func (h *indexer) index(ctx context.Context, anew bool) (diagnostics.Indexed, error) {
	if anew {
		if err := h.db.Empty(ctx); err != nil {
			return diagnostics.Indexed{}, err
		}
	}
	return h.plan(ctx)
}

// operator does what people order in the viewer.
type operator struct {
	walker *crawl.Crawler
	purger *purger
	eraser *eraser
}

// Sync implements actions.Operator.
func (h operator) Sync(ctx context.Context, source, kind string) error {
	return h.walker.Keep(ctx, source, kind)
}

// Purge implements actions.Operator.
func (h operator) Purge(ctx context.Context, source, kind, id string) error {
	_, err := h.purger.purge(ctx, diagnostics.Purge{Source: source, What: kind + "/" + id})
	return err
}

// Belongs implements actions.Operator.
func (h operator) Belongs(ctx context.Context, source, what string) (kinds map[string]int, own bool, err error) {
	found, err := h.eraser.list(ctx, diagnostics.Erase{Source: source, What: what, Dry: true})
	return found.Found, found.Own, err
}

// Erase implements actions.Operator.
func (h operator) Erase(ctx context.Context, source, what string, own bool) (receipt int64, err error) {
	got, err := h.eraser.erase(ctx, diagnostics.Erase{Source: source, What: what, Own: own})
	if got.Receipt != nil {
		receipt = got.Receipt.Number
	}
	return receipt, err
}
