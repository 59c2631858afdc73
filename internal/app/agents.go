// Agents: the tools of agents, joined to the application.

package app

import (
	"context"
	"net/http"
	"time"

	"understudy/internal/agents"
	"understudy/internal/config"
	"understudy/internal/search"
	"understudy/internal/viewer/page"
)

// agentTools joins the tools of agents.
type agentTools struct{ *App }

// control puts their path beside the others under /-/.
func (h agentTools) control(cfg *config.Settings, p policy, s *search.Searcher, mux *http.ServeMux) error {
	handler, err := agents.New(agents.Options{
		Sources: h.sources, Gate: p.gate, Callers: p.book, Mirror: h.mirror, Search: s, History: h.db, Held: figures(h).held,
		Key: h.searching.key, PublicURL: cfg.Viewer.PublicURL, Version: h.opts.Version, Audit: audits(h).auditor(), Logger: h.log,
		Now: time.Now,
	})
	if err != nil {
		return err
	}
	mux.Handle(agents.Path, handler)
	return nil
}

// held says how far the records of a kind are held.
func (h figures) held(ctx context.Context, source, kind string) (complete bool, caughtUp time.Time) {
	held := page.Held{CaughtUp: h.mirror.Stats(source).CaughtUp[kind]}
	h.walkHeld(ctx, source, kind, &held)
	return held.Complete, held.CaughtUp
}
