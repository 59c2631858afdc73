// Preferences: the columns a browser chose for each kind, and whether it shows what was found in tables, kept in
// cookies. The address always wins, and always says which columns are shown: a list without columns in its address
// is answered with one that has those remembered.

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
	// mostPreferences bounds the cookie, in bytes: browsers keep 4096 with its name.
	mostPreferences = 3500

	viewCookie           = "understudy_found"
	viewTable, viewCards = "table", "cards"
)

// remembered is the cookie: by "source/kind", columns by commas, the kind that
// was chosen last at its end.
func preferredColumns(r *http.Request) understudy.Query {
	c, err := r.Cookie(columnsCookie)
	if err != nil || len(c.Value) > mostPreferences {
		return nil
	}
	all, err := understudy.ParseQuery(c.Value)
	if err != nil {
		return nil
	}
	return all
}

// preferColumns gives a query without columns those its browser chose; it reports
// whether there are any.
func (lv listing) preferColumns() bool {
	if len(lv.ask.layout.columns) > 0 || lv.q.Data != "" {
		return false
	}
	text, ok := preferredColumns(lv.q.R).Get(lv.q.Source.Name + "/" + lv.q.Kind.Spec.Name)
	if !ok {
		return false
	}
	columns, err := columnsNamed(lv.q.Kind, text)
	if err != nil || len(columns) == 0 || slices.Equal(columns, lv.q.Kind.Shown) {
		return false // of a spec that has changed, or what is shown anyway
	}
	lv.ask.layout.columns = columns
	return true
}

// SetColumns keeps the columns of the form in the cookie and goes back to the
// list it came from, which then shows them. Its buttons move one column, or
// forget them all.
func SetColumns(v *page.Visitor) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var k *plan.Kind
		if s := v.ByName[r.PostFormValue("source")]; s != nil {
			k = s.ByName[r.PostFormValue("kind")]
		}
		if k == nil {
			v.Refuse(w, r, page.BadRequest("These columns are of no kind", "Choose them on the page of a list.", nil))
			return
		}
		columns, err := columnsNamed(k, strings.Join(r.PostForm["column"], ","))
		if err != nil {
			v.Refuse(w, r, err)
			return
		}
		columns = moved(columns, r.PostFormValue("earlier"), -1)
		columns = moved(columns, r.PostFormValue("later"), 1)
		if r.PostForm.Has("reset") || slices.Equal(columns, k.Shown) {
			columns = nil
		}
		keepColumns(w, r, k, columns)
		page.Redirect(w, r, withColumns(page.LocalPath(r.PostFormValue("back")), columns))
	}
}

// moved is a list of columns with one of them a place further.
func moved(columns []*plan.Column, name string, by int) []*plan.Column {
	i := slices.IndexFunc(columns, func(c *plan.Column) bool { return c.Spec.Name == name })
	if to := i + by; i >= 0 && to >= 0 && to < len(columns) {
		columns[i], columns[to] = columns[to], columns[i]
	}
	return columns
}

// keepColumns writes the cookie anew; what was chosen longest ago gives way.
func keepColumns(w http.ResponseWriter, r *http.Request, k *plan.Kind, columns []*plan.Column) {
	name := k.Source.Name + "/" + k.Spec.Name
	all := preferredColumns(r).Without(func(p understudy.Param) bool { return p.Name == name })
	if len(columns) > 0 {
		all = append(all, understudy.Param{Name: name, Value: columnNames(columns)})
	}
	for len(all) > 1 && len(all.String()) > mostPreferences {
		all = all[1:]
	}
	page.KeepChoice(w, r, columnsCookie, all.String())
}

// viewForm chooses whether what was found stands in tables.
type viewForm struct {
	Table bool // it does
	Back  string
}

// setView keeps the view of the form in the cookie and goes back to the search it came from.
func setView(q *page.Exchange) error {
	value := ""
	switch view := q.R.PostFormValue("view"); view {
	case viewTable:
		value = view
	case viewCards:
	default:
		return page.UnknownWord("view", view, []string{viewTable, viewCards}, nil)
	}
	page.KeepChoice(q.Reply.W, q.R, viewCookie, value)
	q.GoBack(page.LocalPath(q.R.PostFormValue("back")), "")
	return nil
}

// withColumns is an address of a list with other columns; none are the kind's.
func withColumns(address string, columns []*plan.Column) string {
	path, raw, _ := strings.Cut(address, "?")
	params, err := understudy.ParseQuery(raw)
	if err != nil {
		return path
	}
	params = params.Without(func(p understudy.Param) bool { return p.Name == ownColumns })
	if len(columns) > 0 {
		params = append(params, understudy.Param{Name: ownColumns, Value: columnNames(columns)})
	}
	return path + plan.WithQuery(params)
}

// columnForm is the form that chooses columns.
type columnForm struct {
	Source, Kind, Back string
	At, Href           string // the page without the form, and with it
	Choices            []columnChoice
	Chosen             bool // they are not the kind's own
}

type columnChoice struct {
	ID, Name, Label string
	Shown           bool
}

// columnForm offers, when it is asked for, every column the role shows: those of
// the page in their order, then the others.
func (lv listing) columnForm() columnForm {
	at := lv.ask.address("", lv.ask.query, lv.ask.back)
	f := columnForm{Source: lv.q.Source.Name, Kind: lv.q.Kind.Spec.Name, At: at, Back: withColumns(at, nil),
		Chosen: len(lv.ask.layout.columns) > 0}
	f.Href = withForm(at, ownForm, formColumns) + "#columns"
	if lv.ask.layout.form != formColumns {
		return f
	}
	shown := lv.chosen()
	for _, c := range append(slices.Clone(shown), lv.q.Rights.Visible(lv.q.Kind, lv.q.Kind.Every)...) {
		if i := len(f.Choices); i < len(shown) || !slices.Contains(shown, c) {
			f.Choices = append(f.Choices, columnChoice{"col-" + c.Spec.Name, c.Spec.Name, c.Heading, i < len(shown)})
		}
	}
	return f
}
