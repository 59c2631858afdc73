// Search: from an id or a phone number to its page.

package viewer

import (
	"fmt"
	"html"
	"net/http"
	"slices"
	"strings"
	"understudy/internal/viewer/plan"
)

// searchPage is what search.html shows.
type searchPage struct {
	Typed   string
	Matches []link
	Sources []searchable
	Finds   bool     // words are searched for, too
	Kinds   []option // to look in
	Orders  []option
	Source  string
	Narrow  []string
	Wrong   *pointer   // a mistake in what was typed
	Found   *foundPage // nil: nothing was searched for
	Shelf   *shelf
}

// searchable is what can be typed of one source.
type searchable struct {
	Title    string
	Prefixes []prefixHelp
	Numbers  bool
}

type prefixHelp struct{ Prefix, Kind, Href string }

// maxTyped and maxSought bound what may be typed, in bytes: a name alone, and
// words where they are searched for.
const maxTyped, maxSought = 200, 2000

// serveSearch moves on to the one page that was meant, or shows those that may have
// been, what was found, or what can be typed. To find a page it looks at what was
// typed and at nothing held, but for ids two kinds could have.
func serveSearch(q *exchange) error {
	s, err := readSearchRequest(q)
	if err != nil {
		return err
	}
	most := maxTyped
	if q.v.Search != nil {
		most = maxSought
	}
	if len(s.text) > most {
		return badRequest("That is too long to search for", "Paste an id alone, or take the words that matter.", nil)
	}
	q.typed = s.text
	var matches []link
	if s.plain() && len(s.text) <= maxTyped {
		matches = pageMatcher{q}.matches(s.text)
	}
	if q.data != "" {
		return searchView{q, s}.searchData(matches)
	}
	if len(matches) == 1 {
		q.goBack(matches[0].Href)
		q.w.Header().Set("Cache-Control", "private, no-store")
		return nil
	}
	p := searchPage{Typed: s.text, Matches: matches, Sources: pageMatcher{q}.searchables(), Finds: q.v.Search != nil, Source: s.source, Narrow: s.narrow}
	status, title := http.StatusOK, "Search"
	if p.Finds {
		p.Kinds, p.Orders = searchView{q, s}.kindOptions(), searchView{q, s}.orderOptions()
		if query := s.query(); query != "" || len(s.kinds) > 0 || s.source != "" {
			if p.Found, p.Wrong, err = (searchView{q, s}).find(); err != nil {
				return err
			}
			title = clip(query) + " · Search"
		}
		if p.Shelf, err = (searchView{q, s}).shelf(p.Found != nil); err != nil {
			return err
		}
	}
	if p.Wrong != nil {
		status = statusOf(p.Wrong.kind)
	}
	return q.render(status, "search", title, p)
}

// searchView is the page of one search.
type searchView struct {
	*exchange
	s *searchRequest
}

// searchData is a search as data: the pages that may be meant, else all that is
// found.
func (q searchView) searchData(matches []link) error {
	if q.v.Search == nil && q.data != dataSuffix {
		return notFound("Nothing can be searched here", "This server keeps no index.", "")
	}
	if q.v.Search == nil || len(matches) > 0 && q.data == dataSuffix || q.s.query() == "" && len(q.s.kinds) == 0 && q.s.source == "" {
		type match struct {
			Href string `json:"href"`
			Text string `json:"text"`
		}
		all := []match{}
		for _, m := range matches {
			all = append(all, match{m.Href, m.Text})
		}
		return q.sendJSON(map[string]any{"matches": all})
	}
	first := q.s.first()
	err := exportFound(q.exchange, exportName(q.exchange, "search"), first.ask(), nil)
	if wrong := syntaxOf(err); wrong != nil {
		return &problem{Title: "This cannot be searched for", Hint: fmt.Sprintf("Character %d: %s.", wrong.Character+1, wrong.Why), kind: wrong.Kind}
	}
	return err
}

// kindOptions are the kinds to look in that the caller sees.
func (q searchView) kindOptions() []option {
	all := []option{{"", "everything", len(q.s.kinds) == 0}}
	for _, src := range q.v.sources {
		if !q.sees(src) {
			continue
		}
		for _, k := range src.Kinds {
			if k.Remembered() && q.seesKind(k) && !slices.ContainsFunc(all, func(o option) bool { return o.Value == k.Name }) {
				all = append(all, option{k.Name, plan.UpperFirst(k.Title), slices.Contains(q.s.kinds, k.Name)})
			}
		}
	}
	return all
}

// orderOptions are the orders of every search, and the one at hand when a search
// that was kept is by a field.
func (q searchView) orderOptions() []option {
	all := slices.Clone(orders)
	if c := orderField(q.exchange, q.s.sort); c != nil && !ordered(q.s.sort) {
		text := "by " + c.Words
		if strings.HasPrefix(q.s.sort, "-") {
			text += ", largest first"
		}
		all = append(all, option{Value: q.s.sort, Text: text})
	}
	for i := range all {
		all[i].Selected = all[i].Value == q.s.sort
	}
	return all
}

// searchRoutes are the pages of searches.
func searchRoutes() []route {
	return []route{
		{"GET /search", serveSearch, []string{"GET /search?q="}},
		{"GET /search.json", serveSearch, []string{"GET /search.json?q="}},
		{"GET /search.csv", serveSearch, []string{"GET /search.csv?q="}},
		{"GET /search.jsonl", serveSearch, []string{"GET /search.jsonl?q="}},
		{"POST /search/save", saveSearch, []string{"POST /search/save"}},
		{"POST /search/forget", forgetSearch, []string{"POST /search/forget"}},
	}
}

// openSearch describes the search box to browsers (OpenSearch 1.1). It says
// nothing of any record and is open to everyone.
func openSearch(v *Visitor) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := strings.TrimSuffix(v.PublicURL, "/")
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
`)) // the reader has gone; nobody is left to tell
	})
}
