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

	"understudy"
	"understudy/internal/access"
	"understudy/internal/viewer/actions"
	"understudy/internal/viewer/outlook"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// detailPage is what detail.html shows.
type detailPage struct {
	Kind    *plan.Kind
	Heading string
	ID      string
	When    page.Cell // the clock field
	Status  recordStatus
	Play    *page.Cell    // its content
	Groups  []detailGroup // short ones, side by side
	Long    []detailGroup
	Closed  []detailGroup   // opened on request
	Notes   *actions.Notes  // what people wrote on it; nil: the caller sees none
	Parts   *page.Parts     // its timeline, and the lists under it
	Kept    []template.HTML // all but Parts, as it was drawn before; nil: it is not
	Raw     string

	Related  []page.Link
	Data     string
	Acts     []page.Link // what the caller may do with it
	Removing []page.Link // the actions that delete it
	Above    *page.Link  // the record it lies under, when its address names one
	ListHref string      // the list it is in; "" when there is none to open
}

// recordStatus is the state of a record, and why it has failed.
type recordStatus struct {
	State   page.Cell
	Failed  bool
	Reason  string // what the failed state or code is
	Meaning string // of the code, in few words
	Docs    string // upstream's page about it
}

type detailGroup struct {
	Title  string
	Cells  []page.Cell
	Closed bool
}

// longFrom is the number of fields from which a group takes the whole width.
const longFrom = 12

// Short is the id as the breadcrumb shows it.
func (p *detailPage) Short() string { return page.ShortID(p.ID) }

// serveRecord shows one record.
func serveRecord(q *page.Exchange) error {
	p := &record{q: q}
	t, err := p.instanceTarget()
	if err != nil {
		return err
	}
	if len(p.compared.moments) > 0 {
		return compare(q, t, p.compared)
	}
	if q.TidyMoment() {
		return nil
	}
	if err := q.Rights.Gate.Read(q.Rights.Caller, t); err != nil {
		return explainGone(q, t, err)
	}
	var lists []*askedList
	if q.Data == "" {
		lists = p.relatedLists(t)
	}
	view, own, done, err := q.Open(t, p.besideRecord(lists))
	if err != nil {
		for _, a := range lists {
			a.leave()
		}
		return explainGone(q, t, err)
	}
	if done {
		return nil
	}
	rows := view.Rows()
	if len(rows) != 1 {
		return q.Rights.Refused(q.Kind, q.Answer.Page.Status, view.Body)
	}
	p.readOf(rows[0], lists)
	marked := own.Wait(q)
	s := q.CellContext(q.Kind, q.Source.Given(t, t.Instance.ID), marked)
	s.Seconds, s.Filters = true, map[string]string{}
	if q.Kind.Browsable() {
		s.Filters = q.Rights.PhoneFilters(q.Kind.PlannedLists[0])
	}
	out := &detailPage{}
	all := []*page.Part{readTimeline(q, t, cmp.Or(q.Answer.Page.ID, t.ID), cmp.Or(p.versions, fewVersions), s)}
	for _, a := range lists {
		all = append(all, p.listPart(a, marked))
	}
	parts := q.Parts("detail", all...)
	acts, removing := actions.About(q, t, rows[0])
	notes := actions.NotesOn(q, t, rows[0])
	draw := func() any {
		out = p.detailPage(t, rows[0], lists, s)
		out.Parts, out.Acts, out.Removing = parts, acts, removing
		return out
	}
	if len(q.Kind.Spec.Media) > 0 && q.V.Options.Media != nil {
		draw() // it shows contents, whose addresses are a session's and end
	} else {
		out.Parts = parts
		of := q.Identity("detail").With(q.V.Seed, view.Sum[:], marked, acts, removing)
		if out.Kept, err = q.Reply.Keep(of, draw, "detail-top", "detail-rest"); err != nil {
			return err
		}
	}
	out.Notes = notes
	return q.Render(http.StatusOK, "detail", plan.UpperFirst(q.Kind.Spec.One)+" "+page.ShortID(rows[0].ID), out)
}

// record is the page of one record.
type record struct {
	q        *page.Exchange
	compared comparison // the moments whose versions are compared
	versions int        // how many versions its timeline shows; 0 = a few
}

