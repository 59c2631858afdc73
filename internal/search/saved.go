// This file stores searches that people save under names, and lists searches that the specs define.

package search

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"understudy"
	"understudy/internal/query"
)

const (
	savedPrefix   = "search/saved/"
	maxSavedName  = 60  // the maximum length of the name of a saved search, in characters
	maxKeyBytes   = 512 // the maximum length of a key in the KV store, in bytes
	noSavedFormat = "search: %w: there is no saved search %q; understudy search --saved lists them"
)

// savedValue is a saved search as stored in the KV store.
type savedValue struct {
	Name   string   `json:"name"`
	Owner  string   `json:"owner"`
	Shared bool     `json:"shared,omitempty"`
	Text   string   `json:"q"`
	Source string   `json:"source,omitempty"`
	Kinds  []string `json:"kinds,omitempty"`
	Sort   string   `json:"sort,omitempty"`
	At     int64    `json:"at"`
}

func savedKey(owner, name string) string {
	return savedPrefix + url.QueryEscape(owner) + "/" + url.QueryEscape(name)
}

// Save stores a search under a name of the caller and replaces an older search of that name. The caller must be allowed
// to run the search. It returns the errors of Find, and ErrInvalid for a bad name or too many saved searches.
func (s *Searcher) Save(ctx context.Context, c understudy.Caller, n query.SavedSearch) error {
	if s.o.KV == nil {
		return newInvalid("searches cannot be saved here")
	}
	if err := checkName(n.Name); err != nil {
		return err
	}
	if n.Request.Number != "" {
		return newInvalid("a number that was looked up can't be saved; look it up again when you need it")
	}
	n.Request.Cursor, n.Request.Limit, n.Request.Facets = "", 0, false
	if err := s.Check(c, n.Request); err != nil {
		return err
	}
	k := savedValue{n.Name, c.Name, n.Shared, n.Request.Text, n.Request.Source, n.Request.Kinds, n.Request.Sort, s.o.Now().Unix()}
	note := savedKey(k.Owner, k.Name)
	if len(note) > maxKeyBytes {
		return newInvalid("the name is too long; use at most %d letters", maxSavedName)
	}
	select {
	case s.saving <- struct{}{}:
		defer func() { <-s.saving }()
	case <-ctx.Done():
		return ctx.Err()
	}
	all, err := s.o.KV.ReadValues(ctx, savedPrefix)
	if err != nil {
		return fmt.Errorf("search: read saved searches: %w", err)
	}
	if _, there := all[note]; !there {
		own := 0
		for name := range all {
			if strings.HasPrefix(name, savedKey(k.Owner, "")) {
				own++
			}
		}
		if own >= s.o.Limits.MaxSavedEach || len(all) >= s.o.Limits.MaxSaved {
			return newInvalid("there are already %d saved searches, %d of them yours; delete one first", len(all), own)
		}
	}
	if err := understudy.WriteJSON(ctx, s.o.KV, note, k); err != nil {
		return fmt.Errorf("search: save %q: %w", k.Name, err)
	}
	return nil
}

func checkName(name string) error {
	switch n := utf8.RuneCountInString(name); {
	case name == "" || n > maxSavedName || !utf8.ValidString(name):
		return newInvalid("a name has 1 to %d characters", maxSavedName)
	case name == "." || name == "..": // a URL cannot end in these names, because clients resolve them as relative paths
		return newInvalid("name %q: write letters", name)
	case strings.TrimSpace(name) != name || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return newInvalid("name %q: write letters, digits and marks, without spaces around them", understudy.Clip(name))
	}
	return nil
}

