// The page of a list: a kind's records, newest first.

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

// listPage is the data of the template list.html.
type listPage struct {
	Kind        *plan.Kind
	Heading     string
	Parent      *page.Link // a link to the parent record of the list; nil if it has none
	MissingVars string     // the titles of the path variables that the reader must enter before the list can be shown
	ParentList  *page.Link // a link to the list in which the reader can find the parent record
	Tabs        []page.Link
	Tools       listTools
	Rollup      *rollup
	Table       page.Table
	Pages       pageLinks
	Counts      counts // the facets and the number of records, if they were ready when the page began
	Parts       *page.Parts
	// the rendered HTML of the page without AsOf, Provenance, Counts and Parts, if it was cached for an earlier
	// request; else nil
	CachedHTML      []template.HTML
	Provenance      *provenance
	AsOf            *page.When
	SearchNotes     []string // remarks about how the records were found
	ShowsPast       bool     // whether the page shows the data of an earlier moment
	MaybeIncomplete bool     // whether stored records were searched and some records of the kind may not be stored
	Live            *live    // how the open page updates itself; nil if it does not
	IsNewestFirst   bool     // whether the rows are sorted by time, newest first
}

// listTools are the links and forms above a list.
type listTools struct {
	Form          form
	Columns       columnForm
	Exports       []download
	CreateActions []page.Link // links to the actions that create a record
	SyncActions   []page.Link // links to the actions that store all records of the kind
	Moment        *momentForm // the form to show an earlier moment; nil if versions of the kind's records are not stored
	Select        selection
}

// pageLinks are links to the other pages of a list or search.
type pageLinks struct {
	Newest, Newer, Older string
	NoOlder              string // a sentence that says why the link to older records is missing; empty if it is not
}

// download is a link to a list in a data format.
type download struct{ Href, Text, Hint string }

// newDownloads returns links to a list or search in each data format. The function at returns the address for a format.
func newDownloads(at func(form string) string) []download {
	return []download{
		{at(page.CsvSuffix), "CSV", "for spreadsheets"}, {at(page.DataSuffix), "JSON", "one document"}, {at(page.LinesSuffix), "JSON lines", ""},
	}
}

// listing serves one list.
type listing struct {
	q   *page.Exchange
	ask *listQuery
}

// exports returns the links to the list in each data format, and to upstream's own response for the current page.
func (lv listing) exports() []download {
	whole := *lv.ask
	whole.arrangement.columns, whole.arrangement.cursor = lv.columns(), ""
	at := func(form string) string { return whole.address(form, lv.ask.filters(), nil) }
	all := newDownloads(at)
	if lv.ask.arrangement.isSearch() {
		return all
	}
	plain := *lv.ask
	plain.arrangement.columns = nil
	return append(all, download{plain.address(page.DataSuffix, lv.ask.query, nil), "Only this page",
		"JSON as " + lv.q.Source.Spec.Title + " sent it"})
}

// Routes returns the routes of lists. record shows the record of a kind that has only one.
func Routes(record page.Handler) []page.Route {
	serve := func(q *page.Exchange) error {
		if q.Kind.IsSingle() && (q.DataFormat == "" || q.DataFormat == page.DataSuffix) {
			return record(q)
		}
		return serveList(q)
	}
	return []page.Route{{Pattern: "GET /{source}/{kind}", Handler: serve, Forms: []string{
		"GET /{source}/{kind}", "GET /{source}/{kind}.json", "GET /{source}/{kind}.csv", "GET /{source}/{kind}.jsonl",
	}}}
}

