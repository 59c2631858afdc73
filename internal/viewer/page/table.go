// Tables: records of one kind as rows, drawn in the same way on every page.

package page

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/query"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// Table is the data of the template "table".
type Table struct {
	ID             string // the HTML id of the table, for links to it; empty on pages with several tables
	Caption        string
	Heads          []Heading
	Rows           []listRow
	IsScrolling    bool // whether the table has so many columns that it scrolls sideways on every screen
	HasManyColumns bool // whether the columns do not fit a medium screen, where cells may then take two lines
	HasSelection   bool // each row has a check box that selects its record
}

// RowsID is the HTML id of a list's rows. A link at the start of the page leads to it, past the filters.
const RowsID = "rows"

// Heading is the heading of a column.
type Heading struct {
	Column *plan.Column
	Unit   string // the unit of all numbers in the column; empty if each cell shows its own unit
	Order  string // the value of the attribute aria-sort; empty if the table is not sorted by the column
	Href   string // the address of the table sorted by the column
}

// CellClass returns the CSS class of the column's cells.
func (h Heading) CellClass() string { return h.Column.CellClass }

// Text returns the heading with its unit.
func (h Heading) Text() string {
	if h.Unit == "" {
		return h.Column.Heading
	}
	return h.Column.Heading + " (" + plan.Symbol(h.Unit) + ")"
}

type listRow struct {
	Failed     bool
	SelectName string // the value of the check box that selects the record; empty if the record cannot be selected
	Cells      []Cell
	NoteTags   []Cell // labels for the notes on the record, shown after the first cell
}

// A table with at least minManyColumns columns has HasManyColumns set. With at least minWideColumns it has IsScrolling set.
const minManyColumns, minWideColumns = 9, 11

// maxColumnsWithSeconds is the number of columns below which dates are shown with seconds.
const maxColumnsWithSeconds = 6

// Table returns a table of records of one kind.
func (s *CellContext) Table(caption string, columns []*plan.Column, rows []access.Row) Table {
	t := Table{Caption: caption, HasManyColumns: len(columns) >= minManyColumns, IsScrolling: len(columns) >= minWideColumns}
	t.Heads = make([]Heading, len(columns))
	of := *s
	of.inTable, of.Seconds, of.units = true, len(columns) < maxColumnsWithSeconds, map[string]string{}
	s = &of
	for i, c := range columns {
		unit := commonUnit(c, rows)
		t.Heads[i] = Heading{Column: c, Unit: unit}
		s.units[c.Spec.Name] = unit
	}
	t.Rows = make([]listRow, len(rows))
	cells := make([]Cell, len(rows)*len(columns))
	for i, row := range rows {
		t.Rows[i].Failed = HasFailed(s.Kind, row)
		t.Rows[i].Cells, cells = cells[:len(columns):len(columns)], cells[len(columns):]
		for j, c := range columns {
			t.Rows[i].Cells[j] = s.Cell(c, row, true)
			t.Rows[i].Cells[j].Label = t.Heads[j].Text()
		}
		s.linkRow(t.Rows[i].Cells, columns, row)
		t.Rows[i].NoteTags = s.NoteTags(row)
		if len(s.Kind.Spec.ID) == 0 && len(columns) > 0 && t.Rows[i].Cells[0].Href == "" {
			t.Rows[i].Cells[0].Href = s.firstAddress(row)
		}
	}
	for i, h := range t.Heads {
		if h.Unit != "" {
			formatDecimals(t.Rows, i, h.Column.Spec.Name, rows)
		}
	}
	return t
}

// SelectForm is the HTML id of the form for the selected records.
const SelectForm = "select"

// SelectName returns the value of the check box that selects a record. It returns "" if the caller may not see the record's id.
func SelectName(k *plan.Kind, id string) string {
	if id == "" {
		return ""
	}
	return k.Source.Name + "/" + k.Spec.Name + "/" + id
}

// AddSelectBoxes adds a check box to each row of the table. rows are the records of the table.
func (t *Table) AddSelectBoxes(k *plan.Kind, rows []access.Row) {
	t.HasSelection = true
	for i := range t.Rows {
		t.Rows[i].SelectName = SelectName(k, rows[i].ID)
	}
}

