// Search: the search of a policy, as the gate and the annotations answer it.

package app

import (
	"net/http"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/config"
	"understudy/internal/export"
	"understudy/internal/query"
	"understudy/internal/search"
)

// newSearch makes the search of a policy.
func (b *builder) newSearch(cfg *config.Settings, p policy) (*search.Searcher, error) {
	o, c := b.search, cfg.Search
	o.Gate, o.Masked, o.Annotations = searchGate{p.gate}, p.gate, annotated{b.notes, p.gate}
	o.Exports = export.New(b.exports.search, b.exports.begin(p))
	o.Limits = search.Limits{
		Time: c.Time.Std(), Look: c.Look, Window: c.Window, Count: c.Count.Std(), Facets: c.Facets.Std(), Sum: c.Sum.Std(),
		AtOnce: c.AtOnce, Silence: c.Silence.Std(), Saved: c.Saved, SavedEach: c.SavedEach,
	}
	return search.New(o)
}

// annotations are what people wrote on records; store.DB fills it.
type annotations interface {
	Annotation(source, kind, id string) *understudy.Annotation
	Annotations(source, kind string) []*understudy.Annotation
	AnnotationsVersion() int64
}

// annotated shows annotations to those who may write them.
type annotated struct {
	annotations
	gate *access.Gate
}

// SeesAnnotations implements search.Annotations.
func (a annotated) SeesAnnotations(c understudy.Caller, source string) bool {
	return a.gate.Do(c, source, access.DoNote) == nil
}

// searchGate is the gate as the search asks it.
type searchGate struct{ gate *access.Gate }

// Sees implements lang.Gate.
func (g searchGate) Sees(c understudy.Caller, source, kind string) bool {
	return g.gate.Sees(c, source, kind)
}

// Rule implements lang.Gate.
func (g searchGate) Rule(c understudy.Caller, source, kind string) *query.RowRule {
	return g.gate.Rule(c, source, kind)
}

// Fully implements lang.Gate.
func (g searchGate) Fully(c understudy.Caller, source, kind, field string) bool {
	return g.gate.Level(c, source, kind, field) == access.See
}

// View implements lang.Gate.
func (g searchGate) View(c understudy.Caller, r *understudy.Record) ([]byte, error) {
	v, err := g.gate.View(c, &understudy.Page{Key: understudy.Key{Source: r.Source}, Kind: r.Kind, Status: http.StatusOK, Body: r.Body})
	if err != nil {
		return nil, err
	}
	return v.Body, nil
}
