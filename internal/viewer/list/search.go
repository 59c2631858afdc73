// Search: from an id or a phone number to its page.

package list

import (
	"fmt"
	"html"
	"net/http"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/viewer/page"
	"understudy/spec"
)

// searchPage is what search.html shows.
type searchPage struct {
	Typed   string
	Matches []page.Link
	Sources []searchable
	Finds   bool          // by words
	Notes   bool          // what people wrote on records is searched
	Looks   bool          // numbers that the role does not show are found by the box
	Kinds   []page.Option // to look in
	Orders  []page.Option
	Source  string
	Narrow  []string
	Wrong   *page.Pointer // a mistake in what was typed
	Found   *foundPage    // nil: nothing was searched for
	Shelf   *shelf
	Ready   []page.Ready // searches that the specs bring along
}

// searchable is what can be typed of one source.
type searchable struct {
	Title    string
	Prefixes []prefixHelp
	Numbers  bool
}

type prefixHelp struct{ Prefix, Kind, Href string }

// maxTyped and maxSought bound what may be typed, in bytes: a name alone, and
// words where they are searched for; a hundred ids fit.
const maxTyped, maxSought = 200, 6000

// serveSearch moves on to the one page that was meant, or shows those that may have
// been, what was found, or what can be typed. To find a page it looks at what was
// typed and at nothing held, but for ids two kinds could have.
func serveSearch(q *page.Exchange) error {
	s, err := readSearchRequest(q)
	if err != nil {
		return err
	}
	most := maxTyped
	if q.V.Options.Search != nil {
		most = maxSought
	}
	if len(s.text) > most {
		return page.BadRequest("That is too long to search for", "Paste an id alone, or take the words that matter.", nil)
	}
	q.Typed = s.text
	var matches []page.Link
	if s.plain() && len(s.text) <= maxTyped {
		matches = findMatches(q, s.text)
	}
	if q.Data != "" {
		return searchView{q, s}.searchData(matches)
	}
	if len(matches) == 1 {
		page.Redirect(q.Reply.W, q.R, matches[0].Href)
		return nil
	}
	p := searchPage{Typed: s.text, Matches: matches, Sources: listSearchables(q), Source: s.source,
		Finds: q.V.Options.Search != nil, Notes: q.Rights.SeesAnyNotes(q.Clock.AsOf), Looks: q.Rights.Looks(),
		Narrow: s.narrow}
	status, title := http.StatusOK, "Search"
	if p.Finds {
		p.Kinds, p.Orders = page.KindOptions(q, s.kinds), searchView{q, s}.orderOptions()
		if query := joinConditions(s.text, s.narrow); query != "" || len(s.kinds) > 0 || s.source != "" {
			if p.Found, p.Wrong, err = (searchView{q, s}).find(); err != nil {
				return err
			}
			title = understudy.Clip(query) + " · Search"
		}
		if p.Shelf, err = (searchView{q, s}).shelf(p.Found != nil); err != nil {
			return err
		}
		p.Ready = q.Rights.ReadySearches()
		if p.Found != nil && q.V.Options.Sums != nil {
			p.Found.Sums = page.SearchAddress(page.SumsPath, query.SearchRequest{
				Text: joinConditions(s.text, s.narrow), Source: s.source, Kinds: s.kinds})
		}
	}
	if p.Wrong != nil {
		status = understudy.Status(p.Wrong.Kind)
	}
	return q.Render(status, "search", title, p)
}

// searchView is the page of one search.
type searchView struct {
	q *page.Exchange
	s *searchRequest
}

// searchData is a search as data: the pages that may be meant, else all that is
// found.
func (sv searchView) searchData(matches []page.Link) error {
	if sv.q.V.Options.Search == nil && sv.q.Data != page.DataSuffix {
		return page.NotFound("Nothing can be searched here", "This server keeps no index.", "")
	}
	if sv.q.V.Options.Search == nil || len(matches) > 0 && sv.q.Data == page.DataSuffix ||
		joinConditions(sv.s.text, sv.s.narrow) == "" && len(sv.s.kinds) == 0 && sv.s.source == "" {
		type match struct {
			Href string `json:"href"`
			Text string `json:"text"`
		}
		if err := page.Audit(sv.q, sv.entry()); err != nil {
			return err
		}
		all := []match{}
		for _, m := range matches {
			all = append(all, match{m.Href, m.Text})
		}
		return sv.q.SendJSON(map[string]any{"matches": all})
	}
	first := sv.s.first()
	err := exportFound(sv.q, "search", first.ask(), nil, foundFields(sv.q, first.source, first.kindsIn()))
	if wrong := page.SyntaxOf(err); wrong != nil {
		return &page.Problem{Title: "This cannot be searched for", Hint: fmt.Sprintf("Character %d: %s.", wrong.Character+1, wrong.Why),
			Kind: wrong.Kind}
	}
	return err
}

// orderOptions are the orders of every search, and the one at hand when a search
// that was kept is by a field.
func (sv searchView) orderOptions() []page.Option {
	all := slices.Clone(orders)
	if c := orderField(sv.q, sv.s.sort); c != nil && !ordered(sv.s.sort) {
		text := "by " + c.Words
		if strings.HasPrefix(sv.s.sort, "-") != (c.Spec.Show == spec.ShowCost) { // a cost is shown without its sign
			text += ", largest first"
		}
		all = append(all, page.Option{Value: sv.s.sort, Text: text})
	}
	for i := range all {
		all[i].Selected = all[i].Value == sv.s.sort
	}
	return all
}

// SearchRoutes are the pages of searches.
func SearchRoutes() []page.Route {
	return []page.Route{
		{Pattern: "GET /search", Handler: serveSearch, Forms: []string{"GET /search?q="}},
		{Pattern: "GET /search.json", Handler: serveSearch, Forms: []string{"GET /search.json?q="}},
		{Pattern: "GET /search.csv", Handler: serveSearch, Forms: []string{"GET /search.csv?q="}},
		{Pattern: "GET /search.jsonl", Handler: serveSearch, Forms: []string{"GET /search.jsonl?q="}},
		{Pattern: "GET /search/complete", Handler: serveComplete, Forms: []string{"GET /search/complete?word="}},
		{Pattern: "POST /search/view", Handler: setView, Forms: []string{"POST /search/view"}},
		{Pattern: "POST /search/save", Handler: saveSearch, Forms: []string{"POST /search/save"}},
		{Pattern: "POST /search/forget", Handler: forgetSearch, Forms: []string{"POST /search/forget"}},
	}
}

// OpenSearch describes the search box to browsers (OpenSearch 1.1). It says
// nothing of any record and is open to everyone.
func OpenSearch(v *page.Visitor) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := strings.TrimSuffix(v.Options.PublicURL, "/")
		if origin == "" {
			origin = "http://" + r.Host
			if r.TLS != nil {
				origin = "https://" + r.Host
			}
		}
		h := w.Header()
		h.Set("Content-Type", "application/opensearchdescription+xml")
		h.Set("Cache-Control", "private, max-age=3600")
		_, _ = w.Write([]byte(`<?xml version="1.0" encoding="UTF-8"?>
<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">
<ShortName>Understudy</ShortName>
<Description>Open a record by its id, or the page of a phone number</Description>
<Url type="text/html" template="` + html.EscapeString(origin) + `/search?q={searchTerms}"/>
</OpenSearchDescription>
`)) // the reader has gone
	})
}
