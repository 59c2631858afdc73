// List: the page of a kind's records, newest first.

package viewer

import (
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"understudy"
	"understudy/internal/access"
)

// listPage is what list.html shows.
type listPage struct {
	Kind    *kindPlan
	Heading string
	Scope   *link  // the record the list lies under
	Lacks   string // what the reader must give before there is a list
	Pick    *link  // where to find it
	Tabs    []link
	Form    form
	Rollup  *rollup
	Table   table
	turning
	Columns columnForm
	Exports []download
	Moment  *momentForm // nil: the kind has no past
	Counts  counts      // those that are there when the page begins
	Parts   *parts
	Kept    []template.HTML // all but AsOf, Came, Counts and Parts, as it was drawn before; nil: it is not
	Found   []string        // what to know of records that were searched for
	Came    *provenance
	AsOf    *when
	Then    bool   // the page shows an earlier moment
	Live    string // the feed of the kind's changes
}

// turning is where the pages of a list lead.
type turning struct {
	Newest, Newer, Older string
	NoOlder              string // why there is no way on, when there are older records
}

// download is one form of the list as data.
type download struct{ Href, Text, Hint string }

// exports are the forms a list can be had in: all of it as it is arranged, and
// the page as upstream wrote it.
func (q *exchange) exports(ask *listQuery) []download {
	whole := *ask
	whole.columns, whole.cursor = q.chosen(ask), ""
	at := func(form string) string { return whole.address(q.kind, form, ask.filters(), nil) }
	all := []download{
		{at(csvSuffix), "CSV", "for spreadsheets"}, {at(dataSuffix), "JSON", "one document"}, {at(linesSuffix), "JSON lines", "a record a line"},
	}
	if ask.searched() {
		return all
	}
	plain := *ask
	plain.columns = nil
	return append(all, download{plain.address(q.kind, dataSuffix, ask.query, nil), "This page alone", "JSON as " + q.source.Spec.Title + " wrote it"})
}

// link is an address and its words.
type link struct {
	Href, Text string
	Current    bool
}

func (q *exchange) listTarget() (*listQuery, error) {
	if len(q.kind.lists) == 0 {
		return nil, notFound(upperFirst(q.kind.Title)+" cannot be listed", "Open one by its address.", "")
	}
	return q.listQuery()
}

// list shows one page of a kind.
func (v *Viewer) list(q *exchange) error {
	if q.kind.single() && (q.data == "" || q.data == dataSuffix) {
		return v.detail(q)
	}
	ask, err := q.listTarget()
	if err != nil {
		return err
	}
	if recalled := q.preferColumns(ask); recalled || !ask.tidy {
		q.w.Header().Set("Cache-Control", "no-store")
		http.Redirect(q.w, q.r, ask.address(q.kind, q.data, ask.query, ask.back), http.StatusSeeOther)
		return nil
	}
	switch {
	case ask.target == nil:
		return q.lacking(ask)
	case ask.searched():
		return q.foundList(ask)
	case q.data == csvSuffix, q.data == linesSuffix, q.data == dataSuffix && len(ask.columns) > 0:
		return q.exportList(ask)
	}
	rows := make(chan int, 1)
	counting := q.listCounting(ask, rows)
	view, own, done, err := q.open(ask.target, nil)
	if err != nil || done {
		return err
	}
	if n := len(q.answer.Page.Rows); n > 0 {
		rows <- n
	} else {
		rows <- len(view.Rows())
	}
	marked := own.wait(q)
	p := &listPage{AsOf: q.agedAt(q.answer), Came: q.provenance(ask)}
	if q.kind.Rollup == "" && view.Sum != [16]byte{} { // nothing in it goes by the clock but what is drawn for each view
		of := q.identity("list").with(q.v.seed, view.Sum[:], q.answer.Page.Next.URI, marked)
		p.Kept, err = q.keep("list", of, func() any { return q.listPage(ask, view, marked) }, "list-top", "list-order", "list-acts", "list-beside", "list-rows")
		if err != nil {
			return err
		}
	} else {
		p = q.listPage(ask, view, marked)
	}
	p.Counts, p.Parts = q.countsOf("list", counting, "%s held", func(r *understudy.SearchResult) []facet { return q.listFacets(ask, r) })
	return q.render(http.StatusOK, "list", upperFirst(q.kind.Title), p)
}

