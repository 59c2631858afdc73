// Table: some records of one kind in rows, the same on every page.

package viewer

import (
	"net/url"
	"slices"
	"strings"
	"understudy/internal/viewer/plan"

	"understudy"
	"understudy/internal/access"
)

// table is what the template "table" shows.
type table struct {
	ID      string // of its rows, where a link leads to them; "" among other tables
	Caption string
	Columns []*plan.Column
	Heads   []heading
	Rows    []listRow
	Wide    bool // more columns than fit any screen; the table scrolls in its box
	Many    bool // more than fit a middling one; cells may take two lines there
}

// rowsID names the rows of a list, for the link that leads past its filters.
const rowsID = "rows"

// heading is the head of a column.
type heading struct {
	column *plan.Column
	Order  string // of aria-sort; "" = the table is not in its order
	Href   string // the table in another order by it
}

// Look is the class of the column's cells.
func (h heading) Look() string { return h.column.CellClass }

// Text is what the column is called.
func (h heading) Text() string { return h.column.Heading }

type listRow struct {
	Failed bool
	Cells  []cell
}

// The numbers of columns from which a table is many or wide.
const manyFrom, wideFrom = 9, 11

// table draws records of one kind.
func (s *cellContext) table(caption string, columns []*plan.Column, rows []access.Row) table {
	t := table{Caption: caption, Columns: columns, Many: len(columns) >= manyFrom, Wide: len(columns) >= wideFrom}
	t.Heads = make([]heading, len(columns))
	for i, c := range columns {
		t.Heads[i].column = c
	}
	t.Rows = make([]listRow, len(rows))
	cells := make([]cell, len(rows)*len(columns))
	for i, row := range rows {
		t.Rows[i].Failed = failed(s.kind, row)
		t.Rows[i].Cells, cells = cells[:len(columns):len(columns)], cells[len(columns):]
		for j, c := range columns {
			t.Rows[i].Cells[j] = s.cell(c, row, true)
		}
		s.open(t.Rows[i].Cells, columns, row)
		if len(s.kind.ID) == 0 && len(columns) > 0 && t.Rows[i].Cells[0].Href == "" {
			t.Rows[i].Cells[0].Href = s.firstAddress(row)
		}
	}
	return t
}

// firstAddress is the first page of ours among the addresses of upstream that a
// row without an id holds.
func (s *cellContext) firstAddress(row access.Row) string {
	for _, f := range s.kind.Fields {
		if l, ok := s.followable(row, s.kind.ByField[f.Name]); ok {
			return l.Href
		}
	}
	return ""
}

// open makes a row lead to its record: its first cell does, and the id, which
// is shortened.
func (s *cellContext) open(cells []cell, columns []*plan.Column, row access.Row) {
	href := s.recordOf(row)
	for i, c := range columns {
		if short := shortID(cells[i].Text); cells[i].Hint == "" && short != cells[i].Text && (c.Shape == plan.Code || plan.FormedID(cells[i].Text)) {
			cells[i].Hint, cells[i].Text, cells[i].Class = cells[i].Text, short, "code"
		}
		if i == 0 && href != "" {
			cells[i].Href = href
			if cells[i].Tone == "none" {
				cells[i].Says = cells[i].Text + ": open this " + s.kind.One
			}
		}
	}
}

// recordOf is the page of a row's record, "" when the caller may not open it.
func (s *cellContext) recordOf(row access.Row) string {
	if row.ID == "" || !slices.Contains(s.linked, s.kind) {
		return ""
	}
	return s.asOf.keep(recordHref(s.kind, row, row.ID, s.vars))
}

// recordHref is the page of a record of the kind; what its path needs beside
// the id comes from the record, or from the address of the list it is in.
// "" when neither has it, or when no path can name the record.
func recordHref(k *plan.Kind, row access.Row, id string, vars understudy.Query) string {
	in := k.PlannedInstances[0]
	query := vars.Without(func(p understudy.Param) bool { return !plan.IsOwnVar(in.Path, p.Name) })
	for name, field := range in.Needs {
		value, ok := vars.Get(name)
		if v := row.Field(field); field != "" && v.State == access.Seen && v.Text != "" {
			value, ok = v.Text, true
		}
		if !ok {
			return ""
		}
		query = append(query, understudy.Param{Name: name, Value: value})
	}
	slices.SortStableFunc(query, plan.ByName)
	if !plan.FormedID(id) && !k.Opens(id, query) {
		return ""
	}
	return k.Href + "/" + url.PathEscape(id) + plan.WithQuery(query)
}

// cellContext gathers what the cells of one kind's records need to know of the
// caller. vars are the path variables of the page at hand.
func (q *exchange) cellContext(k *plan.Kind, vars understudy.Query, own map[string]bool) *cellContext {
	s := &cellContext{q: q, kind: k, own: own, vars: vars, asOf: q.asOf, numbers: len(q.contactKinds(k.Source)) > 0}
	for _, other := range k.Source.Kinds {
		if len(other.Instances) > 0 && len(other.ID) > 0 && q.seesKind(other) {
			s.linked = append(s.linked, other)
		}
	}
	return s
}

// failed reports whether what the caller sees of a record says that it failed.
func failed(k *plan.Kind, row access.Row) bool {
	return slices.ContainsFunc(k.Failed, func(st understudy.State) bool {
		v := row.Field(st.Field)
		if v.State != access.Seen {
			return false
		}
		if len(st.In) == 0 {
			return v.Text != ""
		}
		return slices.Contains(st.In, v.Text)
	})
}

// followable turns a field that holds one of upstream's own addresses into a
// link to the viewer's page of it, where there is one the caller may read.
func (s *cellContext) followable(row access.Row, c *plan.Column) (link, bool) {
	if !strings.Contains(c.Name, ".") {
		return link{}, false
	}
	val := row.Field(c.Name)
	if val.State != access.Seen || !strings.HasPrefix(val.Text, "/") && !strings.HasPrefix(val.Text, "https://") {
		return link{}, false
	}
	t, err := s.kind.Source.Spec.Follow(s.kind.Source.Name, val.Text)
	if err != nil || t.Kind == nil || s.q.gate.Read(s.q.caller, t) != nil {
		return link{}, false
	}
	href := s.asOf.keep(s.kind.Source.Place(t))
	return link{Href: href, Text: plan.UpperFirst(c.Words)}, href != ""
}
