// Search: its settings, and how it and the tools of agents are joined to the application.

package app

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/agents"
	"understudy/internal/config"
	"understudy/internal/export"
	"understudy/internal/query"
	"understudy/internal/search"
	"understudy/internal/search/columns"
	"understudy/internal/store"
	"understudy/internal/viewer/page"
	"understudy/kit/limiter"
	"understudy/spec"
)

// searching is what the searches of all policies share.
type searching struct {
	key     []byte                   // seals the cursors
	columns *columns.Set             // for sums
	lookups map[string]*limiter.Pace // of numbers, by source
}

// openSearch reads the key of cursors and begins the columns of sums, before any policy is
// put in force: both stay when another one is.
func (h *App) openSearch(ctx context.Context) (err error) {
	h.searching.columns = columns.NewSet(h.db, config.ColumnsMemory(h.cfg, os.ReadFile), h.log)
	h.searching.lookups = page.NewLookups(h.sources)
	h.closers = append(h.closers, h.searching.columns.Close)
	h.searching.key, err = search.Key(ctx, h.db)
	return err
}

// searcher is the search under one policy.
func (h *App) searcher(cfg *config.Settings, p policy) (*search.Searcher, error) {
	c := cfg.Search
	return search.New(search.Options{
		Sources: h.sources, Store: h.db, Gate: searchGate{p.gate}, Masked: p.gate, KV: h.db, Key: h.searching.key,
		Annotations: annotated{h.db, p.gate},
		Columns:     h.searching.columns,
		Held:        figures{h}.held,
		Exports:     export.New(h.exports.search, h.exports.until(p)), Now: time.Now, Logger: h.log,
		Limits: search.Limits{
			Time: c.Time.Std(), Look: c.Look, Window: c.Window, Count: c.Count.Std(), Facets: c.Facets.Std(), Sum: c.Sum.Std(),
			AtOnce: c.AtOnce, Silence: c.Silence.Std(), Saved: c.Saved, SavedEach: c.SavedEach,
		},
	})
}

// controlSearch puts the search's routes beside the others under /-/.
func (h *App) controlSearch(cfg *config.Settings, p policy, s *search.Searcher, mux *http.ServeMux) error {
	handler, err := search.NewHandler(search.HandlerOptions{Searcher: s, Callers: p.book, Token: h.opts.Dir.Token,
		Audit: audits{h}.auditor(), PublicURL: cfg.Viewer.PublicURL, Logger: h.log})
	if err != nil {
		return err
	}
	mux.Handle("/-/search", handler)
	mux.Handle("/-/search/", handler)
	return nil
}

// annotated is what people wrote on records, for those who may write it.
type annotated struct {
	*store.DB
	gate *access.Gate
}

// SeesAnnotations implements search.Annotations.
func (a annotated) SeesAnnotations(c understudy.Caller, source string) bool {
	return a.gate.Do(c, source, access.DoNote) == nil
}

// searchGate is the gate as the search asks it.
type searchGate struct{ *access.Gate }

// Fully reports whether a caller sees a field as it is.
func (g searchGate) Fully(c understudy.Caller, source, kind, field string) bool {
	return g.Level(c, source, kind, field) == access.See
}

// View is a record's body as a caller sees it.
func (g searchGate) View(c understudy.Caller, r *understudy.Record) ([]byte, error) {
	v, err := g.Gate.View(c, &understudy.Page{Key: understudy.Key{Source: r.Source}, Kind: r.Kind, Status: http.StatusOK, Body: r.Body})
	if err != nil {
		return nil, err
	}
	return v.Body, nil
}

// queryText reads understudy.q of a list on a drop-in port.
func queryText(s *search.Searcher) func(c understudy.Caller, t *spec.Target, text string) (*query.Text, func(*understudy.Record) bool,
	error) {
	return func(c understudy.Caller, t *spec.Target, text string) (*query.Text, func(*understudy.Record) bool, error) {
		if t.Kind == nil {
			return nil, nil, fmt.Errorf("search: %w: the path lists no records", understudy.ErrInvalid)
		}
		return s.Text(c, t.Key.Source, t.Kind.Name, text)
	}
}

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
