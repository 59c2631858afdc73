// The arrangement of a list: which columns it shows, how it is sorted, and its search conditions beside upstream's filters.

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

// The parameters of a list's address that belong to the viewer and are not sent upstream.
const (
	paramColumns = understudy.OwnPrefix + "columns" // the names of the fields to show, in order and separated by commas
	paramSort    = understudy.OwnPrefix + "sort"    // the name of the field to sort by; with a "-" before it, the largest value is first
	paramText    = understudy.OwnPrefix + "q"       // a search condition that the reader typed
	paramNarrow  = understudy.OwnPrefix + "narrow"  // a search condition of a facet that the reader clicked; may occur several times
	paramForm    = understudy.OwnPrefix + "form"    // the form that is open on the page: formColumns or formSelect
	paramCursor  = understudy.OwnPrefix + "cursor"  // the position in the results of a search at which the page begins
)

// The forms that can be open on a page of records.
const (
	formColumns = "columns"
	formSelect  = "select" // check boxes in the rows, and buttons for what can be done with the selected records
)

// maxColumns is the maximum number of columns that an address can name.
const maxColumns = 60

// arrangement is how a list is shown. The zero value is the default of its kind.
type arrangement struct {
	columns    []*plan.Column // the columns to show; nil for the kind's default columns
	sort       *plan.Column   // the column to sort by; nil for upstream's order
	descending bool           // whether the largest value is first
	text       string
	narrow     []string // the search conditions of facets that the reader clicked
	cursor     string
	form       string // the form that is open on the page; links to other pages do not contain it
	// everywhere is true for a list that joins the lists of all roots of the source, such as all accounts. Upstream
	// has no such list.
	everywhere bool
}

// maxNarrow is the maximum number of conditions that clicks on facets may add.
const maxNarrow = 20

// isSearch reports whether upstream has no list arranged like this, so that the viewer searches the stored records instead.
func (a arrangement) isSearch() bool {
	return a.sort != nil || a.text != "" || len(a.narrow) > 0 || a.everywhere
}

// params returns the parameters that write an arrangement into an address.
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

// order returns the value of the parameter for the sort order.
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

// readArrangement reads one parameter of an address if it belongs to the arrangement of the list. taken is false if
// it does not.
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

// parseColumns parses names of fields separated by commas. It ignores a name that occurs again.
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

// readOrder parses the sort order of a list. The role must see the field completely, because the position of a record
// in the list would reveal a masked value.
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
	if down && name == q.Kind.Spec.Clock { // upstream itself returns the records in this order
		ask.isCanonical = false
		return nil
	}
	ask.arrangement.sort, ask.arrangement.descending = c, down
	return nil
}

// linkHeadings makes the headings of a table links that sort the list. The first click on a heading sorts numbers and times
// from the largest, and texts from A. The second click reverses the order, and the third returns to upstream's order.
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
		case lv.ask.arrangement.sort == nil && clock: // a click on this heading changes to upstream's order, although the rows are not in it now
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

// isNewestFirst reports whether every row has a time and the rows are sorted by it, newest first.
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

// columns returns the columns of a list: those that the reader has chosen, or else the defaults. It leaves out
// columns that the role may not see. A list of all roots also has a column with the root.
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

// selection is the form for what can be done with selected rows.
type selection struct {
	OpenHref  string // the address of the same page with the form open
	CloseHref string // the address of the same page with the form closed
	IsOpen    bool
	CanMark   bool // whether the caller may mark records as handled
	CanExport bool // whether the selected records can be exported
}

// newSelection returns the form for selected rows of the page at an address. It returns the zero value if the caller
// can't do anything with selected records.
func newSelection(q *page.Exchange, at, param, form string, notes bool) selection {
	s := selection{CloseHref: at, IsOpen: form == formSelect, CanMark: notes, CanExport: q.V.Options.Search != nil && q.Clock.AsOf.At.IsZero()}
	if s.CanMark || s.CanExport {
		s.OpenHref = withForm(at, param, formSelect)
	}
	return s
}

// withForm returns an address of the viewer with the parameter that opens a form.
func withForm(at, param, form string) string {
	path, raw, _ := strings.Cut(at, "?")
	params, _ := understudy.ParseQuery(raw) // an error is not possible, because the viewer itself made the address
	return path + plan.WithQuery(append(params, understudy.Param{Name: param, Value: form}))
}
