// Table: some records of one kind in rows, the same on every page.

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

// Table is what the template "table" shows.
type Table struct {
	ID      string // of its rows, where a link leads to them; "" among other tables
	Caption string
	Heads   []Heading
	Rows    []listRow
	Wide    bool // more columns than fit any screen; the table scrolls in its box
	Many    bool // more than fit a middling one; cells may take two lines there
	Picks   bool // each row has a box to select its record
}

// rowsID names the rows of a list, for the link that leads past its filters.
const RowsID = "rows"

// Heading is the head of a column.
type Heading struct {
	Column *plan.Column
	Unit   string // of all its numbers; "" when the cells say theirs
	Order  string // of aria-sort; "" = the table is not in its order
	Href   string // the table in another order by it
}

// Look is the class of the column's cells.
func (h Heading) Look() string { return h.Column.CellClass }

// Text is what the column is called.
func (h Heading) Text() string {
	if h.Unit == "" {
		return h.Column.Heading
	}
	return h.Column.Heading + " (" + plan.Symbol(h.Unit) + ")"
}

type listRow struct {
	Failed  bool
	Pick    string // names the record in the form of those that are selected; "": it cannot be
	Cells   []Cell
	Written []Cell // of the notes on the record, behind its first cell
}

// The numbers of columns from which a table is many or wide.
const manyFrom, wideFrom = 9, 11

// secondsBelow is the number of columns below which there is room for seconds beside a day.
const secondsBelow = 6

// Table draws records of one kind.
func (s *CellContext) Table(caption string, columns []*plan.Column, rows []access.Row) Table {
	t := Table{Caption: caption, Many: len(columns) >= manyFrom, Wide: len(columns) >= wideFrom}
	t.Heads = make([]Heading, len(columns))
	of := *s
	of.narrow, of.Seconds, of.units = true, len(columns) < secondsBelow, map[string]string{}
	s = &of
	for i, c := range columns {
		unit := commonUnit(c, rows)
		t.Heads[i] = Heading{Column: c, Unit: unit}
		s.units[c.Spec.Name] = unit
	}
	t.Rows = make([]listRow, len(rows))
	cells := make([]Cell, len(rows)*len(columns))
	for i, row := range rows {
		t.Rows[i].Failed = Failed(s.Kind, row)
		t.Rows[i].Cells, cells = cells[:len(columns):len(columns)], cells[len(columns):]
		for j, c := range columns {
			t.Rows[i].Cells[j] = s.Cell(c, row, true)
			t.Rows[i].Cells[j].Label = t.Heads[j].Text()
		}
		s.open(t.Rows[i].Cells, columns, row)
		t.Rows[i].Written = s.Written(row)
		if len(s.Kind.Spec.ID) == 0 && len(columns) > 0 && t.Rows[i].Cells[0].Href == "" {
			t.Rows[i].Cells[0].Href = s.firstAddress(row)
		}
	}
	for i, h := range t.Heads {
		if h.Unit != "" {
			alignDecimals(t.Rows, i, h.Column.Spec.Name, rows)
		}
	}
	return t
}

// SelectForm is the id of the form that the boxes of selected records belong to.
const SelectForm = "select"

// PickName names a record in the form of those that are selected; "" without an id that the caller sees.
func PickName(k *plan.Kind, id string) string {
	if id == "" {
		return ""
	}
	return k.Source.Name + "/" + k.Spec.Name + "/" + id
}

// PickRows gives the rows of a table, which are those of some records of a kind, boxes to select them.
func (t *Table) PickRows(k *plan.Kind, rows []access.Row) {
	t.Picks = true
	for i := range t.Rows {
		t.Rows[i].Pick = PickName(k, rows[i].ID)
	}
}

