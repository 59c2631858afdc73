// Preferences in cookies: the columns that the reader has chosen for each kind, and whether searches show tables.
// Columns in an address override the cookie. A list without columns in its address is redirected to the address with
// the columns of the cookie.

package list

import (
	"net/http"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
)

const (
	columnsCookie = "understudy_columns"
	// maxPreferenceBytes is the maximum size of a cookie's value in bytes. Browsers store at most 4096 bytes with the name.
	maxPreferenceBytes = 3500

	viewCookie           = "understudy_found"
	viewTable, viewCards = "table", "cards"
)

// preferredColumns returns the content of the cookie as parameters: the name is "source/kind", and the value has the
// columns separated by commas. The kind that the reader chose columns for most recently is last.
func preferredColumns(r *http.Request) understudy.Query {
	c, err := r.Cookie(columnsCookie)
	if err != nil || len(c.Value) > maxPreferenceBytes {
		return nil
	}
	all, err := understudy.ParseQuery(c.Value)
	if err != nil {
		return nil
	}
	return all
}

// usePreferred adds the columns in the cookie to a query that names none. It reports whether it has changed the query.
func (lv listing) usePreferred() bool {
	if len(lv.ask.arrangement.columns) > 0 || lv.q.DataFormat != "" {
		return false
	}
	text, ok := preferredColumns(lv.q.R).Get(lv.q.Source.Name + "/" + lv.q.Kind.Spec.Name)
	if !ok {
		return false
	}
	columns, err := parseColumns(lv.q.Kind, text)
	if err != nil || len(columns) == 0 || slices.Equal(columns, lv.q.Kind.DefaultColumns) {
		return false // the cookie has columns that the spec no longer has, or the default columns
	}
	lv.ask.arrangement.columns = columns
	return true
}

// SetColumns returns the handler of the form that chooses columns. It stores them in the cookie and redirects to the
// list. Buttons of the form move one column, or delete the choice.
func SetColumns(v *page.Visitor) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var k *plan.Kind
		if s := v.ByName[r.PostFormValue("source")]; s != nil {
			k = s.ByName[r.PostFormValue("kind")]
		}
		if k == nil {
			v.Refuse(w, r, page.NewBadRequest("These columns belong to no list", "Choose columns on the page of a list.", nil))
			return
		}
		columns, err := parseColumns(k, strings.Join(r.PostForm["column"], ","))
		if err != nil {
			v.Refuse(w, r, err)
			return
		}
		columns = moveColumn(columns, r.PostFormValue("earlier"), -1)
		columns = moveColumn(columns, r.PostFormValue("later"), 1)
		if r.PostForm.Has("reset") || slices.Equal(columns, k.DefaultColumns) {
			columns = nil
		}
		keepColumns(w, r, k, columns)
		page.Redirect(w, r, withColumns(page.LocalPath(r.PostFormValue("back")), columns))
	}
}

// moveColumn moves the named column by one place.
func moveColumn(columns []*plan.Column, name string, by int) []*plan.Column {
	i := slices.IndexFunc(columns, func(c *plan.Column) bool { return c.Spec.Name == name })
	if to := i + by; i >= 0 && to >= 0 && to < len(columns) {
		columns[i], columns[to] = columns[to], columns[i]
	}
	return columns
}

// keepColumns stores the chosen columns of a kind in the cookie. If the cookie becomes too large, it drops the kinds
// that were chosen longest ago.
func keepColumns(w http.ResponseWriter, r *http.Request, k *plan.Kind, columns []*plan.Column) {
	name := k.Source.Name + "/" + k.Spec.Name
	all := preferredColumns(r).Remove(func(p understudy.Param) bool { return p.Name == name })
	if len(columns) > 0 {
		all = append(all, understudy.Param{Name: name, Value: columnNames(columns)})
	}
	for len(all) > 1 && len(all.String()) > maxPreferenceBytes {
		all = all[1:]
	}
	page.SetChoiceCookie(w, r, columnsCookie, all.String())
}

// viewForm is the form that chooses whether a search shows hits or tables.
type viewForm struct {
	Table bool // whether the search shows tables
	Back  string
}

// setView stores the chosen view in the cookie and redirects to the search.
func setView(q *page.Exchange) error {
	value := ""
	switch view := q.R.PostFormValue("view"); view {
	case viewTable:
		value = view
	case viewCards:
	default:
		return page.NewUnknownWord("view", view, []string{viewTable, viewCards}, nil)
	}
	page.SetChoiceCookie(q.Reply.W, q.R, viewCookie, value)
	q.RedirectBack(page.LocalPath(q.R.PostFormValue("back")), "")
	return nil
}

// withColumns returns the address of a list with the given columns. If columns is empty, the list has its default columns.
func withColumns(address string, columns []*plan.Column) string {
	path, raw, _ := strings.Cut(address, "?")
	params, err := understudy.ParseQuery(raw)
	if err != nil {
		return path
	}
	params = params.Remove(func(p understudy.Param) bool { return p.Name == paramColumns })
	if len(columns) > 0 {
		params = append(params, understudy.Param{Name: paramColumns, Value: columnNames(columns)})
	}
	return path + plan.WithQuery(params)
}

// columnForm is the form that chooses columns.
type columnForm struct {
	Source, Kind, Back  string
	CloseHref, OpenHref string // the address of the page with the form closed, and with the form open
	Choices             []columnChoice
	HasChoice           bool // whether the reader has chosen other columns than the default columns of the kind
}

type columnChoice struct {
	ID, Name, Label string
	IsShown         bool
}

// columnForm returns the form that chooses columns. The open form offers all columns that the role may see, beginning
// with those that the list shows now.
func (lv listing) columnForm() columnForm {
	at := lv.ask.address("", lv.ask.query, lv.ask.back)
	f := columnForm{Source: lv.q.Source.Name, Kind: lv.q.Kind.Spec.Name, CloseHref: at, Back: withColumns(at, nil),
		HasChoice: len(lv.ask.arrangement.columns) > 0}
	f.OpenHref = withForm(at, paramForm, formColumns) + "#columns"
	if lv.ask.arrangement.form != formColumns {
		return f
	}
	shown := lv.columns()
	for _, c := range append(slices.Clone(shown), lv.q.Rights.VisibleColumns(lv.q.Kind, lv.q.Kind.AllColumns)...) {
		if i := len(f.Choices); i < len(shown) || !slices.Contains(shown, c) {
			f.Choices = append(f.Choices, columnChoice{"col-" + c.Spec.Name, c.Spec.Name, c.Heading, i < len(shown)})
		}
	}
	return f
}
