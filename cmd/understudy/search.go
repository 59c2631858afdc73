// Search: its settings, and how it is joined to the house.

package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/search"
)

// searchConfig bounds searching.
type searchConfig struct {
	Time        duration `yaml:"time"`         // of one answer, default 5s
	Look        int      `yaml:"look"`         // records looked at for one answer, default 50000
	Window      int      `yaml:"window"`       // newest matches put in order, default 10000
	Count       duration `yaml:"count"`        // of one count, default 50ms
	Facets      duration `yaml:"facets"`       // of all counts of an answer, default 300ms
	AtOnce      int      `yaml:"at_once"`      // searches at once, default 32
	Exports     int      `yaml:"exports"`      // exports at once, default 4
	ExportsEach int      `yaml:"exports_each"` // of one credential, default half of them
	Silence     duration `yaml:"silence"`      // an export that comes no further ends, default 30s
	Saved       int      `yaml:"saved"`        // saved searches, default 1000
	SavedEach   int      `yaml:"saved_each"`   // of one owner, default 100
}

// Limits of what the settings take.
const (
	mostSearchTime = time.Minute // an answer has to be read, too, before the port ends it
	mostWindow     = 100_000
	mostSaved      = 9_000 // a store lists no more notes
)

func (s *searchConfig) check() error {
	for name, n := range map[string]int{"look": s.Look, "window": s.Window, "at_once": s.AtOnce, "exports": s.Exports, "exports_each": s.ExportsEach, "saved": s.Saved, "saved_each": s.SavedEach} {
		if n < 0 || n > 10_000_000 {
			return fmt.Errorf("%s: want 0 to 10000000, not %d", name, n)
		}
	}
	switch {
	case s.Time.std() > mostSearchTime:
		return fmt.Errorf("time: %v is too long; write at most %v", s.Time.std(), mostSearchTime)
	case s.Window > mostWindow:
		return fmt.Errorf("window: %d; write at most %d", s.Window, mostWindow)
	case s.Saved > mostSaved:
		return fmt.Errorf("saved: %d; write at most %d", s.Saved, mostSaved)
	case s.Count.std() > mostSearchTime || s.Facets.std() > mostSearchTime:
		return fmt.Errorf("count and facets: write at most %v", mostSearchTime)
	}
	return nil
}

// searchKey reads the key of cursors, before any policy is put in force.
func (h *house) openSearch(ctx context.Context) (err error) {
	h.searchKey, err = search.Key(ctx, h.db)
	return err
}

// searcher is the search under one policy.
func (h *house) searcher(cfg *config, p policy) (*search.Searcher, error) {
	c := cfg.Search
	return search.New(search.Options{
		Sources: h.sources, Store: h.db, Gate: searchGate{p.gate}, Notes: h.db, Key: h.searchKey, Exports: h.exports.search, Until: h.exports.until(p), Now: time.Now, Logger: h.log,
		Limits: search.Limits{
			Time: c.Time.std(), Look: c.Look, Window: c.Window, Count: c.Count.std(), Facets: c.Facets.std(),
			AtOnce: c.AtOnce, Silence: c.Silence.std(), Saved: c.Saved, SavedEach: c.SavedEach,
		},
	})
}

// controlSearch puts the search's routes beside the others under /-/.
func (h *house) controlSearch(cfg *config, p policy, s *search.Searcher, mux *http.ServeMux) error {
	handler, err := search.NewHandler(search.HandlerOptions{Searcher: s, Callers: p.book, Token: h.plan.dir.token, PublicURL: cfg.Viewer.PublicURL, Logger: h.log})
	if err != nil {
		return err
	}
	mux.Handle("/-/search", handler)
	mux.Handle("/-/search/", handler)
	return nil
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
func queryText(s *search.Searcher) func(c understudy.Caller, t *understudy.Target, text string) (*understudy.Text, func(*understudy.Record) bool, error) {
	return func(c understudy.Caller, t *understudy.Target, text string) (*understudy.Text, func(*understudy.Record) bool, error) {
		if t.Kind == nil {
			return nil, nil, fmt.Errorf("search: %w: the path lists no records", understudy.ErrInvalid)
		}
		return s.Text(c, t.Key.Source, t.Kind.Name, text)
	}
}