// instanceTarget is the record the address names.
func (rv *record) instanceTarget() (*spec.Target, error) {
	id := rv.q.R.PathValue("id")
	if rv.q.Data != "" {
		id = strings.TrimSuffix(id, page.DataSuffix)
	}
	var parts []string
	if id != "" {
		parts = strings.Split(id, spec.IDSeparator)
	}
	if len(rv.q.Kind.Spec.Instances) == 0 || len(parts) != len(rv.q.Kind.Spec.ID) || slices.Contains(parts, "") {
		return nil, page.NotFound("No "+rv.q.Kind.Spec.One+" is named "+understudy.Clip(id), "Pick it from the list.", rv.q.Kind.Href)
	}
	in := rv.q.Kind.PlannedInstances[0]
	params, err := understudy.ParseQuery(rv.q.R.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	known, err := rv.readOwn(params, in.Params())
	if err != nil {
		return nil, err
	}
	for _, p := range params {
		if !slices.Contains(known, p.Name) {
			return nil, page.UnknownWord("parameter", p.Name, known, nil)
		}
	}
	path, ok := rv.q.Kind.PathTo(parts, params)
	if !ok && in.Spec.Address != "" && !slices.ContainsFunc(in.Params(), func(name string) bool { return plan.Has(params, name) }) {
		return rv.addressed(in, id)
	}
	if !ok {
		return nil, page.BadRequest("This address lacks a path variable", "Known are "+strings.Join(known, ", ")+".", known)
	}
	t, err := rv.q.Source.Spec.Target(rv.q.Source.Name, path, "")
	if err != nil {
		return nil, err
	}
	if t.Instance != in.Spec {
		return nil, page.NotFound("No "+rv.q.Kind.Spec.One+" is named "+understudy.Clip(id), "Pick it from the list.", rv.q.Kind.Href)
	}
	return t, nil
}

// readOwn reads the viewer's own parameters of a record's page and adds their
// names to those that are known.
func (rv *record) readOwn(params understudy.Query, known []string) ([]string, error) {
	known = append(known, understudy.OwnAsOf)
	if err := rv.q.Clock.ReadAsOf(params); err != nil || rv.q.Data != "" {
		return known, err
	}
	var err error
	if rv.compared, err = readCompare(rv.q, params); err != nil {
		return known, err
	}
	rv.versions, err = readVersions(params)
	return append(known, paramCompare, ownVersions), err
}

// detailPage is what a record's page shows of the record.
func (rv *record) detailPage(t *spec.Target, row access.Row, lists []*askedList, s *page.CellContext) *detailPage {
	p := &detailPage{Kind: rv.q.Kind, Heading: plan.UpperFirst(rv.q.Kind.Spec.One), ID: row.ID, Raw: pretty(row.Raw())}
	p.Status.Failed = page.Failed(rv.q.Kind, row)
	p.Data = rv.q.Clock.AsOf.Keep(rv.q.Kind.Href + page.DataSuffix + plan.WithQuery(s.Vars))
	if t.ID != "" {
		p.Data = rv.q.Clock.AsOf.Keep(rv.q.Kind.Href + "/" + url.PathEscape(t.ID) + page.DataSuffix + plan.WithQuery(s.Vars))
	}
	rv.place(p, t, row)
	for _, g := range rv.q.Kind.Groups {
		out := rv.part(p, s, row, g)
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
	if others := rv.others(row); len(others.Cells) > 0 {
		p.Long = append(p.Long, others)
	}
	if play := rv.q.Contents(rv.q.Kind, row, s.Vars); play != nil {
		p.Play = &page.Cell{Label: rv.q.Kind.ByField[rv.q.Kind.Spec.Media[0].Field].Heading, Play: play}
	}
	p.Related = append(append(p.Related, rv.related(row, lists)...), outlook.Links(rv.q)...)
	p.Related = slices.DeleteFunc(p.Related, func(l page.Link) bool {
		return slices.ContainsFunc(lists, func(a *askedList) bool { return a.href == l.Href })
	})
	rv.reason(p, row)
	return p
}

// place says where a record is: in which list, under which other record.
func (rv *record) place(p *detailPage, t *spec.Target, row access.Row) {
	if rv.q.Kind.Browsable() {
		p.ListHref = rv.q.Clock.AsOf.Keep(rv.q.Kind.Href + plan.WithQuery(plan.OwnVars(rv.q.Source.Given(t, t.Instance.ID))))
	}
	above := rv.q.Source.ParentOf(t.Instance.Template(), nil)
	if above.Kind == nil || len(above.Vars) == 0 || !rv.q.Rights.SeesKind(above.Kind) {
		return
	}
	var named []string // what the path says is in the address; the gate need not hide it
	for i := range above.Kind.Spec.ID {
		for name, at := range above.Vars {
			if at == i {
				named = append(named, t.Var(name))
			}
		}
	}
	id := above.Kind.Spec.IDOf(named)
	if slices.ContainsFunc(t.Vars, func(v understudy.Param) bool {
		def, own := rv.q.Source.Config.PathVar(v.Name)
		return own && def == v.Value && v.Value == id
	}) {
		return // the source's own account is above everything
	}
	p.Above = &page.Link{Href: rv.q.Clock.AsOf.Keep(above.Kind.Href + "/" + url.PathEscape(id)), Text: plan.UpperFirst(above.Kind.Spec.One) +
		" " + page.ShortID(id)}
	for _, l := range rv.q.Kind.PlannedLists {
		if l.Under.Kind == above.Kind && p.ListHref == "" {
			if target := rv.under(t, l, named); target != nil {
				p.ListHref = rv.q.Clock.AsOf.Keep(rv.q.Source.Place(target))
			}
		}
	}
}

// part is one group of a record's fields. Addresses the viewer has pages for
// become links; a group of nothing but others is shown on request.
func (rv *record) part(p *detailPage, s *page.CellContext, row access.Row, g plan.Group) detailGroup {
	out := detailGroup{Title: g.Title, Closed: true}
	for _, c := range g.Columns {
		if row.Field(c.Spec.Name).State == access.Absent {
			continue
		}
		if l, ok := s.Followable(row, c); ok {
			p.Related = append(p.Related, l)
			continue
		}
		cl := s.Cell(c, row, false)
		if v := row.Field(c.Spec.Name); c.Spec.SMS && v.State == access.Seen && v.Text != "" {
			page.DrawSegments(&cl)
		}
		out.Cells = append(out.Cells, cl)
		out.Closed = out.Closed && cl.Class == "address"
		rv.head(p, c, cl)
	}
	return out
}

// head keeps what the top of the page shows of a field.
func (rv *record) head(p *detailPage, c *plan.Column, cl page.Cell) {
	if c.Spec.Name == rv.q.Kind.Spec.Clock && cl.Stamp != "" {
		p.When = cl
		p.When.Label = c.Words
	}
	if c.Shape == plan.Pill && cl.Tone != "hidden" && p.Status.State.Text == "" {
		p.Status.State = cl
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