func (q *exchange) listPage(ask *listQuery, view *access.View, own map[string]bool) *listPage {
	p := q.listFrame(ask)
	p.AsOf, p.Came = q.agedAt(q.answer), q.provenance(ask)
	q.turn(ask, p)
	s := q.cellContext(q.kind, ask.vars, own)
	s.filters = q.phoneFilters(ask.list)
	rows := view.Rows()
	caption := p.Heading
	if q.kind.Clock != "" {
		caption += ", newest first"
	}
	p.Table = q.table(s, caption, q.chosen(ask), rows)
	p.Table.ID = rowsID
	q.sortable(ask, &p.Table)
	p.Live = q.live(ask)
	if ask.target.First && q.asOf.at.IsZero() {
		p.Rollup = q.rollup(ask, s, rows)
	}
	return p
}

// live is the feed that tells of new records, for the newest page of all of a
// kind: what a filter would let through a change does not say.
func (q *exchange) live(ask *listQuery) string {
	filtered := slices.ContainsFunc(ask.query, func(p understudy.Param) bool { return p.Name != ask.list.paging.Size })
	if q.v.Feed == "" || !q.asOf.at.IsZero() || !q.kind.remembered() || !ask.target.First || filtered || ask.list != q.kind.lists[0] || len(ask.vars) > 0 {
		return ""
	}
	return q.v.Feed + "?" + understudy.Query{{Name: "source", Value: q.source.Name}, {Name: "kind", Value: q.kind.Name}}.String()
}

// listFrame is what a list's page has around its rows.
func (q *exchange) listFrame(ask *listQuery) *listPage {
	p := &listPage{
		Kind: q.kind, Heading: upperFirst(q.kind.Title), Tabs: q.tabs(ask), Form: q.form(ask), Then: !q.asOf.at.IsZero(), Columns: q.columnForm(ask), Exports: q.exports(ask), Moment: q.momentForm(ask),
	}
	of := ask.list.parent
	if id := of.id(ask.value(q.source)); id != "" && q.seesKind(of.kind) {
		p.Scope = &link{Href: q.asOf.keep(of.kind.href + "/" + url.PathEscape(id) + withQuery(ownVars(ask.vars))), Text: of.kind.One + " " + shortID(id)}
	}
	return p
}

// lacking asks for the record the list lies under.
func (q *exchange) lacking(ask *listQuery) error {
	if err := q.v.Gate.Read(q.caller, ask.list.sample); err != nil {
		return err
	}
	names := strings.Join(ask.lacks, " and ")
	if q.data != "" {
		return badRequest("This list needs "+names, "Add it to the address.", ask.lacks)
	}
	p := q.listFrame(ask)
	p.Lacks = names
	if of := ask.list.parent.kind; of != nil && of.browsable() && q.seesKind(of) {
		p.Pick = &link{Href: q.asOf.keep(of.href), Text: "Pick " + article(of.One)}
	}
	return q.render(http.StatusOK, "list", upperFirst(q.kind.Title), p)
}

// ownVars are the parameters that give another value to what the source fills.
func ownVars(q understudy.Query) understudy.Query {
	return q.Without(func(p understudy.Param) bool { return !strings.HasPrefix(p.Name, understudy.OwnPrefix) })
}

