// List: the page of a kind's records, newest first.

// Package list shows lists and searches of records, and exports them.
package list

import (
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/viewer/actions"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
)

// listPage is what list.html shows.
type listPage struct {
	Kind    *plan.Kind
	Heading string
	Scope   *page.Link // the record the list lies under
	Lacks   string     // what the reader must give before there is a list
	Pick    *page.Link // where to find it
	Tabs    []page.Link
	Tools   listTools
	Rollup  *rollup
	Table   page.Table
	Pages   pageLinks
	Counts  counts // those that are there when the page begins
	Parts   *page.Parts
	Kept    []template.HTML // all but AsOf, Came, Counts and Parts, as it was drawn before; nil: it is not
	Came    *provenance
	AsOf    *page.When
	Found   []string // what to know of records that were searched for
	Then    bool     // the page shows an earlier moment
	Part    bool     // the records held were searched, and they are not known to be all
	Live    *live    // nil: nothing changes in place
	Newest  bool     // the rows are newest first
}

// listTools are what a reader can do with a list.
type listTools struct {
	Form    form
	Columns columnForm
	Exports []download
	Makes   []page.Link // the actions that make a record
	Sync    []page.Link // to hold all of them
	Moment  *momentForm // nil: the kind has no past
	Select  selection
}

// pageLinks lead from a page of a list to the pages beside it.
type pageLinks struct {
	Newest, Newer, Older string
	NoOlder              string // why there is no way on, when there are older records
}

// download is one form of the list as data.
type download struct{ Href, Text, Hint string }

// newDownloads returns the forms of a list or a search; at is the address of a form.
func newDownloads(at func(form string) string) []download {
	return []download{
		{at(page.CsvSuffix), "CSV", "for spreadsheets"}, {at(page.DataSuffix), "JSON", "one document"}, {at(page.LinesSuffix), "JSON lines", ""},
	}
}

// listing is the page of one list.
type listing struct {
	q   *page.Exchange
	ask *listQuery
}

// exports are the forms a list can be had in: all of it as it is arranged, and the page as upstream wrote it.
func (lv listing) exports() []download {
	whole := *lv.ask
	whole.layout.columns, whole.layout.cursor = lv.chosen(), ""
	at := func(form string) string { return whole.address(form, lv.ask.filters(), nil) }
	all := newDownloads(at)
	if lv.ask.layout.searched() {
		return all
	}
	plain := *lv.ask
	plain.layout.columns = nil
	return append(all, download{plain.address(page.DataSuffix, lv.ask.query, nil), "This page alone", "JSON as " + lv.q.Source.Spec.Title +
		" wrote it"})
}

// Routes are the pages of lists; record shows a kind that is one thing.
func Routes(record page.Handler) []page.Route {
	serve := func(q *page.Exchange) error {
		if q.Kind.Single() && (q.Data == "" || q.Data == page.DataSuffix) {
			return record(q)
		}
		return serveList(q)
	}
	return []page.Route{{Pattern: "GET /{source}/{kind}", Handler: serve, Forms: []string{
		"GET /{source}/{kind}", "GET /{source}/{kind}.json", "GET /{source}/{kind}.csv", "GET /{source}/{kind}.jsonl",
	}}}
}