// alignDecimals gives the amounts of a column the same number of decimal places, but for those that are rounded.
func alignDecimals(rows []listRow, column int, field string, of []access.Row) {
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

// commonUnit is the unit of a column's numbers; "" when it has none, or rows have different ones.
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

// Written is what a list says of the notes on a record and of its mark; nil: nothing.
func (s *CellContext) Written(row access.Row) (all []Cell) {
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

// drawMasked draws what is shown of a value in its place. A hash leads to the records
// that have the same value.
func (s *CellContext) drawMasked(c *plan.Column, val access.Value, out *Cell) {
	out.Text, out.Tone, out.Hint = strings.ReplaceAll(val.Text, "*", "•"), "masked", "Your role shows only a part of this"
	switch val.Level {
	case access.Country:
		out.Hint = "Your role shows only the country of a number"
		if country := strings.TrimLeft(val.Text, "*"); country != "" {
			out.Text = strings.Repeat("•", 4) + "\u00a0" + country
		}
	case access.Hash:
		out.Text, out.Copy, out.Hint = ShortID(val.Text), val.Text, "A hash: equal values have equal ones, and your role does not show the value"
		out.Href = s.hashLink(c, val)
		if out.Href != "" {
			out.Says = "Hash " + out.Text + ": find the records with the same value"
		}
	}
}

// hashLink is the search for a hash: in every field of phone numbers, or in the field at
// hand. "" without a search, and at an earlier moment, where there is none.
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

// firstAddress is the first page of ours among the addresses of upstream that a
// row without an id holds.
func (s *CellContext) firstAddress(row access.Row) string {
	for _, f := range s.Kind.Spec.Fields {
		if l, ok := s.Followable(row, s.Kind.ByField[f.Name]); ok {
			return l.Href
		}
	}
	return ""
}

// open makes a row lead to its record: its first cell does. Ids are shortened.
func (s *CellContext) open(cells []Cell, columns []*plan.Column, row access.Row) {
	href := s.RecordOf(row)
	for i, c := range columns {
		cells[i].Shorten(c)
		if i == 0 && href != "" {
			cells[i].Href = href
			if cells[i].Tone == "none" && cells[i].Stamp == "" {
				cells[i].Says = cells[i].Text + ": open this " + s.Kind.Spec.One
			}
		}
		if i > 0 && c.IsID && href != "" && cells[i].Href == href { // the first cell leads there; the script copies the id from it
			cells[i].Href, cells[i].Copy, cells[i].Hint = "", "", ""
		}
	}
}

// RecordOf is the page of a row's record, "" when the caller may not open it.
func (s *CellContext) RecordOf(row access.Row) string {
	if row.ID == "" || !slices.Contains(s.linked, s.Kind) {
		return ""
	}
	return s.asOf.Keep(recordHref(s.Kind, row, row.ID, s.Vars))
}

// recordHref is the page of a record of the kind; what its path needs beside
// the id comes from the record, or from the address of the list it is in.
// "" when neither has it, or when no path can name the record. One that has its own address
// is found by its id alone.
func recordHref(k *plan.Kind, row access.Row, id string, vars understudy.Query) string {
	in := k.PlannedInstances[0]
	if in.Spec.Address != "" && len(in.Needs) > 0 && row.Field(in.Spec.Address).State == access.Seen {
		return k.Href + "/" + url.PathEscape(id)
	}
	query := vars.Without(func(p understudy.Param) bool { return !plan.IsOwnVar(in.Spec.Template(), p.Name) })
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

// CellContext gathers what the cells of one kind's records need to know of the
// caller. vars are the path variables of the page at hand.
func (q *Exchange) CellContext(k *plan.Kind, vars understudy.Query, own map[string]bool) *CellContext {
	s := &CellContext{q: q, Kind: k, Own: own, Vars: vars, asOf: q.Clock.AsOf, numbers: len(q.Rights.ContactKinds(k.Source)) > 0,
		notes: q.Rights.SeesNotes(k.Source, q.Clock.AsOf)}
	for _, other := range k.Source.Kinds {
		if len(other.Spec.Instances) > 0 && len(other.Spec.ID) > 0 && q.Rights.SeesKind(other) {
			s.linked = append(s.linked, other)
		}
	}
	return s
}

// Failed reports whether what the caller sees of a record says that it failed.
func Failed(k *plan.Kind, row access.Row) bool {
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

// Followable turns a field that holds one of upstream's own addresses into a
// link to the viewer's page of it, where there is one the caller may read.
func (s *CellContext) Followable(row access.Row, c *plan.Column) (Link, bool) {
	if !strings.Contains(c.Spec.Name, ".") {
		return Link{}, false
	}
	val := row.Field(c.Spec.Name)
	if val.State != access.Seen || !strings.HasPrefix(val.Text, "/") && !strings.HasPrefix(val.Text, "https://") {
		return Link{}, false
	}
	t, err := s.Kind.Source.Spec.Follow(s.Kind.Source.Name, val.Text)
	if err != nil || t.Kind == nil || s.q.Rights.Gate.Read(s.q.Rights.Caller, t) != nil {
		return Link{}, false
	}
	href := s.asOf.Keep(s.Kind.Source.Place(t))
	return Link{Href: href, Text: plan.UpperFirst(c.Words)}, href != ""
}
