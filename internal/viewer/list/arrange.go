// The arrangement of a list: its columns, its order, and the search conditions added to upstream's filters.

package list

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
)

// The viewer's own parameters of a list's arrangement.
const (
	paramColumns = understudy.OwnPrefix + "columns" // field names in order, separated by commas
	paramSort    = understudy.OwnPrefix + "sort"    // a field name; a "-" before it means the largest first
	paramText    = understudy.OwnPrefix + "q"       // a search condition
	paramNarrow  = understudy.OwnPrefix + "narrow"  // a search condition that a facet added; may occur several times
	paramForm    = understudy.OwnPrefix + "form"    // the open form: formColumns or formSelect
	paramCursor  = understudy.OwnPrefix + "cursor"  // the position in a list that a search found
)

// The forms that a page of records can have open.
const (
	formColumns = "columns"
	formSelect  = "select" // check boxes in the rows, and what can be done with the selected records
)

// maxColumns is the largest number of columns in an address.
const maxColumns = 60

// arrangement is how a list is shown. The zero value is the kind's default.
type arrangement struct {
	columns    []*plan.Column // the columns to show; nil for the kind's default columns
	sort       *plan.Column   // the column to sort by; nil for upstream's order
	descending bool           // the sort order begins with the largest value
	text       string
	narrow     []string // the conditions that facets added
	cursor     string
	form       string // the open form; links of the page do not contain it
	// everywhere means the list of all roots of the source. Upstream has no such list.
	everywhere bool
}

// maxNarrow is the largest number of conditions that facets may add.
const maxNarrow = 20

// isSearch reports whether upstream has no such list, so that it is a search in the stored records.
func (a arrangement) isSearch() bool {
	return a.sort != nil || a.text != "" || len(a.narrow) > 0 || a.everywhere
}

// params returns the parameters of an arrangement.
func (a arrangement) params() understudy.Query {
	var all understudy.Query
	if len(a.columns) > 0 {
		all = append(all, understudy.Param{Name: paramColumns, Value: columnNames(a.columns)})
	}
	if a.text != "" {
		all = append(all, understudy.Param{Name: paramText, Value: a.text})
	}
	for _, n := range a.narrow {
		all = append(all, understudy.Param{Name: paramNarrow, Value: n})
	}
	if a.sort != nil {
		all = append(all, understudy.Param{Name: paramSort, Value: a.order()})
	}
	if a.cursor != "" && a.isSearch() {
		all = append(all, understudy.Param{Name: paramCursor, Value: a.cursor})
	}
	return all
}

// order returns the value of the parameter sort.
func (a arrangement) order() string {
	switch {
	case a.sort == nil:
		return ""
	case a.descending:
		return "-" + a.sort.Spec.Name
	}
	return a.sort.Spec.Name
}

func columnNames(columns []*plan.Column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Spec.Name
	}
	return strings.Join(names, ",")
}

// readArrangement reads one parameter of a list's arrangement. taken is false if it is another parameter.
func readArrangement(q *page.Exchange, ask *listQuery, p understudy.Param) (taken bool, err error) {
	a := &ask.arrangement
	switch p.Name {
	case paramColumns:
		more, err := parseColumns(q.Kind, p.Value)
		if err != nil {
			return true, err
		}
		before := len(a.columns)
		for _, c := range more {
			if !slices.Contains(a.columns, c) {
				a.columns = append(a.columns, c)
			}
		}
		ask.isCanonical = ask.isCanonical && before == 0 && p.Value != "" && columnNames(a.columns) == p.Value
	case paramSort:
		return true, readOrder(q, ask, p.Value)
	case paramText:
		text := strings.TrimSpace(p.Value)
		ask.isCanonical = ask.isCanonical && text == p.Value && text != "" && a.text == ""
		a.text = cmp.Or(a.text, text)
	case paramNarrow:
		fresh := p.Value != "" && !slices.Contains(a.narrow, p.Value)
		ask.isCanonical = ask.isCanonical && fresh
		if fresh && len(a.narrow) == maxNarrow {
			return true, page.NewBadRequest("These are too many conditions", "Remove some of them.", nil)
		}
		if fresh {
			a.narrow = append(a.narrow, p.Value)
		}
	case paramForm:
		if p.Value != formColumns && p.Value != formSelect {
			return true, page.NewUnknownWord("form", p.Value, []string{formColumns, formSelect}, nil)
		}
		ask.arrangement.form = p.Value
	case paramCursor:
		ask.isCanonical = ask.isCanonical && p.Value != "" && a.cursor == ""
		a.cursor = p.Value
	default:
		return false, nil
	}
	return true, nil
}

// parseColumns parses field names separated by commas, and ignores repetitions.
func parseColumns(k *plan.Kind, text string) ([]*plan.Column, error) {
	var all []*plan.Column
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		c := k.ByField[name]
		if c == nil || !slices.Contains(k.AllColumns, c) {
			return nil, page.NewUnknownWord("column of "+k.Spec.Title, name, k.ColumnNames(), nil)
		}
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	if len(all) > maxColumns {
		return nil, page.NewBadRequest("These are too many columns", "A list shows at most 60 of them.", nil)
	}
	return all, nil
}

