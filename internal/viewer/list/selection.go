// Selection: several rows of a page, for what is done with them together.

package list

import (
	"strings"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
)

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
	s := selection{At: at, Open: form == formSelect, Notes: notes, Searches: q.Findable() && q.AsOf.At.IsZero()}
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
func (q listing) selectRows(p *listPage, rows []access.Row) {
	if len(rows) == 0 || rows[0].ID == "" || !q.Kind.Remembered() {
		return
	}
	p.Select = newSelection(q.Exchange, q.ask.address("", q.ask.query, q.ask.back), ownForm, q.ask.form, page.SeesNotes(q.Exchange, q.Source))
	if p.Select.Open && p.Select.Href != "" {
		p.Table.PickRows(q.Kind, rows)
	}
}
