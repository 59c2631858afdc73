// The request of a search: parsed from an address, as a search, and as an address.

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

// The parameters of the search page.
const (
	searchText   = "q"
	searchKind   = "kind"   // a kind to search; may occur several times
	searchNarrow = "narrow" // a condition that a facet added; may occur several times
	searchSource = "source" // the only source to search
	searchSort   = "sort"   // newest (the default), oldest, rank, or a field
	searchCursor = "cursor"
	searchBack   = "back" // the cursors of the pages visited before; "" stands for the first page
	searchForm   = "form" // the open form: formSelect; links of the page do not contain it
)

// searchRequest is the address of a search.
type searchRequest struct {
	text        string
	source      string
	kinds       []string
	narrow      []string
	sort        string
	cursor      string
	back        []string
	form        string
	lookupToken string // the token of a number that is looked up; only cursor and back are set beside it
}

// orders are the orders that every search has.
var orders = []page.Option{{Value: "", Text: "newest first"}, {Value: "oldest", Text: "oldest first"},
	{Value: "rank", Text: "best match first"}}

// readSearchRequest parses the address of a search and ignores empty parameters of its form.
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
				return nil, page.NewUnknownWord("form", p.Value, []string{formSelect}, nil)
			}
		default:
			return nil, page.NewUnknownWord("parameter", p.Name,
				[]string{searchText, searchSource, searchKind, searchNarrow, searchSort, searchCursor, searchBack, searchForm}, nil)
		}
	}
	if s.sort == "newest" {
		s.sort = ""
	}
	if !isCommonOrder(s.sort) && orderField(q, s.sort) == nil {
		return nil, page.NewUnknownWord("order", s.sort, []string{"newest", "oldest", "rank"}, nil)
	}
	if len(s.narrow) > maxNarrow || len(s.kinds) > maxNarrow {
		return nil, page.NewBadRequest("These are too many conditions", "Remove some of them.", nil)
	}
	if len(s.back) > page.MaxBack {
		s.back = s.back[len(s.back)-page.MaxBack:]
	}
	return s, nil
}

// isCommonOrder reports whether every search has the order.
func isCommonOrder(sort string) bool {
	return slices.ContainsFunc(orders, func(o page.Option) bool { return o.Value == sort })
}

// orderField returns a column of the field by which an order sorts, of any kind. It returns nil if there is none.
func orderField(q *page.Exchange, sort string) *plan.Column {
	name := strings.TrimPrefix(sort, "-")
	for _, s := range q.V.Planned {
		for _, k := range s.Kinds {
			if c := k.ByField[name]; c != nil && q.Rights.CanSee(s) && q.Rights.CanSeeKind(k) {
				return c
			}
		}
	}
	return nil
}

// isPlain reports whether the request has only a text, which may name one page.
func (s *searchRequest) isPlain() bool {
	return s.source == "" && len(s.kinds) == 0 && len(s.narrow) == 0 && s.cursor == "" && s.form == ""
}

// joinConditions joins the typed text and the conditions of facets to one search text.
func joinConditions(text string, narrow []string) string {
	if len(narrow) == 0 {
		return text
	}
	var parts []string
	for _, part := range append([]string{text}, narrow...) {
		if part != "" {
			parts = append(parts, page.GroupCondition(part))
		}
	}
	return strings.Join(parts, " ")
}

// onlyKinds matches the condition that a record is of some kinds.
var onlyKinds = regexp.MustCompile(`^kind:[a-z0-9_]+(?:,[a-z0-9_]+)*$`)

// kindsIn returns the kinds to which the search form or a condition limits all matches. It returns nil if there is
// no such limit.
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

// address returns the address of a search, or of its data in a format.
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
	if s.lookupToken != "" {
		return lookupPath + "/" + s.lookupToken + plan.WithQuery(all)
	}
	return page.SearchAddress("/search"+form, query.SearchRequest{Text: s.text, Source: s.source, Kinds: s.kinds}, all...)
}

// first returns the same search without its position.
func (s *searchRequest) first() searchRequest {
	at := *s
	at.cursor, at.back = "", nil
	return at
}

// pages returns the links from the page of a search to other pages. next is the cursor of the older page.
func (s *searchRequest) pages(next string) pageLinks {
	return linkPages(s.cursor, next, s.back, func(cursor string, back []string) string {
		at := *s
		at.cursor, at.back = cursor, back
		return at.address("")
	})
}

// chips returns the conditions of a search.
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
