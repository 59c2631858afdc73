// Detail: the page of one record, every field of it.

package viewer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"understudy/internal/viewer/plan"

	"understudy"
	"understudy/internal/access"
)

// detailPage is what detail.html shows.
type detailPage struct {
	Kind     *plan.Kind
	Heading  string
	ID       string
	When     cell // the clock field
	State    cell
	Failed   bool
	Reason   string        // what the failed state or code is
	Meaning  string        // of the code, in few words
	Docs     string        // upstream's page about it
	Play     *cell         // its content
	Groups   []detailGroup // short ones, side by side
	Long     []detailGroup
	Closed   []detailGroup   // opened on request
	Parts    *parts          // its timeline, and the lists under it
	Kept     []template.HTML // all but Parts, as it was drawn before; nil: it is not
	Related  []link
	Raw      string
	Data     string
	Above    *link  // the record it lies under, when its address names one
	ListHref string // the list it is in; "" when there is none to open
}

type detailGroup struct {
	Title  string
	Cells  []cell
	Closed bool
}

// longFrom is the number of fields from which a group takes the whole width.
const longFrom = 12

// Short is the id as the breadcrumb shows it.
func (p *detailPage) Short() string { return shortID(p.ID) }

// serveRecord shows one record.
func serveRecord(q *exchange) error {
	p := &record{exchange: q}
	t, err := p.instanceTarget()
	if err != nil {
		return err
	}
	if len(p.compared.moments) > 0 {
		return past{q}.compare(t, p.compared)
	}
	if q.tidyMoment() {
		return nil
	}
	var lists []*askedList
	if q.data == "" {
		lists = p.relatedLists(t)
	}
	view, own, done, err := q.open(t, p.besideRecord(lists))
	if err != nil {
		for _, a := range lists {
			a.leave()
		}
		return past{q}.gone(t, err)
	}
	if done {
		return nil
	}
	rows := view.Rows()
	if len(rows) != 1 {
		return refused(q, view.Body)
	}
	p.readOf(rows[0], lists)
	marked := own.wait(q)
	s := q.cellContext(q.kind, q.source.Given(t, t.Instance.ID), marked)
	s.seconds, s.filters = true, map[string]string{}
	if q.kind.Browsable() {
		s.filters = q.phoneFilters(q.kind.PlannedLists[0])
	}
	page := &detailPage{}
	all := []*part{past{q}.timelineOf(t, cmp.Or(q.answer.Page.ID, t.ID), cmp.Or(p.versions, fewVersions), s)}
	for _, a := range lists {
		all = append(all, p.listPart(a, marked))
	}
	parts := q.parts("detail", all...)
	draw := func() any {
		page = p.detailPage(t, rows[0], lists, s)
		page.Parts = parts
		return page
	}
	if len(q.kind.Media) > 0 && q.v.Media != nil {
		draw() // it shows contents, whose addresses are a session's and end
	} else {
		page.Parts = parts
		of := q.identity("detail").with(q.v.seed, view.Sum[:], marked)
		if page.Kept, err = q.keep("detail", of, draw, "detail-top", "detail-rest"); err != nil {
			return err
		}
	}
	return q.render(http.StatusOK, "detail", plan.UpperFirst(q.kind.One)+" "+shortID(rows[0].ID), page)
}

// record is the page of one record.
type record struct {
	*exchange
	compared comparison // the moments whose versions are compared
	versions int        // how many versions its timeline shows; 0 = a few
}

