// Search request: what is asked, as it was typed, as it is asked and as an address.

package list

import (
	"regexp"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
)

// Parameters of the page of searches.
const (
	searchText   = "q"
	searchKind   = "kind"   // a kind to look in; may come several times
	searchNarrow = "narrow" // a condition that a facet added; may come several times
	searchSource = "source" // the one source to look in
	searchSort   = "sort"   // newest (default), oldest, rank, or a field
	searchCursor = "cursor"
	searchBack   = "back" // cursors of the pages on the way here, "" the first
	searchForm   = "form" // the form that stands open: formSelect; no address of ours keeps it
)

// searchRequest is the address of a search, read.
type searchRequest struct {
	text   string
	source string
	kinds  []string
	narrow []string
	sort   string
	cursor string
	back   []string
	form   string
	looked string // the token of a number that is looked up, in place of all but cursor and back
}

// orders are those of a search, by their word.
var orders = []page.Option{{Value: "", Text: "newest first"}, {Value: "oldest", Text: "oldest first"},
	{Value: "rank", Text: "best match first"}}

// searchRequest reads a search's address; empty parameters of a form are left out.
func readSearchRequest(q *page.Exchange) (*searchRequest, error) {
	params, err := understudy.ParseQuery(q.R.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	s := &searchRequest{}
	for _, p := range params {
		switch p.Name {
		case searchText:
			s.text = strings.TrimSpace(p.Value)
		case searchSource:
			s.source = p.Value
		case searchKind:
			s.kinds = page.AppendNew(s.kinds, p.Value)
		case searchNarrow:
			s.narrow = page.AppendNew(s.narrow, p.Value)
		case searchSort:
			s.sort = p.Value
		case searchCursor:
			s.cursor = p.Value
		case searchBack:
			s.back = append(s.back, p.Value)
		case searchForm:
			if s.form = p.Value; s.form != formSelect {
				return nil, page.UnknownWord("form", p.Value, []string{formSelect}, nil)
			}
		default:
			return nil, page.UnknownWord("parameter", p.Name,
				[]string{searchText, searchSource, searchKind, searchNarrow, searchSort, searchCursor, searchBack, searchForm}, nil)
		}
	}
	if s.sort == "newest" {
		s.sort = ""
	}
	if !ordered(s.sort) && orderField(q, s.sort) == nil {
		return nil, page.UnknownWord("order", s.sort, []string{"newest", "oldest", "rank"}, nil)
	}
	if len(s.narrow) > mostNarrow || len(s.kinds) > mostNarrow {
		return nil, page.BadRequest("That are too many conditions", "Take some of them away.", nil)
	}
	if len(s.back) > page.MaxBack {
		s.back = s.back[len(s.back)-page.MaxBack:]
	}
	return s, nil
}

// ordered reports whether an order is one that every search has.
func ordered(sort string) bool {
	return slices.ContainsFunc(orders, func(o page.Option) bool { return o.Value == sort })
}

// fieldOf is a column by whose field an order is, of any kind; nil when there is
// none.
func orderField(q *page.Exchange, sort string) *plan.Column {
	name := strings.TrimPrefix(sort, "-")
	for _, s := range q.V.Planned {
		for _, k := range s.Kinds {
			if c := k.ByField[name]; c != nil && q.Rights.Sees(s) && q.Rights.SeesKind(k) {
				return c
			}
		}
	}
	return nil
}

// plain reports whether nothing but a text is asked: it may name one page.
func (s *searchRequest) plain() bool {
	return s.source == "" && len(s.kinds) == 0 && len(s.narrow) == 0 && s.cursor == "" && s.form == ""
}

// joinConditions returns what was typed and the conditions that facets added, as one text of the search.
func joinConditions(text string, narrow []string) string {
	if len(narrow) == 0 {
		return text
	}
	var parts []string
	for _, part := range append([]string{text}, narrow...) {
		if part != "" {
			parts = append(parts, page.Grouped(part))
		}
	}
	return strings.Join(parts, " ")
}

// onlyKinds matches the condition that a record is of some kinds.
var onlyKinds = regexp.MustCompile(`^kind:[a-z0-9_]+(?:,[a-z0-9_]+)*$`)

// kindsIn returns the kinds that a search is limited to by its form or by a condition that holds for every match, none where
// there is no such limit.
func (s *searchRequest) kindsIn() []string {
	terms := strings.Fields(s.text)
	if strings.ContainsAny(s.text, `"()`) || slices.Contains(terms, "OR") || slices.Contains(terms, "NOT") {
		terms = nil
	}
	for _, term := range append(terms, s.narrow...) {
		if onlyKinds.MatchString(term) {
			return strings.Split(strings.TrimPrefix(term, "kind:"), ",")
		}
	}
	return s.kinds
}

func (s *searchRequest) ask() query.SearchRequest {
	return query.SearchRequest{Text: joinConditions(s.text, s.narrow), Source: s.source, Kinds: s.kinds, Sort: s.sort, Cursor: s.cursor}
}

// address is the page of a search, or of its data.
func (s *searchRequest) address(form string) string {
	var all understudy.Query
	add := func(name string, values ...string) {
		for _, v := range values {
			all = append(all, understudy.Param{Name: name, Value: v})
		}
	}
	add(searchNarrow, s.narrow...)
	if s.sort != "" {
		add(searchSort, s.sort)
	}
	if s.cursor != "" {
		add(searchCursor, s.cursor)
	}
	add(searchBack, s.back...)
	if s.looked != "" {
		return lookupPath + "/" + s.looked + plan.WithQuery(all)
	}
	return page.SearchAddress("/search"+form, query.SearchRequest{Text: s.text, Source: s.source, Kinds: s.kinds}, all...)
}

// first is the same search, from its beginning.
func (s *searchRequest) first() searchRequest {
	at := *s
	at.cursor, at.back = "", nil
	return at
}

// pages links the page of a search to those beside it; next is the cursor of the older one.
func (s *searchRequest) pages(next string) pageLinks {
	return linkPages(s.cursor, next, s.back, func(cursor string, back []string) string {
		at := *s
		at.cursor, at.back = cursor, back
		return at.address("")
	})
}

// chips are what a search is narrowed by.
func (s *searchRequest) chips(q *page.Exchange) []chip {
	var all []chip
	if s.source != "" {
		at, title := s.first(), s.source
		if src := q.V.ByName[s.source]; src != nil {
			title = src.Spec.Title
		}
		at.source = ""
		all = append(all, chip{"In", title, at.address("")})
	}
	for i, name := range s.kinds {
		at := s.first()
		at.kinds = slices.Delete(slices.Clone(s.kinds), i, i+1)
		all = append(all, chip{"In", q.V.ShowValue("kind", name, nil), at.address("")})
	}
	for i, term := range s.narrow {
		at := s.first()
		at.narrow = slices.Delete(slices.Clone(s.narrow), i, i+1)
		label, text := showCondition(q, term, nil)
		all = append(all, chip{label, text, at.address("")})
	}
	return all
}