// serveList shows one page of a kind.
func serveList(q *page.Exchange) error {
	if len(q.Kind.PlannedLists) == 0 {
		return page.NotFound(plan.UpperFirst(q.Kind.Spec.Title)+" cannot be listed", "Open one by its address.", "")
	}
	ask, err := readListQuery(q)
	if err != nil {
		return err
	}
	l := listing{q, ask}
	if recalled := l.preferColumns(); recalled || !ask.tidy {
		tidy := ask.address(q.Data, ask.query, ask.back)
		if q.Data == "" {
			page.Redirect(q.Reply.W, q.R, tidy)
			return nil
		}
		q.Reply.W.Header().Set("Link", "<"+tidy+`>; rel="canonical"`) // RFC 6596
	}
	switch {
	case ask.target == nil:
		return l.lacking()
	case ask.layout.searched():
		return l.foundList()
	case q.Data == page.CsvSuffix, q.Data == page.LinesSuffix, q.Data == page.DataSuffix && len(ask.layout.columns) > 0:
		return l.exportList()
	}
	if err := q.Rights.Gate.Read(q.Rights.Caller, ask.target); err != nil {
		return err
	}
	rows := make(chan int, 1)
	counting := l.listCounting(rows)
	view, own, done, err := q.Open(ask.target, nil)
	if err != nil || done {
		return err
	}
	if n := len(q.Answer.Page.Rows); n > 0 {
		rows <- n
	} else {
		rows <- len(view.Rows())
	}
	marked := own.Wait(q)
	p := &listPage{AsOf: q.Clock.AgedAt(q.Answer), Came: l.provenance()}
	if q.Kind.Spec.Rollup == "" && view.Sum != [16]byte{} { // nothing in it goes by the clock but what is drawn for each view
		acts := append(actions.Made(q, q.Kind, nil), actions.Sync(q, q.Kind)...)
		of := q.Identity("list").With(q.V.Seed, view.Sum[:], q.Answer.Page.Next.URI, marked, acts, q.Rights.Looks(), ask.since)
		p.Kept, err = q.Reply.Keep(of, func() any { return l.listPage(view, marked) },
			"list-top", "list-order", "list-acts", "list-beside", "list-rows")
		if err != nil {
			return err
		}
	} else {
		p = l.listPage(view, marked)
	}
	p.Counts, p.Parts = makeCounts(q, "list", counting, "%s held", l.listFacets)
	return q.Render(http.StatusOK, "list", plan.UpperFirst(q.Kind.Spec.Title), p)
}

func (lv listing) listPage(view *access.View, own map[string]bool) *listPage {
	rows := view.Rows()
	p, s := lv.listRows(rows, own)
	p.AsOf = lv.q.Clock.AgedAt(lv.q.Answer)
	lv.paginate(p)
	if lv.ask.target.First && lv.q.Clock.AsOf.At.IsZero() {
		p.Rollup = lv.rollup(s, rows)
	}
	return p
}

// listRows returns a list's page with its rows, and how they are drawn.
func (lv listing) listRows(rows []access.Row, own map[string]bool) (*listPage, *page.CellContext) {
	p, s := lv.listFrame(), lv.q.CellContext(lv.q.Kind, lv.ask.vars, own)
	s.Filters = lv.q.Rights.PhoneFilters(lv.ask.list)
	p.Table = s.Table(p.Heading, lv.chosen(), rows)
	p.Table.ID = page.RowsID
	lv.sortable(&p.Table, rows)
	lv.selectRows(p, rows)
	p.Came, p.Live = lv.provenance(), lv.live()
	if p.Newest = len(rows) > 1 && lv.ask.layout.sort == nil && newestFirst(lv.q.Kind, rows); p.Newest {
		p.Table.Caption += ", newest first"
	}
	return p, s
}

// listFrame is what a list's page has around its rows.
func (lv listing) listFrame() *listPage {
	p := &listPage{
		Kind: lv.q.Kind, Heading: plan.UpperFirst(lv.q.Kind.Spec.Title), Tabs: lv.tabs(), Then: !lv.q.Clock.AsOf.At.IsZero(),
		Tools: listTools{Form: makeForm(lv.q, lv.ask), Columns: lv.columnForm(), Exports: lv.exports(),
			Makes: actions.Made(lv.q, lv.q.Kind, nil), Sync: actions.Sync(lv.q, lv.q.Kind), Moment: lv.momentForm()},
	}
	of := lv.ask.list.Under
	if id := of.Id(lv.ask.value(lv.q.Source)); id != "" && !lv.ask.layout.everywhere && lv.q.Rights.SeesKind(of.Kind) {
		p.Scope = &page.Link{Href: lv.q.Clock.AsOf.Keep(of.Kind.Href + "/" + url.PathEscape(id) + plan.WithQuery(plan.OwnVars(lv.ask.vars))),
			Text: of.Kind.Spec.One + " " + page.ShortID(id)}
	}
	return p
}

