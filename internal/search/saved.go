// Saved: searches kept under names.

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
	maxSavedName  = 60 // characters
	maxKey        = 512
	errNoSavedFor = "search: %w: there is no saved search %q; understudy search --saved lists them"
)

// savedValue is a saved search as a value holds it.
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

func kvName(owner, name string) string {
	return savedPrefix + url.QueryEscape(owner) + "/" + url.QueryEscape(name)
}

// Save keeps a search under a name of the caller and replaces an older one of that name. The caller must be allowed
// to search by its text. Errors: as Find, and ErrInvalid for an unreadable name or too many searches.
func (s *Searcher) Save(ctx context.Context, c understudy.Caller, n query.SavedSearch) error {
	if s.o.KV == nil {
		return invalid("searches cannot be saved here")
	}
	if err := checkName(n.Name); err != nil {
		return err
	}
	if n.Request.Number != "" {
		return invalid("a number that was looked up is not saved; look it up again when you need it")
	}
	n.Request.Cursor, n.Request.Limit, n.Request.Facets = "", 0, false
	if err := s.Check(c, n.Request); err != nil {
		return err
	}
	k := savedValue{n.Name, c.Name, n.Shared, n.Request.Text, n.Request.Source, n.Request.Kinds, n.Request.Sort, s.o.Now().Unix()}
	note := kvName(k.Owner, k.Name)
	if len(note) > maxKey {
		return invalid("the name is too long; use at most %d letters", maxSavedName)
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
			if strings.HasPrefix(name, kvName(k.Owner, "")) {
				own++
			}
		}
		if own >= s.o.Limits.SavedEach || len(all) >= s.o.Limits.Saved {
			return invalid("there are %d saved searches, %d of them yours, and no more are kept; delete one first", len(all), own)
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
		return invalid("a name has 1 to %d characters", maxSavedName)
	case name == "." || name == "..": // no address can end in them
		return invalid("name %q: write letters", name)
	case strings.TrimSpace(name) != name || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return invalid("name %q: write letters, digits and marks, without spaces around them", understudy.Clip(name))
	}
	return nil
}

// Saved are the searches a caller may open, its own first, sorted by name. It sees only
// searches that it may run itself. The role all sees every shared one, to delete it.
func (s *Searcher) Saved(ctx context.Context, c understudy.Caller) ([]query.SavedSearch, error) {
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
		if err := json.Unmarshal(value, &k); err != nil || kvName(k.Owner, k.Name) != note {
			s.o.Logger.Error("search: a saved search cannot be read", "note", note, "err", err)
			continue
		}
		if k.Owner != c.Name && !k.Shared {
			continue
		}
		n := k.search()
		if k.Owner != c.Name && c.Role() != understudy.RoleAll && s.Check(c, n.Request) != nil {
			continue // it names a field or kind that this caller does not see
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

// Own is the search that an owner keeps under a name. ErrNotFound: there is none.
func (s *Searcher) Own(ctx context.Context, owner, name string) (query.SavedSearch, error) {
	if s.o.KV == nil {
		return query.SavedSearch{}, fmt.Errorf(errNoSavedFor, understudy.ErrNotFound, understudy.Clip(name))
	}
	var k savedValue
	err := understudy.ReadJSON(ctx, s.o.KV, kvName(owner, name), &k)
	switch {
	case err != nil:
		return query.SavedSearch{}, fmt.Errorf("search: read %q: %w", understudy.Clip(name), err)
	case k.Name == "": // there is none
		return query.SavedSearch{}, fmt.Errorf(errNoSavedFor, understudy.ErrNotFound, understudy.Clip(name))
	}
	return k.search(), nil
}

func (k *savedValue) search() query.SavedSearch {
	return query.SavedSearch{
		Name: k.Name, Owner: k.Owner, Shared: k.Shared, At: unix(k.At),
		Request: query.SearchRequest{Text: k.Text, Source: k.Source, Kinds: k.Kinds, Sort: k.Sort},
	}
}

// Forget deletes a saved search of the caller, ErrNotFound when it has none of that
// name. The role all may delete any shared search.
func (s *Searcher) Forget(ctx context.Context, c understudy.Caller, name string) error {
	all, err := s.Saved(ctx, c)
	if err != nil {
		return err
	}
	for _, n := range all {
		if n.Name != name || n.Owner != c.Name && c.Role() != understudy.RoleAll {
			continue
		}
		if err := s.o.KV.SetValue(ctx, kvName(n.Owner, n.Name), nil); err != nil {
			return fmt.Errorf("search: delete %q: %w", name, err)
		}
		return nil
	}
	return fmt.Errorf(errNoSavedFor, understudy.ErrNotFound, understudy.Clip(name))
}

// Ready returns the searches that the specs bring along, of which the caller may see everything.
// The searcher looks them up once for each role and source.
func (s *Searcher) Ready(c understudy.Caller) []query.PredefinedSearch {
	if !c.Grant.IsActive(s.o.Now()) {
		return nil
	}
	key := [2]string{c.Role(), c.Source}
	if kept, ok := s.ready.Load(key); ok {
		return kept.([]query.PredefinedSearch)
	}
	all := s.readySearches(c)
	if c.Grant.IsActive(s.o.Now()) { // it did not end meanwhile
		s.ready.Store(key, all)
	}
	return all
}

func (s *Searcher) readySearches(c understudy.Caller) (all []query.PredefinedSearch) {
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