// serveList shows one page of a list.
func serveList(q *page.Exchange) error {
	if len(q.Kind.PlannedLists) == 0 {
		return page.NewNotFound(plan.UpperFirst(q.Kind.Spec.Title)+" cannot be listed", "Open a single record by its address.", "")
	}
	ask, err := readListQuery(q)
	if err != nil {
		return err
	}
	l := listing{q, ask}
	if recalled := l.usePreferred(); recalled || !ask.isCanonical {
		tidy := ask.address(q.DataFormat, ask.query, ask.back)
		if q.DataFormat == "" {
			page.Redirect(q.Reply.W, q.R, tidy)
			return nil
		}
		q.Reply.W.Header().Set("Link", "<"+tidy+`>; rel="canonical"`) // the canonical link relation is defined in RFC 6596
	}
	switch {
	case ask.target == nil:
		return l.askParent()
	case ask.arrangement.isSearch():
		return l.serveSearchedList()
	case q.DataFormat == page.CsvSuffix, q.DataFormat == page.LinesSuffix, q.DataFormat == page.DataSuffix && len(ask.arrangement.columns) > 0:
		return l.exportList()
	}
	if err := q.Rights.Gate.CheckRead(q.Rights.Caller, ask.target); err != nil {
		return err
	}
	rows := make(chan int, 1)
	counting := l.startListCount(rows)
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
	p := &listPage{AsOf: q.Clock.AnswerTime(q.Answer), Provenance: l.provenance()}
	if q.Kind.Spec.Rollup == "" && view.Sum != [16]byte{} { // such HTML can be cached, because none of it depends on the time
		acts := append(actions.CreateLinks(q, q.Kind, nil), actions.SyncLinks(q, q.Kind)...)
		of := q.Identity("list").With(q.V.Seed, view.Sum[:], q.Answer.Page.Next.URI, marked, acts, q.Rights.CanLookUp(), ask.since)
		p.CachedHTML, err = q.Reply.RenderCached(of, func() any { return l.listPage(view, marked) },
			"list-top", "list-order", "list-acts", "list-beside", "list-rows")
		if err != nil {
			return err
		}
	} else {
		p = l.listPage(view, marked)
	}
	p.Counts, p.Parts = makeCounts(q, "list", counting, "%s stored", l.listFacets)
	return q.Render(http.StatusOK, "list", plan.UpperFirst(q.Kind.Spec.Title), p)
}

func (lv listing) listPage(view *access.View, own map[string]bool) *listPage {
	rows := view.Rows()
	p, s := lv.listRows(rows, own)
	p.AsOf = lv.q.Clock.AnswerTime(lv.q.Answer)
	lv.linkOtherPages(p)
	if lv.ask.target.First && lv.q.Clock.AsOf.At.IsZero() {
		p.Rollup = lv.rollup(s, rows)
	}
	return p
}

// listRows returns the data of a list's page with its rows, and the context with which their cells are drawn.
func (lv listing) listRows(rows []access.Row, own map[string]bool) (*listPage, *page.CellContext) {
	p, s := lv.listFrame(), lv.q.CellContext(lv.q.Kind, lv.ask.vars, own)
	s.Filters = lv.q.Rights.PhoneFilters(lv.ask.list)
	p.Table = s.Table(p.Heading, lv.columns(), rows)
	p.Table.ID = page.RowsID
	lv.linkHeadings(&p.Table, rows)
	if len(rows) > 0 && rows[0].ID != "" && lv.q.Kind.HasRecords() {
		at := lv.ask.address("", lv.ask.query, lv.ask.back)
		p.Tools.Select = newSelection(lv.q, at, paramForm, lv.ask.arrangement.form, lv.q.Rights.CanSeeNotes(lv.q.Source, lv.q.Clock.AsOf))
		if p.Tools.Select.IsOpen && p.Tools.Select.OpenHref != "" {
			p.Table.AddSelectBoxes(lv.q.Kind, rows)
		}
	}
	p.Provenance, p.Live = lv.provenance(), lv.liveUpdates()
	if p.IsNewestFirst = len(rows) > 1 && lv.ask.arrangement.sort == nil && isNewestFirst(lv.q.Kind, rows); p.IsNewestFirst {
		p.Table.Caption += ", newest first"
	}
	return p, s
}

// listFrame returns the data of a list's page without its rows.
func (lv listing) listFrame() *listPage {
	p := &listPage{
		Kind: lv.q.Kind, Heading: plan.UpperFirst(lv.q.Kind.Spec.Title), Tabs: lv.tabs(), ShowsPast: !lv.q.Clock.AsOf.At.IsZero(),
		Tools: listTools{Form: makeForm(lv.q, lv.ask), Columns: lv.columnForm(), Exports: lv.exports(),
			CreateActions: actions.CreateLinks(lv.q, lv.q.Kind, nil), SyncActions: actions.SyncLinks(lv.q, lv.q.Kind), Moment: lv.momentForm()},
	}
	of := lv.ask.list.Parent
	if id := of.Id(lv.ask.value(lv.q.Source)); id != "" && !lv.ask.arrangement.everywhere && lv.q.Rights.CanSeeKind(of.Kind) {
		p.Parent = &page.Link{Href: lv.q.Clock.AsOf.AddTo(of.Kind.Href + "/" + url.PathEscape(id) + plan.WithQuery(plan.OwnVars(lv.ask.vars))),
			Text: of.Kind.Spec.Singular + " " + page.ShortID(id)}
	}
	return p
}

