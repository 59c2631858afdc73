// The page of one record with all of its fields.

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

// detailPage is the data of the template detail.html.
type detailPage struct {
	Kind         *plan.Kind
	Heading      string
	ID           string
	When         page.Cell // the value of the field that orders the kind's records by time
	Status       recordStatus
	Play         *page.Cell    // the record's audio with a player, or its image
	Groups       []detailGroup // groups of at most 12 fields, shown side by side
	WideGroups   []detailGroup
	ClosedGroups []detailGroup   // groups in which every field is an address; the page shows them folded up
	Notes        *actions.Notes  // the notes that people wrote about the record; nil if the caller may not see notes
	Parts        *page.Parts     // the record's timeline, and the lists under the record
	CachedHTML   []template.HTML // the rendered HTML of the page without Parts, if it was cached for an earlier request; else nil
	Raw          string

	Related       []page.Link
	Data          string
	Actions       []page.Link // links to the actions that the caller may run on the record
	DeleteActions []page.Link // links to the actions that delete the record
	Parent        *page.Link  // a link to the parent record; nil if the record's address names no parent
	ListHref      string      // the address of the list that contains the record; empty if the caller may open no such list
}

// recordStatus is the state of a record and, if the record failed, the reason.
type recordStatus struct {
	State   page.Cell
	Failed  bool
	Reason  string // the state or error code that says why the record failed, in words
	Meaning string // a short explanation of the error code
	Docs    string // the address of upstream's documentation of the error code
}

type detailGroup struct {
	Title  string
	Cells  []page.Cell
	Closed bool
}

// maxNarrowGroupFields is the largest number of fields in a group that is shown beside another group. A group with more
// fields takes the whole width of the page.
const maxNarrowGroupFields = 12

// ShortID returns the record's id as the breadcrumb shows it.
func (p *detailPage) ShortID() string { return page.ShortID(p.ID) }

// serveRecord shows one record.
func serveRecord(q *page.Exchange) error {
	p := &recordView{q: q}
	t, err := p.readTarget()
	if err != nil {
		return err
	}
	if len(p.comparison.moments) > 0 {
		return compare(q, t, p.comparison)
	}
	if q.RedirectMoment() {
		return nil
	}
	if err := q.Rights.Gate.CheckRead(q.Rights.Caller, t); err != nil {
		return explainDeleted(q, t, err)
	}
	var lists []*relatedRead
	if q.DataFormat == "" {
		lists = append(p.childLists(t), p.rollupLists(t)...)
		lists = lists[:min(len(lists), maxLists)]
		for _, a := range lists {
			a.href = q.Clock.AsOf.AddTo(q.Source.Place(a.target))
		}
	}
	view, own, done, err := q.Open(t, p.prefetchLists(lists))
	if err != nil {
		for _, a := range lists {
			if a.read != nil {
				a.read.Future.Stop()
			}
		}
		return explainDeleted(q, t, err)
	}
	if done {
		return nil
	}
	rows := view.Rows()
	if len(rows) != 1 {
		return q.Rights.NewRefusal(q.Kind, q.Answer.Page.Status, view.Body)
	}
	for _, a := range lists {
		if a.isEmpty = p.hasRowCount(a) && hasNoRows(a.list, rows[0]); !a.isEmpty {
			p.readList(a)
		}
	}
	marked := own.Wait(q)
	s := q.CellContext(q.Kind, q.Source.AddressVars(t, t.Instance.ID), marked)
	s.Seconds, s.Filters = true, map[string]string{}
	if q.Kind.IsBrowsable() {
		s.Filters = q.Rights.PhoneFilters(q.Kind.PlannedLists[0])
	}
	out := &detailPage{}
	all := []*page.Part{readTimeline(q, t, cmp.Or(q.Answer.Page.ID, t.ID), cmp.Or(p.maxVersions, defaultVersions), s)}
	for _, a := range lists {
		all = append(all, p.listPart(a, marked))
	}
	parts := q.Parts("detail", all...)
	acts, removing := actions.RecordLinks(q, t, rows[0])
	notes := actions.NotesOn(q, t, rows[0])
	draw := func() any {
		out = p.detailPage(t, rows[0], lists, s)
		out.Parts, out.Actions, out.DeleteActions = parts, acts, removing
		return out
	}
	if len(q.Kind.Spec.Media) > 0 && q.V.Options.Media != nil {
		draw() // this HTML is not cached, because the addresses of audio and images belong to one session and expire
	} else {
		out.Parts = parts
		of := q.Identity("detail").With(q.V.Seed, view.Sum[:], marked, acts, removing)
		if out.CachedHTML, err = q.Reply.RenderCached(of, draw, "detail-top", "detail-rest"); err != nil {
			return err
		}
	}
	out.Notes = notes
	return q.Render(http.StatusOK, "detail", plan.UpperFirst(q.Kind.Spec.Singular)+" "+page.ShortID(rows[0].ID), out)
}