func (q *exchange) tabs(ask *listQuery) []link {
	var tabs []link
	for _, l := range q.kind.lists {
		switch {
		case l == ask.list:
			tabs = append(tabs, link{Href: ask.address(q.kind, "", nil, nil), Text: l.title, Current: true})
		case !slices.ContainsFunc(l.needs, func(name string) bool { return !has(ask.vars, name) }):
			vars := ask.vars.Without(func(p understudy.Param) bool { return !l.isVar(p.Name) })
			tabs = append(tabs, link{Href: (&listQuery{list: l, vars: vars, asOf: ask.asOf, arrangement: arrangement{columns: ask.columns}}).address(q.kind, "", nil, nil), Text: l.title})
		}
	}
	if len(tabs) < 2 {
		return nil
	}
	return tabs
}

// turn works out where Newest, Newer and Older lead. Upstream's tokens are made
// of ids: a caller who may not see ids gets none.
func (q *exchange) turn(ask *listQuery, p *listPage) {
	paging := ask.list.paging
	filters := ask.query.Without(func(x understudy.Param) bool { return isPosition(paging, x.Name) })
	position := ask.query.Without(func(x understudy.Param) bool { return !isPosition(paging, x.Name) })
	if len(position) > 0 {
		p.Newest = ask.address(q.kind, "", filters, nil)
	}
	if n := len(ask.back); n > 0 {
		newer, err := understudy.ParseQuery(ask.back[n-1])
		if err == nil {
			p.Newer = ask.address(q.kind, "", slices.Concat(filters, newer), ask.back[:n-1])
		}
	}
	if next := q.answer.Page.Next; !next.Zero() {
		for _, id := range q.kind.ID {
			if q.v.Gate.Level(q.caller, q.source.Name, q.kind.Name, id) != access.See {
				p.NoOlder = "Older pages are named by ids, which your role does not show. Narrow the filters instead."
				return
			}
		}
		t, err := q.source.Spec.Target(q.source.Name, next.Path(), next.Query())
		if err != nil || t.List != ask.list.List {
			return
		}
		query := t.Query.Without(func(x understudy.Param) bool {
			return x.Name == paging.Size && x.Value == strconv.Itoa(paging.Default)
		})
		p.Older = ask.address(q.kind, "", query, append(slices.Clone(ask.back), position.String()))
	}
}

// phoneFilters are the filters by field that a number can be put in.
func (q *exchange) phoneFilters(l *listPlan) map[string]string {
	names := map[string]string{}
	for i, f := range l.Filters {
		if field := l.kind.Field(f.Field); field != nil && field.Class == understudy.ClassPhone && names[f.Field] == "" && q.offers(l, i) {
			names[f.Field] = f.Name
		}
	}
	return names
}

// refused is upstream's own refusal as a page: its words say what was wrong.
func (q *exchange) refused(body []byte) error {
	p := &problem{
		Title: q.source.Spec.Title + fmt.Sprintf(" refused this (%d)", q.answer.Page.Status),
		Hint:  upstreamWords(body), kind: understudy.ErrInvalid,
	}
	if q.answer.Page.Status == http.StatusNotFound || q.answer.Page.Status == http.StatusGone {
		p.kind = understudy.ErrNotFound
		p.Href, p.Link = q.kind.href, "See all "+q.kind.Title
		p.Title = "There is no such " + q.kind.One
	}
	return p
}

// noSuch says that there is no such record: it was never seen, or it is hidden
// from the caller.
func (q *exchange) noSuch() error {
	return &problem{
		Title: "There is no such " + q.kind.One, Hint: "Check the spelling of the id, or pick the record from its list.",
		Href: q.kind.href, Link: "See all " + q.kind.Title, kind: understudy.ErrNotFound,
	}
}

// notMirrored says that a list cannot be shown to a caller that may find some
// of its records alone.
func (q *exchange) notMirrored(err error) error {
	return &problem{
		Title: upperFirst(q.kind.Title) + " are not mirrored yet",
		Hint:  "Your role finds some of them alone, so the list is made from the records held here, once all of them are. " + sentence(err),
		kind:  understudy.ErrNotMirrored,
	}
}