// askParent shows a form for the id of the parent record, without which the list has no address upstream.
func (lv listing) askParent() error {
	if err := lv.q.Rights.Gate.CheckRead(lv.q.Rights.Caller, lv.ask.list.Sample); err != nil {
		return err
	}
	names := strings.Join(lv.ask.missing, " and ")
	if lv.q.DataFormat != "" {
		return page.NewBadRequest("This list needs "+names, "Add it to the address.", lv.ask.missing)
	}
	p := lv.listFrame()
	p.MissingVars = names
	if of := lv.ask.list.Parent.Kind; of != nil && of.IsBrowsable() && lv.q.Rights.CanSeeKind(of) {
		p.ParentList = &page.Link{Href: lv.q.Clock.AsOf.AddTo(of.Href), Text: "Pick " + plan.Article(of.Spec.Singular)}
	}
	return lv.q.Render(http.StatusOK, "list", plan.UpperFirst(lv.q.Kind.Spec.Title), p)
}

// tabs returns links to the kind's lists, or nil if the kind has only one.
func (lv listing) tabs() []page.Link {
	var tabs []page.Link
	for _, l := range lv.q.Kind.PlannedLists {
		switch {
		case l == lv.ask.list:
			tabs = append(tabs, page.Link{Href: lv.ask.address("", nil, nil), Text: l.TabTitle, Current: true})
		case !slices.ContainsFunc(l.Needs, func(name string) bool { return !plan.HasParam(lv.ask.vars, name) }):
			vars := lv.ask.vars.Remove(func(p understudy.Param) bool { return !l.IsVar(p.Name) })
			tabs = append(tabs, page.Link{Href: (&listQuery{list: l, vars: vars, asOf: lv.ask.asOf,
				arrangement: arrangement{columns: lv.ask.arrangement.columns}}).address("", nil, nil), Text: l.TabTitle})
		}
	}
	if len(tabs) < 2 {
		return nil
	}
	return tabs
}

// linkOtherPages sets the links to the other pages of a list. A caller who may not see ids gets no link to older
// pages, because upstream's page tokens contain ids.
func (lv listing) linkOtherPages(p *listPage) {
	paging := lv.ask.list.PagingStyle
	filters := lv.ask.query.Remove(func(x understudy.Param) bool { return plan.IsPosition(paging, x.Name) })
	position := lv.ask.query.Remove(func(x understudy.Param) bool { return !plan.IsPosition(paging, x.Name) })
	p.Pages = linkPages(position.String(), "", lv.ask.back, func(position string, back []string) string {
		query, err := understudy.ParseQuery(position)
		if err != nil {
			return ""
		}
		return lv.ask.address("", slices.Concat(filters, query), back)
	})
	if next := lv.q.Answer.Page.Next; !next.IsZero() {
		for _, id := range lv.q.Kind.Spec.ID {
			if lv.q.Rights.Level(lv.q.Kind, id) != access.See {
				p.Pages.NoOlder = "Older pages can't be opened, because their addresses contain ids that your role can't see. Use filters instead."
				return
			}
		}
		t, err := lv.q.Source.Spec.Resolve(lv.q.Source.Name, next.Path(), next.Query())
		if err != nil || t.List != lv.ask.list.Spec {
			return
		}
		query := t.Query.Remove(func(x understudy.Param) bool {
			return x.Name == paging.Size && x.Value == strconv.Itoa(paging.Default)
		})
		p.Pages.Older = lv.ask.address("", query, append(slices.Clone(lv.ask.back), position.String()))
	}
}

// linkPages returns links to the other pages of a list or search. here is the position of the current page, next that
// of the older page, and back has those of the newer pages. The empty position is the newest page.
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
