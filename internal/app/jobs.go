// Jobs: the runner of promised work, the kinds of the packages, and /-/jobs.

package app

import (
	"net/http"
	"os"
	"time"

	"understudy/internal/config"
	"understudy/internal/forecast"
	"understudy/internal/jobs"
	"understudy/internal/search"
)

// kinds are all sorts of jobs, each from its room.
func (h *App) kinds() []jobs.Kind {
	kinds := append(erasures{h}.eraseKinds(), indexes{h}.indexKind())
	if !h.opts.Offline {
		kinds = append(kinds, h.walkKinds()...)
	}
	if !h.opts.Headless { // receivers hear of it from the server
		kinds = append(kinds, feeds{h}.kind(), forecasts{h}.kind(), watchers{h}.kind())
	}
	return kinds
}

// openJobs makes the runner. The folder's lock makes sure that no other
// process runs jobs of this store.
func (h *App) openJobs() (err error) {
	c := h.cfg.Jobs
	h.jobs, err = jobs.New(jobs.Options{
		Store: h.db, Kinds: h.kinds(), Workers: c.Workers, Memory: h.cfg.JobsMemory(h.cfg.MemoryLimit(os.ReadFile)), Lease: c.Lease.Std(),
		Keep: c.Keep, KeepFor: c.KeepFor.Std(),
		Alone: h.cfg.Store.DSN == "", Now: time.Now, Logger: h.log,
	})
	return err
}

// control is everything under /-/ that the viewer does not answer itself.
func (h *App) control(cfg *config.Settings, p policy, s *search.Searcher, rest http.Handler) (http.Handler, error) {
	mux := http.NewServeMux()
	mux.Handle("/", rest)
	j, err := jobs.NewHandler(jobs.HandlerOptions{Jobs: h.jobs, Person: p.book.Person, All: h.seesAll, Token: h.opts.Dir.Token,
		Audit: audits{h}.auditor(), PublicURL: cfg.Viewer.PublicURL, Logger: h.log})
	if err != nil {
		return nil, err
	}
	mux.Handle("/-/jobs", j)
	mux.Handle("/-/jobs/", j)
	feeds{h}.control(mux)
	if err := h.controlSearch(cfg, p, s, mux); err != nil {
		return nil, err
	}
	if err := (agentTools{h}).control(cfg, p, s, mux); err != nil {
		return nil, err
	}
	mux.Handle(forecast.Path, forecast.NewHandler(forecast.HandlerOptions{Forecasts: h.forecasts, Gate: p.gate, Callers: p.book,
		Audit: audits{h}.auditor(), Token: h.opts.Dir.Token}))
	mux.Handle("/-/sync", h.walker.Handler(h.opts.Dir.Token, audits{h}.auditor()))
	return mux, h.controlHook(cfg, mux)
}
