// Crawl: joins the crawler to the application: its settings and its jobs.

package app

import (
	"context"
	"strings"
	"time"

	"understudy"
	"understudy/internal/crawl"
	"understudy/internal/jobs"
)

// openWalker makes the walker, before the runner that runs its jobs.
func (h *App) openWalker() (err error) {
	c, begun := h.cfg.Sync, time.Now()
	h.walker, err = crawl.New(crawl.Options{
		Sources: h.sources, Mirror: h.mirror, Store: h.db, KV: h.db, Jobs: enqueuer{h}, Down: h.downWhy, Count: h.heldOf,
		Retention: h.cfg.Retained(),
		Settings: crawl.Settings{
			Horizon: c.Horizon.Std(), Sweep: c.Sweep.Std(), Window: c.Window.Std(), Slice: c.Slice.Std(), Overlap: c.Overlap.Std(),
			Slices: c.Slices, Page: c.Page, Pages: c.Pages,
		},
		Now: time.Now, Elapsed: func() time.Duration { return time.Since(begun) }, Logger: h.log,
	})
	if err == nil {
		h.mirror.SetCoverage(h.walker)
		h.saved.Subscribe(h.walker.PageSaved)
	}
	return err
}

// setPublicURLs does for sources what their ports would: what is rewritten to the
// public address has to read the same.
func (h *App) setPublicURLs() {
	for _, src := range h.sources {
		if src.PublicURL == "" {
			src.PublicURL = "http://" + h.cfg.Sources[src.Name].Listen
		}
	}
}

// loadWalks has kept up what the settings name and what was kept up before.
func (h *App) loadWalks(ctx context.Context) error {
	given := map[string][]string{}
	for _, src := range h.sources {
		given[src.Name] = h.cfg.Sources[src.Name].Sync
	}
	return h.walker.Load(ctx, given)
}

// enqueuer is the runner, which is made after the walker.
type enqueuer struct{ h *App }

// Enqueue promises work.
func (e enqueuer) Enqueue(ctx context.Context, js ...understudy.Job) ([]int64, error) {
	return e.h.jobs.Enqueue(ctx, js...)
}

// walkAttempts is how many runs of a walk may begin: upstream's failures do not
// count, kills do, and no number of them is a reason to give up.
const walkAttempts = 1000

// walkKinds are the walker's jobs.
func (h *App) walkKinds() []jobs.Kind {
	var out []jobs.Kind
	for name, do := range h.walker.Work() {
		wait := time.Minute
		if strings.HasPrefix(name, "sweep ") {
			wait = time.Hour // one that ends with an error has cost a whole walk
		}
		out = append(out, jobs.Kind{
			Name: name, Run: func(ctx context.Context, r *jobs.Run) error { return do(ctx, r) },
			Concurrency: 1, Attempts: walkAttempts, Weight: 8 << 20, Backoff: 5 * time.Second, MaxBackoff: wait,
		})
	}
	return out
}

// heldOf is how many records are held of a kind.
func (h *App) heldOf(ctx context.Context, source, kind string) (int64, error) {
	kinds, err := h.db.Kinds(ctx, source)
	if err != nil {
		return 0, err
	}
	for _, k := range kinds {
		if k.Kind == kind {
			return k.Records, nil
		}
	}
	return 0, nil
}

// downWhy says why a source cannot be asked, "" when it can.
func (h *App) downWhy(source string) string {
	health := h.clients[source].Health()
	switch {
	case health.State == "ok" || health.State == "":
		return ""
	case health.Why != "":
		return health.Why
	}
	return health.State
}
