// List: the page of a kind's records, newest first.

package viewer

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"understudy"
	"understudy/internal/access"
)

// listPage is what list.html shows.
type listPage struct {
	Kind     *kindPlan
	Heading  string
	Tabs     []link
	Form     form
	Columns  []*column
	Rows     []listRow
	Wide     bool // more columns than fit any screen; the table scrolls in its box
	Many     bool // more than fit a middling one; cells may take two lines there
	Newest   string
	Newer    string
	Older    string
	NoOlder  string // why there is no way on, when there are older records
	Data     string
	How      string
	Position string
}

type listRow struct {
	Failed bool
	Cells  []cell
}

// link is an address and its words.
type link struct {
	Href, Text string
	Current    bool
}

// The numbers of columns from which a table is many or wide.
const manyFrom, wideFrom = 9, 11

func (q *visit) listTarget() (*question, error) {
	if len(q.kind.lists) == 0 {
		return nil, notFound(upperFirst(q.kind.Title)+" cannot be listed", "Open one by its address.", "")
	}
	return q.question()
}

// list shows one page of a kind.
func (v *Viewer) list(q *visit) error {
	ask, err := q.listTarget()
	if err != nil {
		return err
	}
	if !ask.tidy {
		suffix := ""
		if q.json {
			suffix = dataSuffix
		}
		q.w.Header().Set("Cache-Control", "no-store")
		http.Redirect(q.w, q.r, ask.address(q.kind, suffix, ask.query, ask.back), http.StatusSeeOther)
		return nil
	}
	own, err := q.ask(ask.target)
	if err != nil {
		return err
	}
	view, err := v.Gate.View(q.caller, q.answer.Page)
	if err != nil {
		return err
	}
	if q.json {
		q.send(q.answer.Page.Status, view.ContentType, view.Body)
		return nil
	}
	if q.answer.Page.Status != http.StatusOK {
		return q.refused(view.Body)
	}
	return q.render(http.StatusOK, "list", upperFirst(q.kind.Title), q.listPage(ask, view, own.wait(q)))
}

func (q *visit) listPage(ask *question, view *access.View, own map[string]bool) *listPage {
	p := &listPage{
		Kind: q.kind, Heading: upperFirst(q.kind.Title), Tabs: q.tabs(ask), Form: q.form(ask),
		Columns: q.columns(), Data: ask.address(q.kind, dataSuffix, ask.query, nil), How: q.how(),
	}
	p.Many, p.Wide = len(p.Columns) >= manyFrom, len(p.Columns) >= wideFrom
	q.turn(ask, p)
	s := q.sheet(ask.vars, own)
	s.filters = q.phoneFilters(ask.list)
	rows := view.Rows()
	p.Rows = make([]listRow, len(rows))
	cells := make([]cell, len(rows)*len(p.Columns))
	for i, row := range rows {
		p.Rows[i].Failed = q.kind.failed(row)
		p.Rows[i].Cells, cells = cells[:len(p.Columns):len(p.Columns)], cells[len(p.Columns):]
		for j, c := range p.Columns {
			p.Rows[i].Cells[j] = q.cell(s, c, row, true)
		}
		s.open(p.Rows[i].Cells, p.Columns, row)
	}
	return p
}

// open makes a row lead to its record: its first cell does, and the id, which
// is shortened.
func (s *sheet) open(cells []cell, columns []*column, row access.Row) {
	href := s.recordOf(row)
	if href == "" {
		return
	}
	for i, c := range columns {
		switch {
		case c.isID && cells[i].Href != "":
			cells[i].Hint, cells[i].Text = cells[i].Text, shortID(cells[i].Text)
		case i == 0:
			cells[i].Href = href
			if cells[i].Tone == "none" {
				cells[i].Says = cells[i].Text + ": open this " + s.kind.One
			}
		}
	}
}

// recordOf is the page of a row's record, "" when the caller may not open it.
func (s *sheet) recordOf(row access.Row) string {
	if row.ID == "" || !slices.Contains(s.linked, s.kind) {
		return ""
	}
	return s.kind.href + "/" + url.PathEscape(row.ID) + withQuery(s.vars)
}

// columns are those of the kind that the caller's role shows.
func (q *visit) columns() []*column {
	var shown []*column
	for _, c := range q.kind.columns {
		if q.v.Gate.Level(q.caller, q.source.Name, q.kind.Name, c.Name) != access.Hide {
			shown = append(shown, c)
		}
	}
	return shown
}

func (q *visit) tabs(ask *question) []link {
	var tabs []link
	for _, l := range q.kind.lists {
		if l.newest != nil {
			tabs = append(tabs, link{Href: (&question{list: l}).address(q.kind, "", nil, nil), Text: l.title, Current: l == ask.list})
		}
	}
	if len(tabs) < 2 {
		return nil
	}
	return tabs
}

// turn works out where Newest, Newer and Older lead. Upstream's tokens are made
// of ids: a caller who may not see ids gets none.
func (q *visit) turn(ask *question, p *listPage) {
	paging := &q.source.Spec.Paging
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

// sheet gathers what the cells of a page need to know of the caller.
func (q *visit) sheet(vars understudy.Query, own map[string]bool) *sheet {
	s := &sheet{kind: q.kind, own: own, vars: vars}
	for _, k := range q.readable(q.source) {
		if len(k.Instances) > 0 && len(k.ID) > 0 {
			s.linked = append(s.linked, k)
		}
	}
	return s
}

// phoneFilters are the filters by field that a number can be put in.
func (q *visit) phoneFilters(l *listPlan) map[string]string {
	names := map[string]string{}
	for i, f := range l.Filters {
		if field := q.kind.Field(f.Field); field != nil && field.Class == understudy.ClassPhone && names[f.Field] == "" && q.offers(l, i) {
			names[f.Field] = f.Name
		}
	}
	return names
}

// refused is upstream's own refusal as a page: its words say what was wrong.
func (q *visit) refused(body []byte) error {
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
