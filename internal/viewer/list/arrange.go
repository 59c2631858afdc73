// Arrange: how a list is shown beside what it asks upstream for: its columns,
// its order, the words its records must have.

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

// Own parameters of a list's arrangement.
const (
	ownColumns = understudy.OwnPrefix + "columns" // fields, in order, by commas
	ownSort    = understudy.OwnPrefix + "sort"    // a field; "-" before it: the largest first
	ownText    = understudy.OwnPrefix + "q"       // a condition in the words of the search
	ownNarrow  = understudy.OwnPrefix + "narrow"  // a value of a facet, as a condition; may come several times
	ownForm    = understudy.OwnPrefix + "form"    // the form that stands open: formColumns or formSelect
	ownCursor  = understudy.OwnPrefix + "cursor"  // where a searched list goes on
)

// The forms that a page of records can have open.
const (
	formColumns = "columns"
	formSelect  = "select" // boxes in the rows, and what to do with those that are selected
)

// mostColumns bounds how many columns an address names.
const mostColumns = 60

// arrangement is how a list is shown. The zero value is the kind's own way.
type arrangement struct {
	columns []*plan.Column // nil = those of the kind
	sort    *plan.Column   // nil = upstream's order
	down    bool           // the largest first
	text    string
	narrow  []string // conditions that facets added
	cursor  string
	form    string // the form that stands open; no address of ours keeps it
	// everywhere: the list is that of all roots of the source, of which upstream has none.
	everywhere bool
}

// mostNarrow bounds how many conditions facets add.
const mostNarrow = 20

// searched reports whether upstream has no such list: it is found by searching
// the records that are held.
func (a arrangement) searched() bool {
	return a.sort != nil || a.text != "" || len(a.narrow) > 0 || a.everywhere
}

// params are an arrangement in an address.
func (a arrangement) params() understudy.Query {
	var all understudy.Query
	if len(a.columns) > 0 {
		all = append(all, understudy.Param{Name: ownColumns, Value: columnNames(a.columns)})
	}
	if a.text != "" {
		all = append(all, understudy.Param{Name: ownText, Value: a.text})
	}
	for _, n := range a.narrow {
		all = append(all, understudy.Param{Name: ownNarrow, Value: n})
	}
	if a.sort != nil {
		all = append(all, understudy.Param{Name: ownSort, Value: a.order()})
	}
	if a.cursor != "" && a.searched() {
		all = append(all, understudy.Param{Name: ownCursor, Value: a.cursor})
	}
	return all
}

