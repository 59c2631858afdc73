// The search page's request, which is parsed from an address and can be written as one.

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
	searchKind   = "kind"   // the name of a kind in which to search; may occur several times
	searchNarrow = "narrow" // a search condition of a facet that the reader clicked; may occur several times
	searchSource = "source" // the name of the only source in which to search
	searchSort   = "sort"   // the order of the results: newest (the default), oldest, rank, or the name of a field
	searchCursor = "cursor"
	searchBack   = "back" // the cursor of a page that the reader visited before; "" stands for the first page
	searchForm   = "form" // the form that is open on the page, formSelect; links to other pages do not contain it
)

// searchRequest is the parsed address of a search.
type searchRequest struct {
	text        string
	source      string
	kinds       []string
	narrow      []string
	sort        string
	cursor      string
	back        []string
	form        string
	lookupToken string // the token of a phone number to look up; the request then has no fields but this, cursor and back
}

// commonOrders are the orders that every search offers.
var commonOrders = []page.Option{{Value: "", Text: "newest first"}, {Value: "oldest", Text: "oldest first"},
	{Value: "rank", Text: "best match first"}}

// nearestFirst is the order of a search with the condition near:, and the name of that condition.
const nearestFirst = "near"

// readSearchRequest parses the address of a search. It ignores empty parameters, which an empty input of the form causes.
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
			s.kinds = page.AppendUnique(s.kinds, p.Value)
		case searchNarrow:
			s.narrow = page.AppendUnique(s.narrow, p.Value)
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
	if !isCommonOrder(s.sort) && s.sort != nearestFirst && orderField(q, s.sort) == nil {
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

// isCommonOrder reports whether the order is one that every search offers.
func isCommonOrder(sort string) bool {
	return slices.ContainsFunc(commonOrders, func(o page.Option) bool { return o.Value == sort })
}

// orderField returns the column for the field by which an order sorts, whatever its kind. It returns nil if there is
// no such column.
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

// isPlain reports whether the request has nothing but a text. Such a text may be an id or a phone number that has a page.
func (s *searchRequest) isPlain() bool {
	return s.source == "" && len(s.kinds) == 0 && len(s.narrow) == 0 && s.cursor == "" && s.form == ""
}

// joinConditions returns one search text that contains the typed text and the conditions of facets.
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

// kindConditionPattern matches a search condition that a record is of one of some kinds.
var kindConditionPattern = regexp.MustCompile(`^kind:[a-z0-9_]+(?:,[a-z0-9_]+)*$`)

// kindsIn returns the kinds to which the form or a condition limits the search. It returns nil if nothing limits them.
func (s *searchRequest) kindsIn() []string {
	terms := strings.Fields(s.text)
	if strings.ContainsAny(s.text, `"()`) || slices.Contains(terms, "OR") || slices.Contains(terms, "NOT") {
		terms = nil
	}
	for _, term := range append(terms, s.narrow...) {
		if kindConditionPattern.MatchString(term) {
			return strings.Split(strings.TrimPrefix(term, "kind:"), ",")
		}
	}
	return s.kinds
}

func (s *searchRequest) ask() query.SearchRequest {
	return query.SearchRequest{Text: joinConditions(s.text, s.narrow), Source: s.source, Kinds: s.kinds, Sort: s.sort, Cursor: s.cursor}
}

// address returns the address of a search. form is a data format, or "" for the page.
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

// first returns the same search, but beginning with the first page.
func (s *searchRequest) first() searchRequest {
	at := *s
	at.cursor, at.back = "", nil
	return at
}

// pages returns links to the other pages of a search. next is the cursor of the older page.
func (s *searchRequest) pages(next string) pageLinks {
	return linkPages(s.cursor, next, s.back, func(cursor string, back []string) string {
		at := *s
		at.cursor, at.back = cursor, back
		return at.address("")
	})
}

// chips returns a chip for each condition of the search.
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
		all = append(all, chip{"In", q.V.FormatValue("kind", name, nil), at.address("")})
	}
	for i, term := range s.narrow {
		at := s.first()
		at.narrow = slices.Delete(slices.Clone(s.narrow), i, i+1)
		label, text := showCondition(q, term, nil)
		all = append(all, chip{label, text, at.address("")})
	}
	return all
}