// recordView builds the page of one record.
type recordView struct {
	q           *page.Exchange
	comparison  comparison // the two moments whose versions the page compares
	maxVersions int        // the largest number of versions in the timeline; 0 means defaultVersions
}

// readTarget returns the target of the record that the address names.
func (rv *recordView) readTarget() (*spec.Target, error) {
	id := rv.q.R.PathValue("id")
	if rv.q.DataFormat != "" {
		id = strings.TrimSuffix(id, page.DataSuffix)
	}
	var parts []string
	if id != "" {
		parts = strings.Split(id, spec.IDSeparator)
	}
	if len(rv.q.Kind.Spec.Instances) == 0 || len(parts) != len(rv.q.Kind.Spec.ID) || slices.Contains(parts, "") {
		return nil, page.NewNotFound("There is no "+rv.q.Kind.Spec.Singular+" "+understudy.Clip(id), "Open it from the list.", rv.q.Kind.Href)
	}
	in := rv.q.Kind.PlannedInstances[0]
	params, err := understudy.ParseQuery(rv.q.R.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	known, err := rv.readViewerParams(params, in.Params())
	if err != nil {
		return nil, err
	}
	for _, p := range params {
		if !slices.Contains(known, p.Name) {
			return nil, page.NewUnknownWord("parameter", p.Name, known, nil)
		}
	}
	path, ok := rv.q.Kind.PathTo(parts, params)
	if !ok && in.Spec.Address != "" && !slices.ContainsFunc(in.Params(), func(name string) bool { return plan.HasParam(params, name) }) {
		return rv.findStoredTarget(in, id)
	}
	if !ok {
		return nil, page.NewBadRequest("This address is incomplete", "It needs one of "+strings.Join(known, ", ")+".", known)
	}
	t, err := rv.q.Source.Spec.Resolve(rv.q.Source.Name, path, "")
	if err != nil {
		return nil, err
	}
	if t.Instance != in.Spec {
		return nil, page.NewNotFound("There is no "+rv.q.Kind.Spec.Singular+" "+understudy.Clip(id), "Open it from the list.", rv.q.Kind.Href)
	}
	return t, nil
}

// readViewerParams parses the parameters that belong to the viewer and are not sent upstream. It returns known with the names
// of these parameters appended. The page accepts no parameter whose name is not in known.
func (rv *recordView) readViewerParams(params understudy.Query, known []string) ([]string, error) {
	known = append(known, understudy.OwnAsOf)
	if err := rv.q.Clock.ReadAsOf(params); err != nil || rv.q.DataFormat != "" {
		return known, err
	}
	var err error
	if rv.comparison, err = readCompare(rv.q, params); err != nil {
		return known, err
	}
	rv.maxVersions, err = readVersions(params)
	return append(known, paramCompare, paramVersions), err
}

// detailPage returns the page's data about the record itself.
func (rv *recordView) detailPage(t *spec.Target, row access.Row, lists []*relatedRead, s *page.CellContext) *detailPage {
	p := &detailPage{Kind: rv.q.Kind, Heading: plan.UpperFirst(rv.q.Kind.Spec.Singular), ID: row.ID, Raw: indentJSON(row.JSON())}
	p.Status.Failed = page.HasFailed(rv.q.Kind, row)
	p.Data = rv.q.Clock.AsOf.AddTo(rv.q.Kind.Href + page.DataSuffix + plan.WithQuery(s.Vars))
	if t.ID != "" {
		p.Data = rv.q.Clock.AsOf.AddTo(rv.q.Kind.Href + "/" + url.PathEscape(t.ID) + page.DataSuffix + plan.WithQuery(s.Vars))
	}
	rv.setParentLinks(p, t, row)
	for _, g := range rv.q.Kind.Groups {
		out := rv.drawGroup(p, s, row, g)
		switch {
		case len(out.Cells) == 0:
		case out.Closed:
			p.ClosedGroups = append(p.ClosedGroups, out)
		case len(out.Cells) > maxNarrowGroupFields:
			p.WideGroups = append(p.WideGroups, out)
		default:
			p.Groups = append(p.Groups, out)
		}
	}
	if others := rv.otherFields(row); len(others.Cells) > 0 {
		p.WideGroups = append(p.WideGroups, others)
	}
	if play := rv.q.Contents(rv.q.Kind, row, s.Vars); play != nil {
		p.Play = &page.Cell{Label: rv.q.Kind.ByField[rv.q.Kind.Spec.Media[0].Field].Heading, Play: play}
	}
	p.Related = append(append(p.Related, rv.relatedLinks(row, lists)...), outlook.Links(rv.q)...)
	p.Related = slices.DeleteFunc(p.Related, func(l page.Link) bool {
		return slices.ContainsFunc(lists, func(a *relatedRead) bool { return a.href == l.Href })
	})
	rv.setReason(p, row)
	return p
}

// setParentLinks sets the links to the list that contains the record, and to the parent record.
func (rv *recordView) setParentLinks(p *detailPage, t *spec.Target, row access.Row) {
	if rv.q.Kind.IsBrowsable() {
		p.ListHref = rv.q.Clock.AsOf.AddTo(rv.q.Kind.Href + plan.WithQuery(plan.OwnVars(rv.q.Source.AddressVars(t, t.Instance.ID))))
	}
	above := rv.q.Source.ParentOf(t.Instance.Template(), nil)
	if above.Kind == nil || len(above.Vars) == 0 || !rv.q.Rights.CanSeeKind(above.Kind) {
		return
	}
	var named []string // the address of the page already contains these ids, so they are not hidden from the caller
	for i := range above.Kind.Spec.ID {
		for name, at := range above.Vars {
			if at == i {
				named = append(named, t.Var(name))
			}
		}
	}
	id := above.Kind.Spec.JoinID(named)
	if slices.ContainsFunc(t.Vars, func(v understudy.Param) bool {
		def, own := rv.q.Source.Config.PathVar(v.Name)
		return own && def == v.Value && v.Value == id
	}) {
		return // there is no link to the source's own account, which is the parent of every record
	}
	p.Parent = &page.Link{Href: rv.q.Clock.AsOf.AddTo(above.Kind.Href + "/" + url.PathEscape(id)),
		Text: plan.UpperFirst(above.Kind.Spec.Singular) +
			" " + page.ShortID(id)}
	for _, l := range rv.q.Kind.PlannedLists {
		if l.Parent.Kind == above.Kind && p.ListHref == "" {
			if target := rv.listTargetUnder(t, l, named); target != nil {
				p.ListHref = rv.q.Clock.AsOf.AddTo(rv.q.Source.Place(target))
			}
		}
	}
}

// drawGroup returns one group of a record's fields. An address of upstream becomes a link if the viewer has a page
// for it. A group of nothing but other addresses is folded up at first.
func (rv *recordView) drawGroup(p *detailPage, s *page.CellContext, row access.Row, g plan.Group) detailGroup {
	out := detailGroup{Title: g.Title, Closed: true}
	for _, c := range g.Columns {
		if row.Field(c.Spec.Name).State == access.Absent {
			continue
		}
		if l, ok := s.FollowAddress(row, c); ok {
			p.Related = append(p.Related, l)
			continue
		}
		cl := s.Cell(c, row, false)
		if v := row.Field(c.Spec.Name); c.Spec.SMS && v.State == access.Seen && v.Text != "" {
			page.DrawSegments(&cl)
		}
		out.Cells = append(out.Cells, cl)
		out.Closed = out.Closed && cl.Class == "address"
		if c.Spec.Name == rv.q.Kind.Spec.Clock && cl.Stamp != "" {
			p.When = cl // the head of the page shows the record's time and state, too
			p.When.Label = c.Words
		}
		if c.Shape == plan.Pill && cl.Tone != "hidden" && p.Status.State.Text == "" {
			p.Status.State = cl
		}
	}
	return out
}

// indentJSON returns a JSON value with one member a line. It does not change how strings are escaped.
func indentJSON(raw []byte) string {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return string(raw)
	}
	return b.String()
}