// order is the value of the parameter for the order.
func (a arrangement) order() string {
	switch {
	case a.sort == nil:
		return ""
	case a.down:
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

// arrange reads one of a list's own parameters; taken is false when it is none
// of them.
func arrange(q *page.Exchange, ask *listQuery, p understudy.Param) (taken bool, err error) {
	a := &ask.layout
	switch p.Name {
	case ownColumns:
		more, err := columnsNamed(q.Kind, p.Value)
		if err != nil {
			return true, err
		}
		before := len(a.columns)
		for _, c := range more {
			if !slices.Contains(a.columns, c) {
				a.columns = append(a.columns, c)
			}
		}
		ask.tidy = ask.tidy && before == 0 && p.Value != "" && columnNames(a.columns) == p.Value
	case ownSort:
		return true, arrangeOrder(q, ask, p.Value)
	case ownText:
		text := strings.TrimSpace(p.Value)
		ask.tidy = ask.tidy && text == p.Value && text != "" && a.text == ""
		a.text = cmp.Or(a.text, text)
	case ownNarrow:
		fresh := p.Value != "" && !slices.Contains(a.narrow, p.Value)
		ask.tidy = ask.tidy && fresh
		if fresh && len(a.narrow) == mostNarrow {
			return true, page.BadRequest("That are too many conditions", "Take some of them away.", nil)
		}
		if fresh {
			a.narrow = append(a.narrow, p.Value)
		}
	case ownForm:
		if p.Value != formColumns && p.Value != formSelect {
			return true, page.UnknownWord("form", p.Value, []string{formColumns, formSelect}, nil)
		}
		ask.layout.form = p.Value
	case ownCursor:
		ask.tidy = ask.tidy && p.Value != "" && a.cursor == ""
		a.cursor = p.Value
	default:
		return false, nil
	}
	return true, nil
}

// columnsNamed reads fields by commas, each once.
func columnsNamed(k *plan.Kind, text string) ([]*plan.Column, error) {
	var all []*plan.Column
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		c := k.ByField[name]
		if c == nil || !slices.Contains(k.Every, c) {
			return nil, page.UnknownWord("column of "+k.Spec.Title, name, k.EveryName(), nil)
		}
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	if len(all) > mostColumns {
		return nil, page.BadRequest("That are too many columns", "A list shows at most 60 of them.", nil)
	}
	return all, nil
}

// arrangeOrder reads the order. A field the role does not fully see orders
// nothing: where a record stands would tell what it holds.
func arrangeOrder(q *page.Exchange, ask *listQuery, text string) error {
	name, down := strings.CutPrefix(text, "-")
	if name == "" {
		ask.tidy = false
		return nil
	}
	c := q.Kind.ByField[name]
	if c == nil || !slices.Contains(q.Kind.Every, c) {
		return page.UnknownWord("column of "+q.Kind.Spec.Title, name, q.Kind.EveryName(), nil)
	}
	if q.Rights.Level(q.Kind, c.Spec.Name) != access.See {
		return &page.Problem{
			Title: "Your role does not allow this", Kind: understudy.ErrForbidden,
			Hint: "It may not sort by " + c.Spec.Name + ", which it does not fully see." + q.Rights.RemedyOf(q.Kind, c.Spec.Name),
		}
	}
	ask.tidy = ask.tidy && ask.layout.sort == nil
	if down && name == q.Kind.Spec.Clock { // as it is anyway
		ask.tidy = false
		return nil
	}
	ask.layout.sort, ask.layout.down = c, down
	return nil
}

// sortable makes the headings of a list's table lead to its order by them: the
// largest first of numbers and moments, A first of text; then the other way;
// then upstream's own.
func (lv listing) sortable(t *page.Table, rows []access.Row) {
	if _, ok := lv.conditions(); !ok || lv.q.V.Options.Search == nil || !lv.q.Clock.AsOf.At.IsZero() {
		return
	}
	timed := !slices.ContainsFunc(rows, func(r access.Row) bool { _, ok := page.TimeOf(lv.q.Kind, r); return !ok })
	for i := range t.Heads {
		h := &t.Heads[i]
		if lv.q.Rights.Level(lv.q.Kind, h.Column.Spec.Name) != access.See {
			continue
		}
		clock := h.Column.Spec.Name == lv.q.Kind.Spec.Clock
		to := *lv.ask
		to.layout.cursor = ""
		switch {
		case lv.ask.layout.sort == nil && clock && timed && newestFirst(lv.q.Kind, rows):
			h.Order, to.layout.sort, to.layout.down = "descending", h.Column, false
		case lv.ask.layout.sort == nil && clock: // upstream's own order is another one
			to.layout.sort, to.layout.down = h.Column, true
		case lv.ask.layout.sort != h.Column:
			to.layout.sort, to.layout.down = h.Column, h.Column.Digits || h.Column.Shape == plan.Moment
			if clock {
				to.layout.sort = nil
			}
		default:
			h.Order = "ascending"
			if lv.ask.layout.down {
				h.Order = "descending"
			}
			if first := h.Column.Digits || h.Column.Shape == plan.Moment; lv.ask.layout.down == first && !clock {
				to.layout.down = !lv.ask.layout.down
			} else {
				to.layout.sort = nil
			}
		}
		h.Href = to.address("", lv.ask.filters(), nil)
	}
}

// newestFirst reports whether every row shows a time and none is later than the one before it.
func newestFirst(k *plan.Kind, rows []access.Row) bool {
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

// chosen are the columns of a list: those that were chosen or else the kind's,
// less those the role does not show. A list of all roots shows which one a row lies under.
func (lv listing) chosen() []*plan.Column {
	if len(lv.ask.layout.columns) > 0 {
		return lv.q.Rights.Visible(lv.q.Kind, lv.ask.layout.columns)
	}
	all := lv.q.Rights.ColumnsOf(lv.q.Kind)
	root := lv.q.Kind.ByField[lv.q.Source.Spec.RootField(lv.q.Kind.Spec)]
	if root == nil || !lv.ask.layout.everywhere || slices.Contains(all, root) {
		return all
	}
	return slices.Insert(slices.Clone(all), min(1, len(all)), lv.q.Rights.Visible(lv.q.Kind, []*plan.Column{root})...)
}

// selection is the form that does something with the rows that are selected.
type selection struct {
	Href     string // the page with the form
	At       string // the page without it
	Open     bool
	Notes    bool // the caller may mark records as handled
	Searches bool // what is selected can be exported
}

// selection offers the form on the page at an address, whose records are of some source; the zero value where nothing
// could be done with them.
func newSelection(q *page.Exchange, at, param, form string, notes bool) selection {
	s := selection{At: at, Open: form == formSelect, Notes: notes, Searches: q.V.Options.Search != nil && q.Clock.AsOf.At.IsZero()}
	if s.Notes || s.Searches {
		s.Href = withForm(at, param, formSelect)
	}
	return s
}

// withForm is an address of ours with one of the forms open.
func withForm(at, param, form string) string {
	path, raw, _ := strings.Cut(at, "?")
	params, _ := understudy.ParseQuery(raw) // an address of ours
	return path + plan.WithQuery(append(params, understudy.Param{Name: param, Value: form}))
}

// selectRows gives a list the form, and its rows the boxes while it is open.
func (lv listing) selectRows(p *listPage, rows []access.Row) {
	if len(rows) == 0 || rows[0].ID == "" || !lv.q.Kind.Remembered() {
		return
	}
	at := lv.ask.address("", lv.ask.query, lv.ask.back)
	p.Tools.Select = newSelection(lv.q, at, ownForm, lv.ask.layout.form, lv.q.Rights.SeesNotes(lv.q.Source, lv.q.Clock.AsOf))
	if p.Tools.Select.Open && p.Tools.Select.Href != "" {
		p.Table.PickRows(lv.q.Kind, rows)
	}
}