// lacking asks for the record the list lies under.
func (lv listing) lacking() error {
	if err := lv.q.Rights.Gate.Read(lv.q.Rights.Caller, lv.ask.list.Sample); err != nil {
		return err
	}
	names := strings.Join(lv.ask.lacks, " and ")
	if lv.q.Data != "" {
		return page.BadRequest("This list needs "+names, "Add it to the address.", lv.ask.lacks)
	}
	p := lv.listFrame()
	p.Lacks = names
	if of := lv.ask.list.Under.Kind; of != nil && of.Browsable() && lv.q.Rights.SeesKind(of) {
		p.Pick = &page.Link{Href: lv.q.Clock.AsOf.Keep(of.Href), Text: "Pick " + plan.Article(of.Spec.One)}
	}
	return lv.q.Render(http.StatusOK, "list", plan.UpperFirst(lv.q.Kind.Spec.Title), p)
}

func (lv listing) tabs() []page.Link {
	var tabs []page.Link
	for _, l := range lv.q.Kind.PlannedLists {
		switch {
		case l == lv.ask.list:
			tabs = append(tabs, page.Link{Href: lv.ask.address("", nil, nil), Text: l.TabTitle, Current: true})
		case !slices.ContainsFunc(l.Needs, func(name string) bool { return !plan.Has(lv.ask.vars, name) }):
			vars := lv.ask.vars.Without(func(p understudy.Param) bool { return !l.IsVar(p.Name) })
			tabs = append(tabs, page.Link{Href: (&listQuery{list: l, vars: vars, asOf: lv.ask.asOf,
				layout: arrangement{columns: lv.ask.layout.columns}}).address("", nil, nil), Text: l.TabTitle})
		}
	}
	if len(tabs) < 2 {
		return nil
	}
	return tabs
}

// paginate links the pages of a list. Upstream's tokens are made of ids: a caller that may
// not see ids gets no link to older pages.
func (lv listing) paginate(p *listPage) {
	paging := lv.ask.list.PagingStyle
	filters := lv.ask.query.Without(func(x understudy.Param) bool { return plan.IsPosition(paging, x.Name) })
	position := lv.ask.query.Without(func(x understudy.Param) bool { return !plan.IsPosition(paging, x.Name) })
	p.Pages = linkPages(position.String(), "", lv.ask.back, func(position string, back []string) string {
		query, err := understudy.ParseQuery(position)
		if err != nil {
			return ""
		}
		return lv.ask.address("", slices.Concat(filters, query), back)
	})
	if next := lv.q.Answer.Page.Next; !next.Zero() {
		for _, id := range lv.q.Kind.Spec.ID {
			if lv.q.Rights.Level(lv.q.Kind, id) != access.See {
				p.Pages.NoOlder = "Older pages are named by ids, which your role does not show. Narrow the filters instead."
				return
			}
		}
		t, err := lv.q.Source.Spec.Target(lv.q.Source.Name, next.Path(), next.Query())
		if err != nil || t.List != lv.ask.list.Spec {
			return
		}
		query := t.Query.Without(func(x understudy.Param) bool {
			return x.Name == paging.Size && x.Value == strconv.Itoa(paging.Default)
		})
		p.Pages.Older = lv.ask.address("", query, append(slices.Clone(lv.ask.back), position.String()))
	}
}

// linkPages returns the links from a page at a position, "" the newest; back holds the positions of newer pages, next is
// that of the older one.
func linkPages(here, next string, back []string, at func(position string, back []string) string) (p pageLinks) {
	if here != "" {
		p.Newest = at("", nil)
	}
	if n := len(back); n > 0 {
		p.Newer = at(back[n-1], back[:n-1])
	}
	if next != "" {
		p.Older = at(next, append(slices.Clone(back), here))
	}
	return p
}