// instanceTarget is the record the address names.
func (q *record) instanceTarget() (*understudy.Target, error) {
	id := q.r.PathValue("id")
	if q.data != "" {
		id = strings.TrimSuffix(id, dataSuffix)
	}
	var parts []string
	if id != "" {
		parts = strings.Split(id, understudy.IDSeparator)
	}
	if len(q.kind.Instances) == 0 || len(parts) != len(q.kind.ID) || slices.Contains(parts, "") {
		return nil, notFound("No "+q.kind.One+" is named "+clip(id), "Pick it from the list.", q.kind.Href)
	}
	in := q.kind.PlannedInstances[0]
	params, err := understudy.ParseQuery(q.r.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	known, err := q.readOwn(params, in.Params())
	if err != nil {
		return nil, err
	}
	for _, p := range params {
		if !slices.Contains(known, p.Name) {
			return nil, unknownWord("parameter", p.Name, known, nil)
		}
	}
	path, ok := q.kind.PathTo(parts, params)
	if !ok {
		return nil, badRequest("This address lacks a path variable", "Known are "+strings.Join(known, ", ")+".", known)
	}
	t, err := q.source.Spec.Target(q.source.Name, path, "")
	if err != nil {
		return nil, err
	}
	if t.Instance != in.Instance {
		return nil, notFound("No "+q.kind.One+" is named "+clip(id), "Pick it from the list.", q.kind.Href)
	}
	return t, nil
}

// readOwn reads the viewer's own parameters of a record's page and adds their
// names to those that are known.
func (q *record) readOwn(params understudy.Query, known []string) ([]string, error) {
	known = append(known, understudy.OwnAsOf)
	if err := q.readAsOf(params); err != nil || q.data != "" {
		return known, err
	}
	var err error
	if q.compared, err = (past{q.exchange}).readCompare(params); err != nil {
		return known, err
	}
	q.versions, err = readVersions(params)
	return append(known, paramCompare, ownVersions), err
}

// detailPage is what a record's page shows of the record.
func (q *record) detailPage(t *understudy.Target, row access.Row, lists []*askedList, s *cellContext) *detailPage {
	p := &detailPage{Kind: q.kind, Heading: plan.UpperFirst(q.kind.One), ID: row.ID, Failed: failed(q.kind, row), Raw: pretty(row.Raw())}
	p.Data = q.asOf.keep(q.kind.Href + dataSuffix + plan.WithQuery(s.vars))
	if t.ID != "" {
		p.Data = q.asOf.keep(q.kind.Href + "/" + url.PathEscape(t.ID) + dataSuffix + plan.WithQuery(s.vars))
	}
	q.place(p, t, row)
	for _, g := range q.kind.Groups {
		out := q.part(p, s, row, g)
		switch {
		case len(out.Cells) == 0:
		case out.Closed:
			p.Closed = append(p.Closed, out)
		case len(out.Cells) > longFrom:
			p.Long = append(p.Long, out)
		default:
			p.Groups = append(p.Groups, out)
		}
	}
	if others := q.others(row); len(others.Cells) > 0 {
		p.Long = append(p.Long, others)
	}
	if play := q.contents(q.kind, row, s.vars); play != nil {
		p.Play = &cell{Label: q.kind.ByField[q.kind.Media[0].Field].Heading, Play: play}
	}
	p.Related = append(p.Related, q.related(row, lists)...)
	p.Related = slices.DeleteFunc(p.Related, func(l link) bool {
		return slices.ContainsFunc(lists, func(a *askedList) bool { return a.href == l.Href })
	})
	q.reason(p, row)
	return p
}

// place says where a record is: in which list, under which other record.
func (q *record) place(p *detailPage, t *understudy.Target, row access.Row) {
	if q.kind.Browsable() {
		p.ListHref = q.asOf.keep(q.kind.Href + plan.WithQuery(plan.OwnVars(q.source.Given(t, t.Instance.ID))))
	}
	above := q.source.ParentOf(t.Instance.Path, nil)
	if above.Kind == nil || len(above.Vars) == 0 || !q.seesKind(above.Kind) {
		return
	}
	var named []string // what the path says is in the address; the gate need not hide it
	for i := range above.Kind.ID {
		for name, at := range above.Vars {
			if at == i {
				named = append(named, t.Var(name))
			}
		}
	}
	id := above.Kind.IDOf(named)
	if slices.ContainsFunc(t.Vars, func(v understudy.Param) bool {
		def, own := q.source.Fill(v.Name)
		return own && def == v.Value && v.Value == id
	}) {
		return // the source's own account is above everything
	}
	p.Above = &link{Href: q.asOf.keep(above.Kind.Href + "/" + url.PathEscape(id)), Text: plan.UpperFirst(above.Kind.One) + " " + shortID(id)}
	for _, l := range q.kind.PlannedLists {
		if l.Under.Kind == above.Kind && p.ListHref == "" {
			if target := q.under(t, l, named); target != nil {
				p.ListHref = q.asOf.keep(q.source.Place(target))
			}
		}
	}
}

// part is one group of a record's fields. Addresses the viewer has pages for
// become links; a group of nothing but others is shown on request.
func (q *record) part(p *detailPage, s *cellContext, row access.Row, g plan.Group) detailGroup {
	out := detailGroup{Title: g.Title, Closed: true}
	for _, c := range g.Columns {
		if row.Field(c.Name).State == access.Absent {
			continue
		}
		if l, ok := s.followable(row, c); ok {
			p.Related = append(p.Related, l)
			continue
		}
		cl := s.cell(c, row, false)
		if c.SMS && row.Field(c.Name).State == access.Seen {
			drawSegments(&cl)
		}
		out.Cells = append(out.Cells, cl)
		out.Closed = out.Closed && cl.Class == "address"
		q.head(p, c, cl)
	}
	return out
}

// head keeps what the top of the page shows of a field.
func (q *record) head(p *detailPage, c *plan.Column, cl cell) {
	if c.Name == q.kind.Clock && cl.Stamp != "" {
		p.When = cl
		p.When.Label = c.Words
	}
	if c.Shape == plan.Pill && cl.Tone != "hidden" && p.State.Text == "" {
		p.State = cl
	}
}

// pretty is a JSON value with a line for each member. Strings stay as they are
// spelt.
func pretty(raw []byte) string {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return string(raw)
	}
	return b.String()
}
