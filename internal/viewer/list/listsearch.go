// Searched: a list that upstream has no such form of, found in the records that are held.

package list

import (
	"cmp"
	"context"
	"errors"
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
func (lv listing) conditions() (ask query.SearchRequest, ok bool) {
	if lv.ask.target == nil || !lv.q.Kind.Remembered() {
		return ask, false
	}
	ask.Text = joinConditions(lv.ask.layout.text, lv.ask.layout.narrow)
	if ask.Where, ok = lv.q.Rights.ListConditions(lv.ask.list, lv.ask.target, lv.ask.layout.everywhere); !ok {
		return ask, false
	}
	for _, p := range lv.ask.query {
		f := lv.ask.list.Spec.Filter(p.Name)
		switch {
		case f != nil:
			c, ok := page.Condition(lv.q.Kind.Spec.Field(f.Field), f, p.Value)
			if !ok {
				return ask, false
			}
			ask.Where = append(ask.Where, c)
		case p.Name != lv.ask.list.PagingStyle.Size && !plan.IsPosition(lv.ask.list.PagingStyle, p.Name):
			return ask, false
		}
	}
	return ask, true
}

// searchable is a problem when no list can be searched here.
func (lv listing) searchable() error {
	switch {
	case lv.q.V.Options.Search == nil:
		return page.BadRequest("Nothing can be searched here", "This server keeps no index; lists have upstream's order and filters.", nil)
	case !lv.q.Clock.AsOf.At.IsZero():
		return &page.Problem{
			Title: "An earlier moment cannot be searched", Hint: "Lists of the past have upstream's order and filters alone.",
			Href: page.AddressWith(lv.q.R.URL, nil), Link: "See it as it is now", Kind: understudy.ErrInvalid,
		}
	}
	return nil
}

// searchAsk is a list as a search, of a target that the gate has let pass; a
// problem when it cannot be one.
func (lv listing) searchAsk() (query.SearchRequest, error) {
	ask, ok := lv.conditions()
	if !ok {
		return ask, page.BadRequest("This list cannot be sorted or searched",
			"One of its filters is known to upstream alone; take it out.", nil)
	}
	ask.Source, ask.Kinds, ask.Sort = lv.q.Source.Name, []string{lv.q.Kind.Spec.Name}, lv.ask.layout.searchOrder(lv.q.Kind)
	return ask, nil
}

// searchOrder returns the order in the words of the search. A cost is shown without the sign that it has, so that the
// largest cost is the least number.
func (a arrangement) searchOrder(k *plan.Kind) string {
	if a.sort != nil && a.sort.Spec.Show == spec.ShowCost {
		a.down = !a.down
	}
	if a.sort != nil && a.sort.Spec.Name == k.Spec.Clock && !a.down {
		return "oldest"
	}
	return a.order()
}

// foundList is a list that upstream has no such form of.
func (lv listing) foundList() error {
	if err := lv.searchable(); err != nil {
		return err
	}
	if err := lv.q.Rights.Gate.Read(lv.q.Rights.Caller, lv.ask.target); err != nil {
		return err
	}
	search, err := lv.searchAsk()
	if err != nil {
		return err
	}
	if lv.q.Data != "" {
		return exportFound(lv.q, lv.q.Source.Name+"-"+lv.q.Kind.Spec.Name, search, lv.chosen(), nil)
	}
	counting := startCount(lv.q, search, nil)
	search.Cursor, search.Limit = lv.ask.layout.cursor, min(lv.ask.pageSize(), query.MostHits)
	own := lv.q.V.Numbers.Begin(lv.q)
	e := understudy.AuditEntry{Action: understudy.ActionSearch, Values: valuesOf(search)}
	result, err := runSearch(lv.q, search, e, lv.refusedSearch)
	if err != nil {
		return err
	}
	var rows []access.Row
	for _, h := range lv.q.Rights.Hits(lv.q.Ctx, result) {
		rows = append(rows, h.Row)
	}
	p, _ := lv.listRows(rows, own.Wait(lv.q))
	p.Found = noteFound(lv.q, result, lv.q.Source, lv.q.Kind)
	p.Part = result.Unheld != ""
	p.Counts, p.Parts = makeCounts(lv.q, "list", counting, "%s held", lv.listFacets)
	p.Pages = lv.ask.pages(result.Next)
	return lv.q.Render(200, "list", plan.UpperFirst(lv.q.Kind.Spec.Title), p)
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
	n = cmp.Or(n, ask.list.PagingStyle.Default)
	return max(n, 1)
}

// pages links the page of a list that was searched to those beside it; next is the cursor of the older one.
func (ask *listQuery) pages(next string) pageLinks {
	position := func(cursor string) string {
		if cursor == "" {
			return ""
		}
		return understudy.Query{{Name: ownCursor, Value: cursor}}.String()
	}
	return linkPages(position(ask.layout.cursor), position(next), ask.back, func(position string, back []string) string {
		at := *ask
		query, err := understudy.ParseQuery(position)
		if err != nil {
			return ""
		}
		at.layout.cursor, _ = query.Get(ownCursor)
		return at.address("", ask.filters(), back)
	})
}

// refusedSearch is an error of the search's about a list: its condition cannot
// be understood, or says more than the role sees.
func (lv listing) refusedSearch(err error) error {
	wrong := page.SyntaxOf(err)
	if wrong == nil {
		at := *lv.ask
		at.layout.cursor = ""
		return searchFailed(lostPlace(err, lv.ask.layout.cursor, at.address("", lv.ask.filters(), nil)))
	}
	if as := &lv.ask.layout; as.text != "" && len(as.narrow) > 0 { // a mistake in what was typed is shown in that alone
		_, err := lv.q.V.Options.Search.Find(lv.q.Ctx, lv.q.Rights.Caller, query.SearchRequest{Text: as.text, Source: lv.q.Source.Name,
			Kinds: []string{lv.q.Kind.Spec.Name}, Limit: 1})
		if own := page.SyntaxOf(err); own != nil {
			wrong = own
		}
	}
	plain := *lv.ask
	plain.layout = arrangement{columns: lv.ask.layout.columns}
	return &page.Problem{
		Title: "This cannot be searched for", Hint: plan.UpperFirst(wrong.Why) + ".", Wrong: page.PointAt(wrong),
		Href: plain.address("", lv.ask.query, nil), Link: "Without the condition", Kind: wrong.Kind,
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
