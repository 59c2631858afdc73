// Saved: searches kept under names, by the forms of the page of searches.

package viewer

import (
	"errors"
	"net/http"
	"strings"
	"understudy/internal/viewer/plan"
	"unicode/utf8"

	"understudy"
)

// longestName is how long a name may be, in characters.
const longestName = 60

// savedView is a saved search on the page.
type savedView struct {
	Name, Href, Text string
	By               string // whose it is, when it is another's
	Shared           bool
	Own              bool
	When             *when
}

// shelf is what the page shows of saved searches; nil when none can be kept.
type shelf struct {
	Saved  []savedView
	Save   bool // the search at hand can be kept
	Hidden understudy.Query
	Here   string // where the forms lead back to
}

func (q searchView) shelf(found bool) (*shelf, error) {
	if q.v.Shelf == nil {
		return nil, nil
	}
	all, err := q.v.Shelf.Saved(q.ctx, q.caller)
	if err != nil {
		return nil, err
	}
	first := q.s.first()
	out := &shelf{Save: found, Here: first.address("")}
	if _, raw, ok := strings.Cut(out.Here, "?"); ok && found {
		if out.Hidden, err = understudy.ParseQuery(raw); err != nil {
			return nil, err
		}
	}
	for _, one := range all {
		at := searchRequest{text: one.Ask.Text, source: one.Ask.Source, kinds: one.Ask.Kinds, sort: one.Ask.Sort}
		v := savedView{Name: one.Name, Href: at.address(""), Text: one.Ask.Text, Shared: one.Shared, Own: one.Owner == q.caller.Name, When: q.moment(one.At)}
		if !v.Own {
			v.By = one.Owner
		}
		out.Saved = append(out.Saved, v)
	}
	return out, nil
}

// saveSearch keeps the search of the form under its name.
func saveSearch(q *exchange) error {
	if q.v.Shelf == nil {
		return notFound("No searches are kept here", "This server keeps no index.", "")
	}
	q.r.Body = http.MaxBytesReader(q.w, q.r.Body, 64<<10)
	if err := q.r.ParseForm(); err != nil {
		return badRequest("This form cannot be read", "Save the search on its page.", nil)
	}
	form := q.r.PostForm
	name := strings.TrimSpace(form.Get("name"))
	if n := utf8.RuneCountInString(name); n == 0 || n > longestName {
		return badRequest("A search needs a name of 1 to 60 characters", "Go back and give it one.", nil)
	}
	s := &searchRequest{text: strings.TrimSpace(form.Get(searchText)), source: form.Get(searchSource), sort: form.Get(searchSort)}
	for _, k := range form[searchKind] {
		s.kinds = appendNew(s.kinds, k)
	}
	for _, n := range form[searchNarrow] {
		s.narrow = appendNew(s.narrow, n)
	}
	one := understudy.SavedSearch{Name: name, Owner: q.caller.Name, Shared: form.Get("shared") != "", Ask: s.ask(), At: q.start}
	if err := q.v.Shelf.Save(q.ctx, q.caller, one); err != nil {
		if wrong := syntaxOf(err); wrong != nil {
			return &problem{Title: "This search cannot be kept", Hint: plan.UpperFirst(wrong.Why), Wrong: pointAt(wrong), kind: wrong.Kind}
		}
		if errors.Is(err, understudy.ErrInvalid) {
			return &problem{Title: "This search cannot be kept", Hint: sentence(err), Href: s.address(""), Link: "Back to the search", kind: understudy.ErrInvalid}
		}
		return err
	}
	q.goBack(s.address(""))
	return nil
}

// forgetSearch takes a saved search away.
func forgetSearch(q *exchange) error {
	if q.v.Shelf == nil {
		return notFound("No searches are kept here", "This server keeps no index.", "")
	}
	q.r.Body = http.MaxBytesReader(q.w, q.r.Body, 64<<10)
	if err := q.v.Shelf.Forget(q.ctx, q.caller, q.r.PostFormValue("name")); err != nil {
		return err
	}
	q.goBack(localPath(q.r.PostFormValue("back")))
	return nil
}