// formatDecimals writes all amounts in a column with the same number of decimal places, except rounded amounts.
func formatDecimals(rows []listRow, column int, field string, of []access.Row) {
	decimals := func(text string) int {
		_, fraction, _ := strings.Cut(text, ".")
		return len(fraction)
	}
	most := 0
	for _, row := range rows {
		most = max(most, decimals(row.Cells[column].Text))
	}
	for i, row := range rows {
		c := &row.Cells[column]
		exact := decimals(strings.TrimRight(of[i].Field(field).Text, "0"))
		if n := decimals(c.Text); n > 0 && exact <= n {
			c.Text += strings.Repeat("0", most-n)
		}
	}
}

// commonUnit returns the unit that all numbers of a column have. It returns "" if there is none or if the rows have
// different units.
func commonUnit(c *plan.Column, rows []access.Row) (unit string) {
	if c.Unit == "" || c.Spec.Class != spec.ClassPrice {
		return ""
	}
	for _, row := range rows {
		if v := row.Field(c.Spec.Name); v.State != access.Seen || v.Text == "" {
			continue
		}
		u := row.Field(c.Unit)
		if u.State != access.Seen || u.Text == "" || unit != "" && u.Text != unit {
			return ""
		}
		unit = u.Text
	}
	return unit
}

// NoteTags returns labels that say how many notes a record has and whether it is marked as handled.
func (s *CellContext) NoteTags(row access.Row) (all []Cell) {
	if !s.notes || row.ID == "" {
		return nil
	}
	a := s.q.V.Options.Annotations.Annotation(s.Kind.Source.Name, s.Kind.Spec.Name, row.ID)
	if a == nil {
		return nil
	}
	if a.Handled != nil {
		all = append(all, Cell{Text: "handled", Tone: "pill good", Hint: "Handled by " + a.Handled.By})
	}
	if n := len(a.Notes); n > 0 {
		text := strconv.Itoa(n) + " notes"
		if n == 1 {
			text = "1 note"
		}
		all = append(all, Cell{Text: text, Tone: "pill", Hint: a.Notes[n-1].By + ": " + understudy.Clip(a.Notes[n-1].Text)})
	}
	return all
}

// drawMasked shows the masked form of a value. If the value is a hash, the cell links to the records with the same value.
func (s *CellContext) drawMasked(c *plan.Column, val access.Value, out *Cell) {
	out.Text, out.Tone, out.Hint = strings.ReplaceAll(val.Text, "*", "•"), "masked", "Your role can see only a part of this"
	switch val.Level {
	case access.Country:
		out.Hint = "Your role can see only the country of a number"
		if country := strings.TrimLeft(val.Text, "*"); country != "" {
			out.Text = strings.Repeat("•", 4) + "\u00a0" + country
		}
	case access.Hash:
		out.Text, out.Copy = ShortID(val.Text), val.Text
		out.Hint = "A code in place of the value, which your role can't see. Equal values have equal codes"
		out.Href = s.hashLink(c, val)
		if out.Href != "" {
			out.LinkLabel = "Code " + out.Text + ": find the records with the same value"
		}
	}
}

// hashLink returns the address of a search for a hash: in all fields with phone numbers if the value is a phone
// number, else in its own field. It returns "" if the server has no search, or if the page shows an earlier moment.
func (s *CellContext) hashLink(c *plan.Column, val access.Value) string {
	if s.q.V.Options.Search == nil || !s.q.Clock.AsOf.At.IsZero() || val.Text == "" {
		return ""
	}
	text := "kind:" + s.Kind.Spec.Name + " " + c.Spec.Name + ":" + quote(val.Text)
	if val.Field != nil && val.Field.Class == spec.ClassPhone {
		text = "number:" + quote(val.Text)
	}
	return SearchAddress("/search", query.SearchRequest{Text: text})
}

// firstAddress returns the address of the first page of the viewer that a field of the row links to. Rows without an
// id link to it.
func (s *CellContext) firstAddress(row access.Row) string {
	for _, f := range s.Kind.Spec.Fields {
		if l, ok := s.FollowAddress(row, s.Kind.ByField[f.Name]); ok {
			return l.Href
		}
	}
	return ""
}

