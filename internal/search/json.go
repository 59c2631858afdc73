// This file answers the search routes in JSON.

package search

import (
	"context"
	"net/http"
	"slices"
	"time"
	"understudy/spec"

	"understudy"
	"understudy/internal/query"
)

// setColumns sets the fields that a table should show, for each kind among the hits.
func (s *Searcher) setColumns(r *query.SearchResult) {
	r.Columns = map[string][]string{}
	for i := range r.Hits {
		h := &r.Hits[i]
		if name := h.Source + "/" + h.Kind; r.Columns[name] == nil {
			r.Columns[name] = s.tableFields(h.Source, h.Kind)
		}
	}
}

// savedSearch is a saved search in JSON.
type savedSearch struct {
	Name   string    `json:"name"`
	Owner  string    `json:"owner"`
	Shared bool      `json:"shared"`
	Query  string    `json:"q"`
	Source string    `json:"source,omitempty"`
	Kinds  []string  `json:"kinds,omitempty"`
	Sort   string    `json:"sort,omitempty"`
	At     time.Time `json:"at"`
}

// listSaved answers GET /-/search/saved with the saved searches that the caller may open.
func (h *handler) listSaved(ctx context.Context, c understudy.Caller, r *http.Request) (any, error) {
	if r.URL.RawQuery != "" {
		return nil, newInvalid("saved searches take no parameters")
	}
	all, err := h.s.ListSaved(ctx, c)
	if err != nil {
		return nil, err
	}
	out := struct {
		Saved []savedSearch `json:"saved"`
	}{[]savedSearch{}}
	for _, n := range all {
		out.Saved = append(out.Saved, savedSearch{n.Name, n.Owner, n.Shared, n.Request.Text, n.Request.Source, n.Request.Kinds, n.Request.Sort,
			n.At})
	}
	return out, nil
}

// newSearch is the body of a request that saves a search.
type newSearch struct {
	Name   string   `json:"name"`
	Query  string   `json:"q"`
	Source string   `json:"source"`
	Kinds  []string `json:"kinds"`
	Sort   string   `json:"sort"`
	Shared bool     `json:"shared"`
}

// save answers POST /-/search/saved.
func (h *handler) save(ctx context.Context, c understudy.Caller, _ *http.Request, in *newSearch) (any, error) {
	n := query.SavedSearch{Name: in.Name, Shared: in.Shared, Request: query.SearchRequest{Text: in.Query, Source: in.Source, Kinds: in.Kinds,
		Sort: in.Sort}}
	e := understudy.AuditEntry{Action: understudy.ActionAdminister, What: "saved search keep", Values: []string{n.Name}}
	if err := h.recordAudit(ctx, c, n.Request, e); err != nil {
		return nil, err
	}
	return nil, h.s.Save(ctx, c, n)
}

func (h *handler) forget(ctx context.Context, c understudy.Caller, r *http.Request) (any, error) {
	e := understudy.AuditEntry{Action: understudy.ActionAdminister, What: "saved search forget", Values: []string{r.PathValue("name")}}
	if err := h.recordAudit(ctx, c, query.SearchRequest{}, e); err != nil {
		return nil, err
	}
	return nil, h.s.Forget(ctx, c, r.PathValue("name"))
}

// tableFields returns the fields that a table of a kind shows besides its clock and its id.
func (s *Searcher) tableFields(source, kind string) []string {
	names := []string{}
	src := spec.FindSource(s.o.Sources, source)
	if src == nil || src.Spec.Kind(kind) == nil {
		return names
	}
	k := src.Spec.Kind(kind)
	for _, name := range k.Columns {
		if name != k.Clock && !slices.Contains(k.ID, name) {
			names = append(names, name)
		}
	}
	return names
}
