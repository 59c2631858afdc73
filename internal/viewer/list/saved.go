// Saved searches, and the forms that save and delete them.

package list

import (
	"errors"
	"strings"
	"unicode/utf8"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
)

// maxNameLength is the maximum length in characters of the name of a saved search.
const maxNameLength = 60

// savedView is a saved search as the search page shows it.
type savedView struct {
	Name, Href, Text string
	Owner            string // the name of the caller who saved the search; empty if it is this caller
	Shared           bool
	Own              bool
	When             *page.When
	WatchHref        string // the address of the form that watches the search for new records; empty if it cannot be watched
}

// shelf has the saved searches on the search page. It is nil if searches cannot be saved.
type shelf struct {
	Saved    []savedView
	CanSave  bool // whether the search on the page can be saved
	CanWatch bool // whether saved searches can be watched for new records
	Hidden   understudy.Query
	BackHref string // the address to which the forms redirect after they are sent
}

// newShelf returns the saved searches for the page. found is true if the page shows the result of a search, which can
// then be saved.
func (sv searchView) newShelf(found bool) (*shelf, error) {
	if sv.q.V.Options.Shelf == nil {
		return nil, nil
	}
	all, err := sv.q.V.Options.Shelf.ListSaved(sv.q.Ctx, sv.q.Rights.Caller)
	if err != nil {
		return nil, err
	}
	first := sv.request.first()
	out := &shelf{CanSave: found, BackHref: first.address(""),
		CanWatch: sv.q.V.Options.Watches != nil && len(sv.q.V.Options.Watches.Channels()) > 0}
	if _, raw, ok := strings.Cut(out.BackHref, "?"); ok && found {
		if out.Hidden, err = understudy.ParseQuery(raw); err != nil {
			return nil, err
		}
	}
	for _, one := range all {
		v := savedView{Name: one.Name, Href: page.SearchAddress("/search", one.Request), Text: one.Request.Text, Shared: one.Shared,
			Own: one.Owner == sv.q.Rights.Caller.Name, When: sv.q.Clock.Moment(one.At)}
		if !v.Own {
			v.Owner = one.Owner
		} else if out.CanWatch {
			v.WatchHref = page.ControlPrefix + "watches/new" + plan.WithQuery(understudy.Query{{Name: "search", Value: one.Name}})
		}
		out.Saved = append(out.Saved, v)
	}
	return out, nil
}

// saveSearch saves a search under the name in the form.
func saveSearch(q *page.Exchange) error {
	if q.V.Options.Shelf == nil {
		return page.NewNotFound("Searches can't be saved here", "This server has no search index.", "")
	}
	if err := q.R.ParseForm(); err != nil {
		return page.NewBadRequest("This form is not valid", "Save the search on its page.", nil)
	}
	form := q.R.PostForm
	name := strings.TrimSpace(form.Get("name"))
	if n := utf8.RuneCountInString(name); n == 0 || n > maxNameLength {
		return page.NewBadRequest("A search needs a name of 1 to 60 characters", "Go back and give it one.", nil)
	}
	s := &searchRequest{text: strings.TrimSpace(form.Get(searchText)), source: form.Get(searchSource), sort: form.Get(searchSort)}
	for _, k := range form[searchKind] {
		s.kinds = page.AppendUnique(s.kinds, k)
	}
	for _, n := range form[searchNarrow] {
		s.narrow = page.AppendUnique(s.narrow, n)
	}
	one := query.SavedSearch{Name: name, Owner: q.Rights.Caller.Name, Shared: form.Get("shared") != "", Request: s.ask(), At: q.Clock.Start}
	e := understudy.AuditEntry{Action: understudy.ActionAdminister, What: "saved search keep", Source: s.source,
		Values: []string{name, s.text}}
	if err := page.WriteAudit(q, e); err != nil {
		return err
	}
	if err := q.V.Options.Shelf.Save(q.Ctx, q.Rights.Caller, one); err != nil {
		if wrong := page.FindSyntaxError(err); wrong != nil {
			return &page.Problem{Title: "This search can't be saved", Hint: plan.UpperFirst(wrong.Why), Mistake: page.NewPointer(wrong),
				Kind: wrong.Kind}
		}
		if errors.Is(err, understudy.ErrInvalid) {
			return &page.Problem{Title: "This search can't be saved", Hint: page.Sentence(err), Href: s.address(""), Link: "Back to the search",
				Kind: understudy.ErrInvalid}
		}
		return err
	}
	q.RedirectBack(s.address(""), "The search “"+name+"” is saved.")
	return nil
}

func forgetSearch(q *page.Exchange) error {
	if q.V.Options.Shelf == nil {
		return page.NewNotFound("Searches can't be saved here", "This server has no search index.", "")
	}
	name := q.R.PostFormValue("name")
	e := understudy.AuditEntry{Action: understudy.ActionAdminister, What: "saved search forget", Values: []string{name}}
	if err := page.WriteAudit(q, e); err != nil {
		return err
	}
	if err := q.V.Options.Shelf.Forget(q.Ctx, q.Rights.Caller, name); err != nil {
		return err
	}
	q.RedirectBack(page.LocalPath(q.R.PostFormValue("back")), "The search “"+name+"” is deleted.")
	return nil
}