// readOrder reads the order of a list. The role must see the field fully, because the position of a record would
// reveal its value.
func readOrder(q *page.Exchange, ask *listQuery, text string) error {
	name, down := strings.CutPrefix(text, "-")
	if name == "" {
		ask.isCanonical = false
		return nil
	}
	c := q.Kind.ByField[name]
	if c == nil || !slices.Contains(q.Kind.AllColumns, c) {
		return page.NewUnknownWord("column of "+q.Kind.Spec.Title, name, q.Kind.ColumnNames(), nil)
	}
	if q.Rights.Level(q.Kind, c.Spec.Name) != access.See {
		return &page.Problem{
			Title: "Your role does not allow this", Kind: understudy.ErrForbidden,
			Hint: "It can't sort by " + c.Spec.Name + ", which it can't see in full." + q.Rights.RemedyOf(q.Kind, c.Spec.Name),
		}
	}
	ask.isCanonical = ask.isCanonical && ask.arrangement.sort == nil
	if down && name == q.Kind.Spec.Clock { // upstream returns the records in this order anyway
		ask.isCanonical = false
		return nil
	}
	ask.arrangement.sort, ask.arrangement.descending = c, down
	return nil
}

// linkHeadings links the headings of a list's table to the list sorted by them. Numbers and moments begin with the
// largest, text with A. The next click reverses the order, and the third returns to upstream's order.
func (lv listing) linkHeadings(t *page.Table, rows []access.Row) {
	if _, ok := lv.conditions(); !ok || lv.q.V.Options.Search == nil || !lv.q.Clock.AsOf.At.IsZero() {
		return
	}
	timed := !slices.ContainsFunc(rows, func(r access.Row) bool { _, ok := page.ClockTime(lv.q.Kind, r); return !ok })
	for i := range t.Heads {
		h := &t.Heads[i]
		if lv.q.Rights.Level(lv.q.Kind, h.Column.Spec.Name) != access.See {
			continue
		}
		clock := h.Column.Spec.Name == lv.q.Kind.Spec.Clock
		to := *lv.ask
		to.arrangement.cursor = ""
		switch {
		case lv.ask.arrangement.sort == nil && clock && timed && isNewestFirst(lv.q.Kind, rows):
			h.Order, to.arrangement.sort, to.arrangement.descending = "descending", h.Column, false
		case lv.ask.arrangement.sort == nil && clock: // upstream's own order is a different one
			to.arrangement.sort, to.arrangement.descending = h.Column, true
		case lv.ask.arrangement.sort != h.Column:
			to.arrangement.sort, to.arrangement.descending = h.Column, h.Column.IsNumeric || h.Column.Shape == plan.Moment
			if clock {
				to.arrangement.sort = nil
			}
		default:
			h.Order = "ascending"
			if lv.ask.arrangement.descending {
				h.Order = "descending"
			}
			if first := h.Column.IsNumeric || h.Column.Shape == plan.Moment; lv.ask.arrangement.descending == first && !clock {
				to.arrangement.descending = !lv.ask.arrangement.descending
			} else {
				to.arrangement.sort = nil
			}
		}
		h.Href = to.address("", lv.ask.filters(), nil)
	}
}

// isNewestFirst reports whether every row has a time, and no row is newer than the row before it.
func isNewestFirst(k *plan.Kind, rows []access.Row) bool {
	var before time.Time
	for i, row := range rows {
		f, at := page.ShownTime(k, row)
		if f == nil || i > 0 && at.After(before) {
			return false
		}
		before = at
	}
	return k.Spec.Clock != ""
}

// columns returns the columns of a list: the chosen or else the default columns, without those that the role may
// not see. A list of all roots also has the column of the root.
func (lv listing) columns() []*plan.Column {
	if len(lv.ask.arrangement.columns) > 0 {
		return lv.q.Rights.VisibleColumns(lv.q.Kind, lv.ask.arrangement.columns)
	}
	all := lv.q.Rights.ColumnsOf(lv.q.Kind)
	root := lv.q.Kind.ByField[lv.q.Source.Spec.RootField(lv.q.Kind.Spec)]
	if root == nil || !lv.ask.arrangement.everywhere || slices.Contains(all, root) {
		return all
	}
	return slices.Insert(slices.Clone(all), min(1, len(all)), lv.q.Rights.VisibleColumns(lv.q.Kind, []*plan.Column{root})...)
}

// selection is the form for the selected rows.
type selection struct {
	OpenHref  string // the address of the page with the form
	CloseHref string // the address of the page without the form
	IsOpen    bool
	CanMark   bool // the caller may mark records as handled
	CanExport bool // the selected records can be exported
}

// newSelection returns the form for the page at an address. It returns the zero value if the caller could do
// nothing with selected records.
func newSelection(q *page.Exchange, at, param, form string, notes bool) selection {
	s := selection{CloseHref: at, IsOpen: form == formSelect, CanMark: notes, CanExport: q.V.Options.Search != nil && q.Clock.AsOf.At.IsZero()}
	if s.CanMark || s.CanExport {
		s.OpenHref = withForm(at, param, formSelect)
	}
	return s
}

// withForm returns an address of the viewer with a form open.
func withForm(at, param, form string) string {
	path, raw, _ := strings.Cut(at, "?")
	params, _ := understudy.ParseQuery(raw) // the viewer made this address, so it is valid
	return path + plan.WithQuery(append(params, understudy.Param{Name: param, Value: form}))
}

// selectRows adds the form to a list, and check boxes to its rows while the form is open.
func (lv listing) selectRows(p *listPage, rows []access.Row) {
	if len(rows) == 0 || rows[0].ID == "" || !lv.q.Kind.HasRecords() {
		return
	}
	at := lv.ask.address("", lv.ask.query, lv.ask.back)
	p.Tools.Select = newSelection(lv.q, at, paramForm, lv.ask.arrangement.form, lv.q.Rights.CanSeeNotes(lv.q.Source, lv.q.Clock.AsOf))
	if p.Tools.Select.IsOpen && p.Tools.Select.OpenHref != "" {
		p.Table.AddSelectBoxes(lv.q.Kind, rows)
	}
}
