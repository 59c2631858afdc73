// Saved: searches kept under names, by the forms of the page of searches.

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

// longestName is how long a name may be, in characters.
const longestName = 60

// savedView is a saved search on the page.
type savedView struct {
	Name, Href, Text string
	By               string // whose it is, when it is another's
	Shared           bool
	Own              bool
	When             *page.When
	Watch            string // where a watch of it is made; "": it cannot be watched
}

// shelf is what the page shows of saved searches; nil when none can be kept.
type shelf struct {
	Saved   []savedView
	Save    bool // the search at hand can be kept
	Watches bool // a saved search can be watched
	Hidden  understudy.Query
	Here    string // where the forms lead back to
}

func (sv searchView) shelf(found bool) (*shelf, error) {
	if sv.q.V.Options.Shelf == nil {
		return nil, nil
	}
	all, err := sv.q.V.Options.Shelf.Saved(sv.q.Ctx, sv.q.Rights.Caller)
	if err != nil {
		return nil, err
	}
	first := sv.s.first()
	out := &shelf{Save: found, Here: first.address(""), Watches: sv.q.V.Options.Watches != nil && len(sv.q.V.Options.Watches.Channels()) > 0}
	if _, raw, ok := strings.Cut(out.Here, "?"); ok && found {
		if out.Hidden, err = understudy.ParseQuery(raw); err != nil {
			return nil, err
		}
	}
	for _, one := range all {
		v := savedView{Name: one.Name, Href: page.SearchAddress("/search", one.Request), Text: one.Request.Text, Shared: one.Shared,
			Own: one.Owner == sv.q.Rights.Caller.Name, When: sv.q.Clock.Moment(one.At)}
		if !v.Own {
			v.By = one.Owner
		} else if out.Watches {
			v.Watch = page.ControlPrefix + "watches/new" + plan.WithQuery(understudy.Query{{Name: "search", Value: one.Name}})
		}
		out.Saved = append(out.Saved, v)
	}
	return out, nil
}

// saveSearch keeps the search of the form under its name.
func saveSearch(q *page.Exchange) error {
	if q.V.Options.Shelf == nil {
		return page.NotFound("No searches are kept here", "This server keeps no index.", "")
	}
	if err := q.R.ParseForm(); err != nil {
		return page.BadRequest("This form cannot be read", "Save the search on its page.", nil)
	}
	form := q.R.PostForm
	name := strings.TrimSpace(form.Get("name"))
	if n := utf8.RuneCountInString(name); n == 0 || n > longestName {
		return page.BadRequest("A search needs a name of 1 to 60 characters", "Go back and give it one.", nil)
	}
	s := &searchRequest{text: strings.TrimSpace(form.Get(searchText)), source: form.Get(searchSource), sort: form.Get(searchSort)}
	for _, k := range form[searchKind] {
		s.kinds = page.AppendNew(s.kinds, k)
	}
	for _, n := range form[searchNarrow] {
		s.narrow = page.AppendNew(s.narrow, n)
	}
	one := query.SavedSearch{Name: name, Owner: q.Rights.Caller.Name, Shared: form.Get("shared") != "", Request: s.ask(), At: q.Clock.Start}
	e := understudy.AuditEntry{Action: understudy.ActionAdminister, What: "saved search keep", Source: s.source,
		Values: []string{name, s.text}}
	if err := page.Audit(q, e); err != nil {
		return err
	}
	if err := q.V.Options.Shelf.Save(q.Ctx, q.Rights.Caller, one); err != nil {
		if wrong := page.SyntaxOf(err); wrong != nil {
			return &page.Problem{Title: "This search cannot be kept", Hint: plan.UpperFirst(wrong.Why), Wrong: page.PointAt(wrong), Kind: wrong.Kind}
		}
		if errors.Is(err, understudy.ErrInvalid) {
			return &page.Problem{Title: "This search cannot be kept", Hint: page.Sentence(err), Href: s.address(""), Link: "Back to the search",
				Kind: understudy.ErrInvalid}
		}
		return err
	}
	q.GoBack(s.address(""), "The search “"+name+"” is saved.")
	return nil
}

// forgetSearch takes a saved search away.
func forgetSearch(q *page.Exchange) error {
	if q.V.Options.Shelf == nil {
		return page.NotFound("No searches are kept here", "This server keeps no index.", "")
	}
	name := q.R.PostFormValue("name")
	e := understudy.AuditEntry{Action: understudy.ActionAdminister, What: "saved search forget", Values: []string{name}}
	if err := page.Audit(q, e); err != nil {
		return err
	}
	if err := q.V.Options.Shelf.Forget(q.Ctx, q.Rights.Caller, name); err != nil {
		return err
	}
	q.GoBack(page.LocalPath(q.R.PostFormValue("back")), "The search “"+name+"” is forgotten.")
	return nil
}
