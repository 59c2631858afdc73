// The search page. If the text is an id or a phone number, it redirects to the page of the record or number.

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

// searchPage is the data of the template search.html.
type searchPage struct {
	Typed        string
	Matches      []page.Link
	Sources      []searchable
	HasSearch    bool          // whether the search finds records by words
	Notes        bool          // whether the search includes notes on records
	HasLookup    bool          // whether the search box looks up phone numbers that the role hides
	Kinds        []page.Option // the kinds that can be searched
	Orders       []page.Option
	Source       string
	Narrow       []string
	Mistake      *page.Pointer // the position of a mistake in the typed text; nil if there is none
	Found        *foundPage    // what the search found; nil if there was nothing to search for
	Shelf        *shelf
	SpecSearches []page.SearchLink // searches that the specs define
}

// searchable says which ids and phone numbers of a source open a page when they are typed into the search box.
type searchable struct {
	Title    string
	Prefixes []prefixHelp
	Numbers  bool
}

type prefixHelp struct{ Prefix, Kind, Href string }

// maxTypedBytes is the length in bytes of the longest text that may be an id or a phone number. maxSearchBytes is that of the
// longest search, which has room for a hundred ids.
const maxTypedBytes, maxSearchBytes = 200, 6000

// serveSearch shows what a search finds. If the text is the id or number of one page, it redirects there; if of several, it
// links to them. Without a text it shows what can be typed. It reads records only if the id may belong to more than one kind.
func serveSearch(q *page.Exchange) error {
	s, err := readSearchRequest(q)
	if err != nil {
		return err
	}
	most := maxTypedBytes
	if q.V.Options.Search != nil {
		most = maxSearchBytes
	}
	if len(s.text) > most {
		return page.NewBadRequest("This is too long to search for", "Enter only an id, or only the words that matter.", nil)
	}
	q.SearchText = s.text
	var matches []page.Link
	if s.isPlain() && len(s.text) <= maxTypedBytes {
		matches = findMatches(q, s.text)
	}
	if q.DataFormat != "" {
		return searchView{q, s}.searchData(matches)
	}
	if len(matches) == 1 {
		page.Redirect(q.Reply.W, q.R, matches[0].Href)
		return nil
	}
	p := searchPage{Typed: s.text, Matches: matches, Sources: listSearchables(q), Source: s.source,
		HasSearch: q.V.Options.Search != nil, Notes: q.Rights.CanSeeAnyNotes(q.Clock.AsOf), HasLookup: q.Rights.CanLookUp(),
		Narrow: s.narrow}
	status, title := http.StatusOK, "Search"
	if p.HasSearch {
		p.Kinds, p.Orders = page.KindOptions(q, s.kinds), searchView{q, s}.orderOptions()
		if query := joinConditions(s.text, s.narrow); query != "" || len(s.kinds) > 0 || s.source != "" {
			if p.Found, p.Mistake, err = (searchView{q, s}).find(); err != nil {
				return err
			}
			title = understudy.Clip(query) + " · Search"
		}
		if p.Shelf, err = (searchView{q, s}).newShelf(p.Found != nil); err != nil {
			return err
		}
		p.SpecSearches = q.Rights.SpecSearches()
		if p.Found != nil && q.V.Options.Sums != nil {
			p.Found.SumsHref = page.SearchAddress(page.SumsPath, query.SearchRequest{
				Text: joinConditions(s.text, s.narrow), Source: s.source, Kinds: s.kinds})
		}
	}
	if p.Mistake != nil {
		status = understudy.Status(p.Mistake.Kind)
	}
	return q.Render(status, "search", title, p)
}

// searchView serves one search.
type searchView struct {
	q       *page.Exchange
	request *searchRequest
}

// searchData sends the result of a search in a data format. If the text may be the id or number of pages, it sends
// links to them instead.
func (sv searchView) searchData(matches []page.Link) error {
	if sv.q.V.Options.Search == nil && sv.q.DataFormat != page.DataSuffix {
		return page.NewNotFound("Search is not available here", "This server has no search index.", "")
	}
	if sv.q.V.Options.Search == nil || len(matches) > 0 && sv.q.DataFormat == page.DataSuffix ||
		joinConditions(sv.request.text, sv.request.narrow) == "" && len(sv.request.kinds) == 0 && sv.request.source == "" {
		type match struct {
			Href string `json:"href"`
			Text string `json:"text"`
		}
		if err := page.WriteAudit(sv.q, sv.entry()); err != nil {
			return err
		}
		all := []match{}
		for _, m := range matches {
			all = append(all, match{m.Href, m.Text})
		}
		return sv.q.SendJSON(map[string]any{"matches": all})
	}
	first := sv.request.first()
	err := exportFound(sv.q, "search", first.ask(), nil, foundFields(sv.q, first.source, first.kindsIn()))
	if wrong := page.FindSyntaxError(err); wrong != nil {
		return &page.Problem{Title: "This can't be searched for", Hint: fmt.Sprintf("Character %d: %s.", wrong.Character+1, wrong.Why),
			Kind: wrong.Kind}
	}
	return err
}

// orderOptions returns the orders that every search offers. It adds the nearest first if the query has near:, and the current order if that
// sorts by a field.
func (sv searchView) orderOptions() []page.Option {
	all := slices.Clone(commonOrders)
	if strings.Contains(joinConditions(sv.request.text, sv.request.narrow), nearestFirst+":") {
		all = append(all, page.Option{Value: nearestFirst, Text: "nearest first"})
	}
	if c := orderField(sv.q, sv.request.sort); c != nil && !isCommonOrder(sv.request.sort) {
		text := "by " + c.Words
		// a cost is shown without its minus sign, so its order is reversed
		if strings.HasPrefix(sv.request.sort, "-") != (c.Spec.Show == spec.ShowCost) {
			text += ", largest first"
		}
		all = append(all, page.Option{Value: sv.request.sort, Text: text})
	}
	for i := range all {
		all[i].Selected = all[i].Value == sv.request.sort
	}
	return all
}

// SearchRoutes returns the routes of searches.
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

// OpenSearch returns the handler that describes the search box to browsers (OpenSearch 1.1). It is open to everyone,
// because the description contains nothing about records.
func OpenSearch(v *page.Visitor) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := v.Origin(r)
		h := w.Header()
		h.Set("Content-Type", "application/opensearchdescription+xml")
		h.Set("Cache-Control", "private, max-age=3600")
		_, _ = w.Write([]byte(`<?xml version="1.0" encoding="UTF-8"?>
<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">
<ShortName>Understudy</ShortName>
<Description>Open a record by its id, or the page of a phone number</Description>
<Url type="text/html" template="` + html.EscapeString(origin) + `/search?q={searchTerms}"/>
</OpenSearchDescription>
`)) // the client may have closed the connection
	})
}
