// This file builds the search of a policy from the gate and the annotations.

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

// newSearch returns the search of a policy.
func (b *builder) newSearch(cfg *config.Settings, p policy) (*search.Searcher, error) {
	o, c := b.search, cfg.Search
	o.Gate, o.Masked, o.Annotations = searchGate{p.gate}, p.gate, annotationAccess{b.notes, p.gate}
	o.Exports = export.New(b.exports.search, b.exports.begin(p))
	o.Limits = search.Limits{
		Time: c.Time.Std(), MaxRecords: c.Look, MaxSorted: c.Window, Count: c.Count.Std(), Facets: c.Facets.Std(), Sum: c.Sum.Std(),
		MaxConcurrent: c.AtOnce, Silence: c.Silence.Std(), MaxSaved: c.Saved, MaxSavedEach: c.SavedEach,
	}
	return search.New(o)
}

// annotations are the notes and marks that people put on records; store.DB implements it.
type annotations interface {
	Annotation(source, kind, id string) *understudy.Annotation
	Annotations(source, kind string) []*understudy.Annotation
	AnnotationsVersion() int64
}

// annotationAccess shows annotations only to callers who may write them.
type annotationAccess struct {
	annotations
	gate *access.Gate
}

// CanSeeAnnotations implements search.Annotations.
func (a annotationAccess) CanSeeAnnotations(c understudy.Caller, source string) bool {
	return a.gate.CheckPermission(c, source, access.PermitNote) == nil
}

// searchGate makes the gate usable as lang.Gate for the search.
type searchGate struct{ gate *access.Gate }

// CanSee implements lang.Gate.
func (g searchGate) CanSee(c understudy.Caller, source, kind string) bool {
	return g.gate.CanSee(c, source, kind)
}

// Rule implements lang.Gate.
func (g searchGate) Rule(c understudy.Caller, source, kind string) *query.RowRule {
	return g.gate.Rule(c, source, kind)
}

// CanSeeField implements lang.Gate.
func (g searchGate) CanSeeField(c understudy.Caller, source, kind, field string) bool {
	return g.gate.Level(c, source, kind, field) == access.See
}

// MakeView implements lang.Gate.
func (g searchGate) MakeView(c understudy.Caller, r *understudy.Record) ([]byte, error) {
	v, err := g.gate.MakeView(c, &understudy.Page{Key: understudy.Key{Source: r.Source}, Kind: r.Kind, Status: http.StatusOK, Body: r.Body})
	if err != nil {
		return nil, err
	}
	return v.Body, nil
}