// linkRow makes the first cell of a row a link to its record, and shortens the ids in the row.
func (s *CellContext) linkRow(cells []Cell, columns []*plan.Column, row access.Row) {
	href := s.RecordAddress(row)
	for i, c := range columns {
		cells[i].Shorten(c)
		if i == 0 && href != "" {
			cells[i].Href = href
			if cells[i].Tone == "none" && cells[i].Stamp == "" {
				cells[i].LinkLabel = cells[i].Text + ": open this " + s.Kind.Spec.Singular
			}
		}
		// the cell needs no link of its own, because the first cell has the same; the script copies the id from there
		if i > 0 && c.IsID && href != "" && cells[i].Href == href {
			cells[i].Href, cells[i].Copy, cells[i].Hint = "", "", ""
		}
	}
}

// RecordAddress returns the address of a row's record, or "" if the caller may not open it.
func (s *CellContext) RecordAddress(row access.Row) string {
	if row.ID == "" || !slices.Contains(s.linked, s.Kind) {
		return ""
	}
	return s.asOf.AddTo(recordHref(s.Kind, row, row.ID, s.Vars))
}

// recordHref returns the address of a record. The values of path variables come from the record or from vars, the
// address of its list. If the record has its own address in a field, the id is enough. recordHref returns "" if a
// value is missing, or if the kind has no address for single records.
func recordHref(k *plan.Kind, row access.Row, id string, vars understudy.Query) string {
	in := k.PlannedInstances[0]
	if in.Spec.Address != "" && len(in.Needs) > 0 && row.Field(in.Spec.Address).State == access.Seen {
		return k.Href + "/" + url.PathEscape(id)
	}
	query := vars.Remove(func(p understudy.Param) bool { return !plan.IsOwnVar(in.Spec.Template(), p.Name) })
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
	slices.SortStableFunc(query, plan.CompareNames)
	if !plan.IsFormedID(id) && !k.CanOpen(id, query) {
		return ""
	}
	return k.Href + "/" + url.PathEscape(id) + plan.WithQuery(query)
}

// CellContext returns the data that cells need for records of one kind. vars are the values of the path variables in
// the address of the page.
func (q *Exchange) CellContext(k *plan.Kind, vars understudy.Query, own map[string]bool) *CellContext {
	s := &CellContext{q: q, Kind: k, Own: own, Vars: vars, asOf: q.Clock.AsOf, numbers: len(q.Rights.ContactKinds(k.Source)) > 0,
		notes: q.Rights.CanSeeNotes(k.Source, q.Clock.AsOf)}
	for _, other := range k.Source.Kinds {
		if len(other.Spec.Instances) > 0 && len(other.Spec.ID) > 0 && q.Rights.CanSeeKind(other) {
			s.linked = append(s.linked, other)
		}
	}
	return s
}

// HasFailed reports whether the record has failed, according to the fields that the caller may see.
func HasFailed(k *plan.Kind, row access.Row) bool {
	return slices.ContainsFunc(k.Spec.Failed, func(st spec.State) bool {
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

// FollowAddress returns a link to the viewer's page for one of upstream's addresses in a field. ok is false if the
// viewer has no such page or if the caller may not read it.
func (s *CellContext) FollowAddress(row access.Row, c *plan.Column) (Link, bool) {
	if !strings.Contains(c.Spec.Name, ".") {
		return Link{}, false
	}
	val := row.Field(c.Spec.Name)
	if val.State != access.Seen || !strings.HasPrefix(val.Text, "/") && !strings.HasPrefix(val.Text, "https://") {
		return Link{}, false
	}
	t, err := s.Kind.Source.Spec.ResolveLink(s.Kind.Source.Name, val.Text)
	if err != nil || t.Kind == nil || s.q.Rights.Gate.CheckRead(s.q.Rights.Caller, t) != nil {
		return Link{}, false
	}
	href := s.asOf.AddTo(s.Kind.Source.Place(t))
	return Link{Href: href, Text: plan.UpperFirst(c.Words)}, href != ""
}
