// Searched: a list that upstream has no such form of, found in the records that are held.

package list

import (
	"context"
	"errors"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/query"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// conditions are a list's path, filters and own condition as a search. ok is false
// when the search has no condition like one of them.
func (q listing) conditions() (ask query.SearchRequest, ok bool) {
	if q.ask.target == nil || !q.Kind.Remembered() {
		return ask, false
	}
	var texts []string
	for _, text := range append([]string{q.ask.text}, q.ask.narrow...) {
		if text != "" {
			texts = append(texts, page.Grouped(text))
		}
	}
	if ask.Text = q.ask.text; len(q.ask.narrow) > 0 {
		ask.Text = strings.Join(texts, " ")
	}
	if ask.Where, ok = q.ListConditions(q.ask.list, q.ask.target, q.ask.everywhere); !ok {
		return ask, false
	}
	for _, p := range q.ask.query {
		f := q.ask.list.Filter(p.Name)
		switch {
		case f != nil:
			c, ok := page.Condition(q.Kind.Field(f.Field), f, p.Value)
			if !ok {
				return ask, false
			}
			ask.Where = append(ask.Where, c)
		case p.Name != q.ask.list.PagingStyle.Size && !plan.IsPosition(q.ask.list.PagingStyle, p.Name):
			return ask, false
		}
	}
	return ask, true
}

// searchable is a problem when no list can be searched here.
func (q listing) searchable() error {
	switch {
	case !q.Findable():
		return page.BadRequest("Nothing can be searched here", "This server keeps no index; lists have upstream's order and filters.", nil)
	case !q.AsOf.At.IsZero():
		return &page.Problem{
			Title: "An earlier moment cannot be searched", Hint: "Lists of the past have upstream's order and filters alone.",
			Href: q.AddressWith(nil), Link: "See it as it is now", Kind: understudy.ErrInvalid,
		}
	}
	return nil
}

// searchAsk is a list as a search, of a target that the gate has let pass; a
// problem when it cannot be one.
func (q listing) searchAsk() (query.SearchRequest, error) {
	ask, ok := q.conditions()
	if !ok {
		return ask, page.BadRequest("This list cannot be sorted or searched",
			"One of its filters is known to upstream alone; take it out.", nil)
	}
	ask.Source, ask.Kinds, ask.Sort = q.Source.Name, []string{q.Kind.Name}, q.ask.searchOrder(q.Kind)
	return ask, nil
}

// searchOrder returns the order in the words of the search. A cost is shown without the sign that it has, so that the
// largest cost is the least number.
func (a arrangement) searchOrder(k *plan.Kind) string {
	if a.sort != nil && a.sort.Show == spec.ShowCost {
		a.down = !a.down
	}
	if a.sort != nil && a.sort.Name == k.Clock && !a.down {
		return "oldest"
	}
	return a.order()
}

// foundList is a list that upstream has no such form of.
func (q listing) foundList() error {
	if err := q.searchable(); err != nil {
		return err
	}
	if err := q.Gate.Read(q.Caller, q.ask.target); err != nil {
		return err
	}
	search, err := q.searchAsk()
	if err != nil {
		return err
	}
	if q.Data != "" {
		return exportFound(q.Exchange, q.Source.Name+"-"+q.Kind.Name, search, q.chosen(), nil)
	}
	counting := startCount(q.Exchange, search, nil)
	search.Cursor, search.Limit = q.ask.cursor, min(q.ask.pageSize(), query.MostHits)
	own := q.V.Numbers.Begin(q.Exchange)
	var result *query.SearchResult
	err = q.First(func(ctx context.Context) (err error) {
		result, err = q.V.Search.Find(ctx, q.Caller, search)
		return err
	}, nil)
	if err != nil {
		return q.refusedSearch(err)
	}
	e := understudy.AuditEntry{Action: understudy.ActionSearch, Values: valuesOf(search)}
	hits(&e, result)
	if err := page.Audit(q.Exchange, e); err != nil {
		return err
	}
	q.Found = true
	p := q.listFrame()
	s := q.CellContext(q.Kind, q.ask.vars, own.Wait(q.Exchange))
	s.Filters = q.PhoneFilters(q.ask.list)
	var rows []access.Row
	for _, h := range q.Hits(result) {
		rows = append(rows, h.Row)
	}
	p.Table = s.Table(p.Heading, q.chosen(), rows)
	p.Table.ID = page.RowsID
	q.sortable(&p.Table, rows)
	q.selectRows(p, rows)
	p.Live = q.live()
	p.Came = q.provenance()
	p.Found = noteFound(q.Exchange, result, q.Source, q.Kind)
	p.Part = result.Unheld != ""
	p.Counts, p.Parts = makeCounts(q.Exchange, "list", counting, "%s held", q.listFacets)
	q.turnFound(p, result)
	return q.Render(200, "list", plan.UpperFirst(q.Kind.Title), p)
}

// valuesOf are the words and values of a search.
func valuesOf(search query.SearchRequest) []string {
	all := []string{search.Text}
	for _, c := range search.Where {
		all = append(all, c.Value)
	}
	return all
}

// pageSize is how many rows the list's page has.
func (ask *listQuery) pageSize() int {
	size, _ := ask.query.Get(ask.list.PagingStyle.Size)
	n := 0
	for _, c := range size {
		if c < '0' || c > '9' || n > query.MostHits {
			break
		}
		n = n*10 + int(c-'0')
	}
	if n == 0 {
		n = ask.list.PagingStyle.Default
	}
	return max(n, 1)
}

// turnFound works out where the pages of a search lead.
func (q listing) turnFound(p *listPage, r *query.SearchResult) {
	at := *q.ask
	to := func(cursor string, back []string) string {
		at.cursor = cursor
		return at.address("", q.ask.filters(), back)
	}
	if q.ask.cursor != "" {
		p.Newest = to("", nil)
	}
	if n := len(q.ask.back); n > 0 {
		newer, err := understudy.ParseQuery(q.ask.back[n-1])
		cursor, _ := newer.Get(ownCursor)
		if err == nil {
			p.Newer = to(cursor, q.ask.back[:n-1])
		}
	}
	if r.Next != "" {
		here := ""
		if q.ask.cursor != "" {
			here = understudy.Query{{Name: ownCursor, Value: q.ask.cursor}}.String()
		}
		p.Older = to(r.Next, append(slices.Clone(q.ask.back), here))
	}
}

// refusedSearch is an error of the search's about a list: its condition cannot
// be understood, or says more than the role sees.
func (q listing) refusedSearch(err error) error {
	wrong := page.SyntaxOf(err)
	if wrong == nil {
		at := *q.ask
		at.cursor = ""
		return searchFailed(lostPlace(err, q.ask.cursor, at.address("", q.ask.filters(), nil)))
	}
	if q.ask.text != "" && len(q.ask.narrow) > 0 { // a mistake in what was typed is shown in that alone, without what facets add
		_, err := q.V.Search.Find(q.Ctx, q.Caller, query.SearchRequest{Text: q.ask.text, Source: q.Source.Name,
			Kinds: []string{q.Kind.Name}, Limit: 1})
		if own := page.SyntaxOf(err); own != nil {
			wrong = own
		}
	}
	plain := *q.ask
	plain.arrangement = arrangement{columns: q.ask.columns}
	return &page.Problem{
		Title: "This cannot be searched for", Hint: plan.UpperFirst(wrong.Why) + ".", Wrong: page.PointAt(wrong),
		Href: plain.address("", q.ask.query, nil), Link: "Without the condition", Kind: wrong.Kind,
	}
}

// searchFailed puts into words what keeps a search from an answer for now.
func searchFailed(err error) error {
	switch {
	case errors.Is(err, understudy.ErrIndexing):
		hint := "Lists in upstream's order are there meanwhile."
		if _, how, ok := strings.Cut(err.Error(), understudy.ErrIndexing.Error()+": "); ok {
			hint = how + " records are in it. " + hint
		}
		return &page.Problem{Title: "The index of the search is being built", Hint: hint, Kind: understudy.ErrUnavailable}
	case errors.Is(err, understudy.ErrDamaged):
		return &page.Problem{Title: "The search is broken", Hint: page.Sentence(understudy.ErrDamaged), Kind: understudy.ErrUnavailable}
	case errors.Is(err, understudy.ErrUnavailable):
		return &page.Problem{Title: "This cannot be searched now", Hint: page.Sentence(err), Kind: understudy.ErrUnavailable}
	case errors.Is(err, context.DeadlineExceeded):
		return &page.Problem{Title: "This search takes too long", Hint: "Say more closely what you look for: a kind, a state, a time.",
			Kind: understudy.ErrUnavailable}
	}
	return err
}
