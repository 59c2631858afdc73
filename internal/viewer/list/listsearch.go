// Lists with an order or conditions that upstream does not support. They are searches in the stored records.

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

// conditions returns the search that finds the same records as a list: its path, its filters and its added
// conditions. ok is false if a search cannot express one of these.
func (lv listing) conditions() (ask query.SearchRequest, ok bool) {
	if lv.ask.target == nil || !lv.q.Kind.HasRecords() {
		return ask, false
	}
	ask.Text = joinConditions(lv.ask.arrangement.text, lv.ask.arrangement.narrow)
	if ask.Where, ok = lv.q.Rights.ListConditions(lv.ask.list, lv.ask.target, lv.ask.arrangement.everywhere); !ok {
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

// checkSearchable returns an error if the viewer cannot show this list by a search.
func (lv listing) checkSearchable() error {
	switch {
	case lv.q.V.Options.Search == nil:
		return page.NewBadRequest("Search is not available here", "This server has no search index. Lists have the API's order and filters.", nil)
	case !lv.q.Clock.AsOf.At.IsZero():
		return &page.Problem{
			Title: "Past data can't be searched", Hint: "Past lists have only the API's own order and filters.",
			Href: page.AddressWith(lv.q.R.URL, nil), Link: "See the current version", Kind: understudy.ErrInvalid,
		}
	}
	return nil
}

// makeSearch returns the search for a list, whose target the gate has permitted. It returns an error if the list
// cannot be searched.
func (lv listing) makeSearch() (query.SearchRequest, error) {
	ask, ok := lv.conditions()
	if !ok {
		return ask, page.NewBadRequest("This list can't be sorted or searched",
			"One of its filters works only in the API itself. Remove it.", nil)
	}
	ask.Source, ask.Kinds, ask.Sort = lv.q.Source.Name, []string{lv.q.Kind.Spec.Name}, lv.ask.arrangement.searchOrder(lv.q.Kind)
	return ask, nil
}

// searchOrder returns the order of the search. A cost is stored as a negative number and shown without the minus
// sign, so the largest shown cost is the smallest number.
func (a arrangement) searchOrder(k *plan.Kind) string {
	if a.sort != nil && a.sort.Spec.Show == spec.ShowCost {
		a.descending = !a.descending
	}
	if a.sort != nil && a.sort.Spec.Name == k.Spec.Clock && !a.descending {
		return "oldest"
	}
	return a.order()
}

// serveSearchedList shows a list that is a search in the stored records.
func (lv listing) serveSearchedList() error {
	if err := lv.checkSearchable(); err != nil {
		return err
	}
	if err := lv.q.Rights.Gate.CheckRead(lv.q.Rights.Caller, lv.ask.target); err != nil {
		return err
	}
	search, err := lv.makeSearch()
	if err != nil {
		return err
	}
	if lv.q.DataFormat != "" {
		return exportFound(lv.q, lv.q.Source.Name+"-"+lv.q.Kind.Spec.Name, search, lv.columns(), nil)
	}
	counting := startCount(lv.q, search, nil)
	search.Cursor, search.Limit = lv.ask.arrangement.cursor, min(lv.ask.pageSize(), query.MaxHits)
	own := lv.q.V.Numbers.Begin(lv.q)
	e := understudy.AuditEntry{Action: understudy.ActionSearch, Values: searchValues(search)}
	result, err := runSearch(lv.q, search, e, lv.explainRefusal)
	if err != nil {
		return err
	}
	var rows []access.Row
	for _, h := range lv.q.Rights.Hits(lv.q.Ctx, result) {
		rows = append(rows, h.Row)
	}
	p, _ := lv.listRows(rows, own.Wait(lv.q))
	p.SearchNotes = noteFound(lv.q, result, lv.q.Source, lv.q.Kind)
	p.MaybeIncomplete = result.Incomplete != ""
	p.Counts, p.Parts = makeCounts(lv.q, "list", counting, "%s stored", lv.listFacets)
	p.Pages = lv.ask.pages(result.Next)
	return lv.q.Render(200, "list", plan.UpperFirst(lv.q.Kind.Spec.Title), p)
}

// searchValues returns the text and the values of a search.
func searchValues(search query.SearchRequest) []string {
	all := []string{search.Text}
	for _, c := range search.Where {
		all = append(all, c.Value)
	}
	return all
}

// pageSize returns the number of rows on the list's page.
func (ask *listQuery) pageSize() int {
	size, _ := ask.query.Get(ask.list.PagingStyle.Size)
	n := 0
	for _, c := range size {
		if c < '0' || c > '9' || n > query.MaxHits {
			break
		}
		n = n*10 + int(c-'0')
	}
	n = cmp.Or(n, ask.list.PagingStyle.Default)
	return max(n, 1)
}

// pages returns links to the other pages of a searched list. next is the cursor of the older page.
func (ask *listQuery) pages(next string) pageLinks {
	position := func(cursor string) string {
		if cursor == "" {
			return ""
		}
		return understudy.Query{{Name: paramCursor, Value: cursor}}.String()
	}
	return linkPages(position(ask.arrangement.cursor), position(next), ask.back, func(position string, back []string) string {
		at := *ask
		query, err := understudy.ParseQuery(position)
		if err != nil {
			return ""
		}
		at.arrangement.cursor, _ = query.Get(paramCursor)
		return at.address("", ask.filters(), back)
	})
}

// explainRefusal returns an error for people about a search that failed because its condition is wrong or uses fields
// that the role may not see.
func (lv listing) explainRefusal(err error) error {
	wrong := page.FindSyntaxError(err)
	if wrong == nil {
		at := *lv.ask
		at.arrangement.cursor = ""
		return explainFailure(explainCursorError(err, lv.ask.arrangement.cursor, at.address("", lv.ask.filters(), nil)))
	}
	// the error marks a mistake only in the condition that the reader typed, not in those of facets
	if as := &lv.ask.arrangement; as.text != "" && len(as.narrow) > 0 {
		_, err := lv.q.V.Options.Search.Find(lv.q.Ctx, lv.q.Rights.Caller, query.SearchRequest{Text: as.text, Source: lv.q.Source.Name,
			Kinds: []string{lv.q.Kind.Spec.Name}, Limit: 1})
		if own := page.FindSyntaxError(err); own != nil {
			wrong = own
		}
	}
	plain := *lv.ask
	plain.arrangement = arrangement{columns: lv.ask.arrangement.columns}
	return &page.Problem{
		Title: "This can't be searched for", Hint: plan.UpperFirst(wrong.Why) + ".", Mistake: page.NewPointer(wrong),
		Href: plain.address("", lv.ask.query, nil), Link: "Without the condition", Kind: wrong.Kind,
	}
}

// explainFailure returns an error for people about a search that failed although its conditions are correct.
func explainFailure(err error) error {
	switch {
	case errors.Is(err, understudy.ErrIndexing):
		hint := "Lists in the API's own order still work."
		if _, how, ok := strings.Cut(err.Error(), understudy.ErrIndexing.Error()+": "); ok {
			hint = how + " records are in it. " + hint
		}
		return &page.Problem{Title: "The search index is being built", Hint: hint, Kind: understudy.ErrUnavailable}
	case errors.Is(err, understudy.ErrDamaged):
		return &page.Problem{Title: "The search does not work", Hint: page.Sentence(understudy.ErrDamaged), Kind: understudy.ErrUnavailable}
	case errors.Is(err, understudy.ErrUnavailable):
		return &page.Problem{Title: "Search is not available now", Hint: page.Sentence(err), Kind: understudy.ErrUnavailable}
	case errors.Is(err, context.DeadlineExceeded):
		return &page.Problem{Title: "This search takes too long", Hint: "Narrow it: add a kind, a status or a time.",
			Kind: understudy.ErrUnavailable}
	}
	return err
}