// ListSaved returns the searches that a caller may open, its own first, sorted by name. It leaves out searches that the
// caller may not run. The role all sees every shared search, so that it can delete it.
func (s *Searcher) ListSaved(ctx context.Context, c understudy.Caller) ([]query.SavedSearch, error) {
	all := []query.SavedSearch{}
	if s.o.KV == nil {
		return all, nil
	}
	notes, err := s.o.KV.ReadValues(ctx, savedPrefix)
	if err != nil {
		return nil, fmt.Errorf("search: read saved searches: %w", err)
	}
	for note, value := range notes {
		var k savedValue
		if err := json.Unmarshal(value, &k); err != nil || savedKey(k.Owner, k.Name) != note {
			s.o.Logger.Error("search: a saved search is damaged", "note", note, "err", err)
			continue
		}
		if k.Owner != c.Name && !k.Shared {
			continue
		}
		n := k.search()
		if k.Owner != c.Name && c.Role() != understudy.RoleAll && s.Check(c, n.Request) != nil {
			continue // this caller does not see a field or kind that the search names
		}
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b query.SavedSearch) int {
		if (a.Owner == c.Name) != (b.Owner == c.Name) {
			if a.Owner == c.Name {
				return -1
			}
			return 1
		}
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Owner, b.Owner))
	})
	return all, nil
}

// FindSaved returns the search that an owner saved under a name, or ErrNotFound.
func (s *Searcher) FindSaved(ctx context.Context, owner, name string) (query.SavedSearch, error) {
	if s.o.KV == nil {
		return query.SavedSearch{}, fmt.Errorf(noSavedFormat, understudy.ErrNotFound, understudy.Clip(name))
	}
	var k savedValue
	err := understudy.ReadJSON(ctx, s.o.KV, savedKey(owner, name), &k)
	switch {
	case err != nil:
		return query.SavedSearch{}, fmt.Errorf("search: read %q: %w", understudy.Clip(name), err)
	case k.Name == "": // no search is stored under the name
		return query.SavedSearch{}, fmt.Errorf(noSavedFormat, understudy.ErrNotFound, understudy.Clip(name))
	}
	return k.search(), nil
}

func (k *savedValue) search() query.SavedSearch {
	return query.SavedSearch{
		Name: k.Name, Owner: k.Owner, Shared: k.Shared, At: unixTime(k.At),
		Request: query.SearchRequest{Text: k.Text, Source: k.Source, Kinds: k.Kinds, Sort: k.Sort},
	}
}

// Forget deletes a saved search of the caller, or returns ErrNotFound. The role all may delete any shared search.
func (s *Searcher) Forget(ctx context.Context, c understudy.Caller, name string) error {
	all, err := s.ListSaved(ctx, c)
	if err != nil {
		return err
	}
	for _, n := range all {
		if n.Name != name || n.Owner != c.Name && c.Role() != understudy.RoleAll {
			continue
		}
		if err := s.o.KV.SetValue(ctx, savedKey(n.Owner, n.Name), nil); err != nil {
			return fmt.Errorf("search: delete %q: %w", name, err)
		}
		return nil
	}
	return fmt.Errorf(noSavedFormat, understudy.ErrNotFound, understudy.Clip(name))
}

// PredefinedSearches returns the searches of the specs whose fields and kinds the caller sees completely. The list
// is computed once for each role and source.
func (s *Searcher) PredefinedSearches(c understudy.Caller) []query.PredefinedSearch {
	if !c.Grant.IsActive(s.o.Now()) {
		return nil
	}
	key := [2]string{c.Role(), c.Source}
	if kept, ok := s.predefined.Load(key); ok {
		return kept.([]query.PredefinedSearch)
	}
	all := s.loadPredefined(c)
	if c.Grant.IsActive(s.o.Now()) { // the list is kept only if the grant did not end during the computation
		s.predefined.Store(key, all)
	}
	return all
}

// loadPredefined checks every search of the specs and returns those that the caller may run.
func (s *Searcher) loadPredefined(c understudy.Caller) (all []query.PredefinedSearch) {
	for _, src := range s.o.Sources {
		if c.Source != "" && c.Source != src.Name {
			continue
		}
		for _, one := range src.Spec.Searches {
			r := query.PredefinedSearch{Source: src.Name, Name: one.Name, Title: one.Title, About: one.About, Sum: one.Sum, By: one.By,
				Search: query.SearchRequest{Text: one.Query, Kinds: one.Kinds}}
			if len(s.o.Sources) > 1 {
				r.Search.Source = src.Name
			}
			err := s.Check(c, r.Search)
			if err == nil && r.Sum != "" {
				err = s.CheckSum(c, query.SumRequest{Search: r.Search, Sum: r.Sum, By: r.By})
			}
			if err == nil {
				all = append(all, r)
			}
		}
	}
	return all
}
