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
	listHead
	listTools
	Rollup *rollup
	Table  page.Table
	turning
	Counts counts // those that are there when the page begins
	Parts  *page.Parts
	Kept   []template.HTML // all but AsOf, Came, Counts and Parts, as it was drawn before; nil: it is not
	Came   *provenance
	AsOf   *page.When
	listOrigin
}

// listHead names a list.
type listHead struct {
	Kind    *plan.Kind
	Heading string
	Scope   *page.Link // the record the list lies under
	Lacks   string     // what the reader must give before there is a list
	Pick    *page.Link // where to find it
	Tabs    []page.Link
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

// listOrigin is where the rows of a list come from.
type listOrigin struct {
	Found []string // what to know of records that were searched for
	Then  bool     // the page shows an earlier moment
	Part  bool     // the records held were searched, and they are not known to be all
	Live  *live    // nil: nothing changes in place
}

// turning is where the pages of a list lead.
type turning struct {
	Newest, Newer, Older string
	NoOlder              string // why there is no way on, when there are older records
}

// download is one form of the list as data.
type download struct{ Href, Text, Hint string }

// listing is the page of one list.
type listing struct {
	*page.Exchange
	ask *listQuery
}

// exports are the forms a list can be had in: all of it as it is arranged, and
// the page as upstream wrote it.
func (q listing) exports() []download {
	whole := *q.ask
	whole.columns, whole.cursor = q.chosen(), ""
	at := func(form string) string { return whole.address(form, q.ask.filters(), nil) }
	all := []download{
		{at(page.CsvSuffix), "CSV", "for spreadsheets"}, {at(page.DataSuffix), "JSON", "one document"},
		{at(page.LinesSuffix), "JSON lines", ""},
	}
	if q.ask.searched() {
		return all
	}
	plain := *q.ask
	plain.columns = nil
	return append(all, download{plain.address(page.DataSuffix, q.ask.query, nil), "This page alone", "JSON as " + q.Source.Spec.Title +
		" wrote it"})
}

func readListTarget(q *page.Exchange) (*listQuery, error) {
	if len(q.Kind.PlannedLists) == 0 {
		return nil, page.NotFound(plan.UpperFirst(q.Kind.Title)+" cannot be listed", "Open one by its address.", "")
	}
	return readListQuery(q)
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
	ask, err := readListTarget(q)
	if err != nil {
		return err
	}
	l := listing{q, ask}
	if recalled := l.preferColumns(); recalled || !ask.tidy {
		q.W.Header().Set("Cache-Control", "no-store")
		http.Redirect(q.W, q.R, ask.address(q.Data, ask.query, ask.back), http.StatusSeeOther)
		return nil
	}
	switch {
	case ask.target == nil:
		return l.lacking()
	case ask.searched():
		return l.foundList()
	case q.Data == page.CsvSuffix, q.Data == page.LinesSuffix, q.Data == page.DataSuffix && len(ask.columns) > 0:
		return l.exportList()
	}
	if err := q.Gate.Read(q.Caller, ask.target); err != nil {
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
	p := &listPage{AsOf: q.AgedAt(q.Answer), Came: l.provenance()}
	if q.Kind.Rollup == "" && view.Sum != [16]byte{} { // nothing in it goes by the clock but what is drawn for each view
		acts := append(actions.Made(q, q.Kind, nil), actions.Sync(q, q.Kind)...)
		of := q.Identity("list").With(q.V.Seed, view.Sum[:], q.Answer.Page.Next.URI, marked, acts, page.Looks(q))
		p.Kept, err = q.Keep("list", of, func() any { return l.listPage(view, marked) }, "list-top", "list-order", "list-acts", "list-beside",
			"list-rows")
		if err != nil {
			return err
		}
	} else {
		p = l.listPage(view, marked)
	}
	p.Counts, p.Parts = makeCounts(q, "list", counting, "%s held", l.listFacets)
	return q.Render(http.StatusOK, "list", plan.UpperFirst(q.Kind.Title), p)
}

func (q listing) listPage(view *access.View, own map[string]bool) *listPage {
	p := q.listFrame()
	p.AsOf, p.Came = q.AgedAt(q.Answer), q.provenance()
	q.paginate(p)
	s := q.CellContext(q.Kind, q.ask.vars, own)
	s.Filters = q.PhoneFilters(q.ask.list)
	rows := view.Rows()
	caption := p.Heading
	if q.Kind.Clock != "" {
		caption += ", newest first"
	}
	p.Table = s.Table(caption, q.chosen(), rows)
	p.Table.ID = page.RowsID
	q.sortable(&p.Table, rows)
	q.selectRows(p, rows)
	p.Live = q.live()
	if q.ask.target.First && q.AsOf.At.IsZero() {
		p.Rollup = q.rollup(s, rows)
	}
	return p
}

// listFrame is what a list's page has around its rows.
func (q listing) listFrame() *listPage {
	p := &listPage{
		listHead: listHead{Kind: q.Kind, Heading: plan.UpperFirst(q.Kind.Title), Tabs: q.tabs()},
		listTools: listTools{Form: makeForm(q.Exchange, q.ask), Columns: q.columnForm(), Exports: q.exports(),
			Makes: actions.Made(q.Exchange, q.Kind, nil), Sync: actions.Sync(q.Exchange, q.Kind), Moment: q.momentForm()},
		listOrigin: listOrigin{Then: !q.AsOf.At.IsZero()},
	}
	of := q.ask.list.Under
	if id := of.Id(q.ask.value(q.Source)); id != "" && !q.ask.everywhere && q.SeesKind(of.Kind) {
		p.Scope = &page.Link{Href: q.AsOf.Keep(of.Kind.Href + "/" + url.PathEscape(id) + plan.WithQuery(plan.OwnVars(q.ask.vars))),
			Text: of.Kind.One + " " + page.ShortID(id)}
	}
	return p
}

// lacking asks for the record the list lies under.
func (q listing) lacking() error {
	if err := q.Gate.Read(q.Caller, q.ask.list.Sample); err != nil {
		return err
	}
	names := strings.Join(q.ask.lacks, " and ")
	if q.Data != "" {
		return page.BadRequest("This list needs "+names, "Add it to the address.", q.ask.lacks)
	}
	p := q.listFrame()
	p.Lacks = names
	if of := q.ask.list.Under.Kind; of != nil && of.Browsable() && q.SeesKind(of) {
		p.Pick = &page.Link{Href: q.AsOf.Keep(of.Href), Text: "Pick " + plan.Article(of.One)}
	}
	return q.Render(http.StatusOK, "list", plan.UpperFirst(q.Kind.Title), p)
}

func (q listing) tabs() []page.Link {
	var tabs []page.Link
	for _, l := range q.Kind.PlannedLists {
		switch {
		case l == q.ask.list:
			tabs = append(tabs, page.Link{Href: q.ask.address("", nil, nil), Text: l.TabTitle, Current: true})
		case !slices.ContainsFunc(l.Needs, func(name string) bool { return !plan.Has(q.ask.vars, name) }):
			vars := q.ask.vars.Without(func(p understudy.Param) bool { return !l.IsVar(p.Name) })
			tabs = append(tabs, page.Link{Href: (&listQuery{list: l, vars: vars, asOf: q.ask.asOf,
				arrangement: arrangement{columns: q.ask.columns}}).address("", nil, nil), Text: l.TabTitle})
		}
	}
	if len(tabs) < 2 {
		return nil
	}
	return tabs
}

// turn works out where Newest, Newer and Older lead. Upstream's tokens are made
// of ids: a caller that may not see ids gets no link.
func (q listing) paginate(p *listPage) {
	paging := q.ask.list.PagingStyle
	filters := q.ask.query.Without(func(x understudy.Param) bool { return plan.IsPosition(paging, x.Name) })
	position := q.ask.query.Without(func(x understudy.Param) bool { return !plan.IsPosition(paging, x.Name) })
	if len(position) > 0 {
		p.Newest = q.ask.address("", filters, nil)
	}
	if n := len(q.ask.back); n > 0 {
		newer, err := understudy.ParseQuery(q.ask.back[n-1])
		if err == nil {
			p.Newer = q.ask.address("", slices.Concat(filters, newer), q.ask.back[:n-1])
		}
	}
	if next := q.Answer.Page.Next; !next.Zero() {
		for _, id := range q.Kind.ID {
			if q.Level(q.Kind, id) != access.See {
				p.NoOlder = "Older pages are named by ids, which your role does not show. Narrow the filters instead."
				return
			}
		}
		t, err := q.Source.Spec.Target(q.Source.Name, next.Path(), next.Query())
		if err != nil || t.List != q.ask.list.List {
			return
		}
		query := t.Query.Without(func(x understudy.Param) bool {
			return x.Name == paging.Size && x.Value == strconv.Itoa(paging.Default)
		})
		p.Older = q.ask.address("", query, append(slices.Clone(q.ask.back), position.String()))
	}
}
