// Actions: what people do with records, from a page that asks first.
//
//	GET  -> the page says what will be done, with a key made for it
//	POST -> it is done, once for a key (package internal/actions)
//	303  -> the record, or its list, which says what was done

// Package actions shows the pages on which people do something: send, redact, delete, sync,
// purge, erase; and what they note on records.
package actions

import (
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// doPath begins the addresses of what is done.
const doPath = page.ControlPrefix + "do/"

// errForm refuses a form that cannot be read.
var errForm = page.BadRequest("This form cannot be read", fmt.Sprintf("It may have %d KiB at most.", page.MaxForm>>10), nil)

// Routes are the pages.
func Routes() []page.Route {
	var all []page.Route
	for _, path := range []string{"{source}/{kind}/{action}", "{source}/{kind}/{action}/{id}"} {
		all = append(all, page.Route{Pattern: "GET " + doPath + path, Handler: with(find, show)},
			page.Route{Pattern: "POST " + doPath + path, Handler: with(find, submit)})
	}
	all = append(all, page.Route{Pattern: "POST " + doPath + "{source}/{kind}/" + access.DoNote + "/{id}", Handler: write})
	all = append(all, page.Route{Pattern: "POST " + doPath + "selected", Handler: doSelected})
	person := doPath + "{source}/" + plan.NumberWord + "/" + access.DoErase + "/{number}"
	return append(all, page.Route{Pattern: "GET " + person, Handler: with(findPerson, show)},
		page.Route{Pattern: "POST " + person, Handler: with(findPerson, submit)})
}

// with is a handler of the task that an address names.
func with(find func(*page.Exchange) (*task, error), run func(*task) error) page.Handler {
	return func(q *page.Exchange) error {
		t, err := find(q)
		if err != nil {
			return err
		}
		return run(t)
	}
}

// task is one thing that a person is about to do.
type task struct {
	q      *page.Exchange
	words  words
	fields []*spec.ActionField
	values map[string]string // what was filled in, by upstream's parameters
	where  page.Link         // what it is about: a list, a number
	record string            // the id of the record in that list; "": it is about no record
	at     string            // its own address
	back   string            // where the way out leads: the record, its list
	doer   doer
}

// words are what a task is called.
type words struct {
	name    string // names it among those of a source: what a claim is for
	title   string
	warning string
	done    string // what is said when it is done
	removes bool   // what it does cannot be taken back
}

// doer is what a task does.
type doer interface {
	// Facts are what the page shows of what it is about. Its error is that of a page.
	Facts(t *task) ([]page.Cell, error)
	// Prepare reads what the request says and gives the work. The work outlives the request
	// and touches nothing of it.
	Prepare(t *task) work
	// Next is where a person is led when it is done; id is that of the record that was made.
	Next(t *task, id string) string
}

// errNothing answers where nothing can be done.
var errNothing = page.NotFound("Nothing can be done here", "This server only shows records.", "/")

// find is the task an address names, if the caller may do it.
func find(q *page.Exchange) (*task, error) {
	if q.V.Options.Actions == nil {
		return nil, errNothing
	}
	word, id := q.R.PathValue("action"), q.R.PathValue("id")
	if a := q.Kind.Spec.Action(word); a != nil && (a.Makes() == nil) == (id != "") {
		return findAction(q, a, id)
	}
	if slices.Contains(localWords(id != ""), word) {
		return findLocal(q, word, id)
	}
	return nil, page.UnknownWord("action", word, append(known(q.Kind, id != ""), localWords(id != "")...), nil)
}

// known are the words of the actions of a kind, with a record or without.
func known(k *plan.Kind, record bool) (all []string) {
	for _, a := range k.Spec.Actions {
		if (a.Makes() == nil) == record {
			all = append(all, a.Name)
		}
	}
	return all
}

// listOf is the planned list in which an action makes a record.
func listOf(k *plan.Kind, a *spec.Action) *plan.List {
	return k.PlannedLists[slices.IndexFunc(k.PlannedLists, func(l *plan.List) bool { return l.Spec == a.Makes() })]
}

// Made are links to the actions that make a record of a kind and that the caller may do;
// filled are values of their fields.
func Made(q *page.Exchange, k *plan.Kind, filled func(*spec.ActionField) string) (all []page.Link) {
	if q.V.Options.Actions == nil || !q.Clock.AsOf.At.IsZero() {
		return nil
	}
	for _, a := range k.Spec.Actions {
		if a.Makes() == nil || q.Rights.Gate.Act(q.Rights.Caller, listOf(k, a).Sample, a) != nil {
			continue
		}
		var query understudy.Query
		for _, f := range a.Fields {
			if filled != nil && filled(f) != "" {
				query = append(query, understudy.Param{Name: f.Name, Value: filled(f)})
			}
		}
		all = append(all, page.Link{Href: address(k, a.Name, "") + plan.WithQuery(query), Text: a.Title})
	}
	return all
}

// Sync is the link to sync a kind; nil when the caller may not.
func Sync(q *page.Exchange, k *plan.Kind) (all []page.Link) {
	if q.Clock.AsOf.At.IsZero() && k.Browsable() && len(k.Spec.ID) > 0 && mayLocally(q, k, access.DoSync) {
		all = append(all, page.Link{Href: address(k, access.DoSync, ""), Text: "Sync"})
	}
	return all
}

// With are links to the actions of a source that make a record with a number: from it, if it is our own, else to it. An
// empty number is one that the caller types.
func With(q *page.Exchange, source *plan.Source, number string, own bool) (all []page.Link) {
	for _, k := range source.Kinds {
		filled := false
		links := Made(q, k, func(f *spec.ActionField) string {
			if k.Spec.Field(f.Field).Class != spec.ClassPhone || f.Own != own {
				return ""
			}
			filled = true
			return number
		})
		if filled {
			all = append(all, links...)
		}
	}
	return all
}

// About returns links to what the caller may do with a record, and separately those that remove it or its text.
func About(q *page.Exchange, t *spec.Target, row access.Row) (all, removing []page.Link) {
	if q.V.Options.Actions == nil || !q.Clock.AsOf.At.IsZero() {
		return nil, nil
	}
	vars := plan.WithQuery(q.Source.Given(t, t.Instance.ID))
	for _, a := range q.Kind.Spec.Actions {
		if a.Makes() != nil || q.Rights.Gate.Act(q.Rights.Caller, t, a) != nil || caseOf(a, row) == nil {
			continue
		}
		link := page.Link{Href: address(q.Kind, a.Name, t.ID) + vars, Text: a.Title, About: a.Warning}
		if removes(q.Kind, a) {
			removing = append(removing, link)
		} else {
			all = append(all, link)
		}
	}
	for _, word := range localWords(true) {
		if t.ID != "" && mayLocally(q, q.Kind, word) {
			removing = append(removing, page.Link{Href: address(q.Kind, word, t.ID) + vars, Text: plan.UpperFirst(word),
				About: localText(word, q.Kind.Spec.One, q.Kind.Spec.Title, q.Source.Spec.Title).warning})
		}
	}
	return all, removing
}

// removes reports whether an action deletes a record, or empties a field of it to take back its text.
func removes(k *plan.Kind, a *spec.Action) bool {
	return a.Method == http.MethodDelete || slices.ContainsFunc(a.Cases, func(c spec.ActionCase) bool {
		f := k.Spec.Field(c.When.Field)
		return f != nil && f.Redacts && slices.Contains(slices.Collect(maps.Values(c.Set)), "")
	})
}

// address is the page of an action; id "": it makes a record.
func address(k *plan.Kind, word, id string) string {
	path := doPath + url.PathEscape(k.Source.Name) + "/" + url.PathEscape(k.Spec.Name) + "/" + url.PathEscape(word)
	if id != "" {
		path += "/" + url.PathEscape(id)
	}
	return path
}

// caseOf is the case of an action that holds for a record; nil: none does. What the caller
// does not see of the record counts as fulfilled.
func caseOf(a *spec.Action, row access.Row) *spec.ActionCase {
	if len(a.Cases) == 0 {
		return &spec.ActionCase{}
	}
	i := slices.IndexFunc(a.Cases, func(c spec.ActionCase) bool {
		for _, name := range c.When.Set {
			if s := row.Field(name).State; s == access.Null || s == access.Absent {
				return false
			}
		}
		v := row.Field(c.When.Field)
		switch {
		case c.When.Field == "" || v.State == access.Hidden || v.State == access.Masked:
			return true
		case len(c.When.In) == 0:
			return v.State == access.Seen && v.Text != ""
		}
		return v.State == access.Seen && slices.Contains(c.When.In, v.Text)
	})
	if i < 0 {
		return nil
	}
	return &a.Cases[i]
}

// show asks whether something is to be done.
func show(t *task) error {
	for _, f := range t.fields {
		t.values[f.Name] = t.q.R.URL.Query().Get(f.Name)
	}
	facts, err := t.doer.Facts(t)
	if err != nil {
		return err
	}
	return t.render(http.StatusOK, askPage{Facts: facts, Key: rand.Text()})
}

// validKey reports whether a text has the form of our keys.
func validKey(key string) bool {
	isOther := func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '2' || r > '7') }
	return len(key) == len(rand.Text()) && !strings.ContainsFunc(key, isOther)
}
