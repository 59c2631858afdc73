// Actions that people run on records. A page asks for confirmation first.
//
//	GET  -> the page says what will be done, with a new key
//	POST -> it is done, at most once for a key (package internal/actions)
//	303  -> the record or its list, which says what was done

// Package actions shows the pages on which people do something: send, redact, delete, sync, purge, erase. It also
// has the notes on records.
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

// doPath begins the addresses of actions.
const doPath = page.ControlPrefix + "do/"

// errInvalidForm is the error for a form that cannot be read.
var errInvalidForm = page.NewBadRequest("This form is not valid", fmt.Sprintf("A form can have at most %d KiB.", page.MaxForm>>10), nil)

// Routes returns the routes of the actions.
func Routes() []page.Route {
	var all []page.Route
	for _, path := range []string{"{source}/{kind}/{action}", "{source}/{kind}/{action}/{id}"} {
		all = append(all, page.Route{Pattern: "GET " + doPath + path, Handler: taskHandler(findTask, show)},
			page.Route{Pattern: "POST " + doPath + path, Handler: taskHandler(findTask, runTask)})
	}
	all = append(all, page.Route{Pattern: "POST " + doPath + "{source}/{kind}/" + access.PermitNote + "/{id}", Handler: handleNoteForm})
	all = append(all, page.Route{Pattern: "POST " + doPath + "selected", Handler: runSelected})
	person := doPath + "{source}/" + plan.NumberWord + "/" + access.PermitErase + "/{number}"
	return append(all, page.Route{Pattern: "GET " + person, Handler: taskHandler(findPerson, show)},
		page.Route{Pattern: "POST " + person, Handler: taskHandler(findPerson, runTask)})
}

func taskHandler(find func(*page.Exchange) (*task, error), run func(*task) error) page.Handler {
	return func(q *page.Exchange) error {
		t, err := find(q)
		if err != nil {
			return err
		}
		return run(t)
	}
}

// task is an action that the reader is about to run, for which the page asks for confirmation.
type task struct {
	q           *page.Exchange
	words       taskTexts
	fields      []*spec.ActionField
	values      map[string]string // the values in the form, by upstream's name of the parameter
	subjectLink page.Link         // a link to what the task is about: a list, or a phone number
	record      string            // the id of the record that the task is about; empty if it is about none
	path        string            // the address of the page that asks for confirmation
	back        string            // the address of the link Back, which leads to the record or its list
	doer        taskDoer
}

// taskTexts are the texts of a task.
type taskTexts struct {
	name    string // the name of the task, which is unique within its source; it is part of the key that prevents a second run
	title   string
	warning string
	done    string // the message that is shown when the task is done
	isFinal bool   // whether the task cannot be undone
}

// taskDoer is what a task does. Tasks are actions upstream, or on stored data.
type taskDoer interface {
	// ShowFacts returns what the page shows about the record of the task. If it returns an error, an error page is shown.
	ShowFacts(t *task) ([]page.Cell, error)
	// Prepare returns the function that does the work. It must read everything it needs from the request before,
	// because the function may run longer than the request.
	Prepare(t *task) work
	// Next returns the address to which the browser is redirected when the work is done. id is the id of the new
	// record, if the work has created one.
	Next(t *task, id string) string
}

// errNoActions is the error of a server that offers no actions.
var errNoActions = page.NewNotFound("Actions are not available here", "This server only shows records.", "/")

// findTask returns the task at an address. It returns an error if the caller may not run it.
func findTask(q *page.Exchange) (*task, error) {
	if q.V.Options.Actions == nil {
		return nil, errNoActions
	}
	word, id := q.R.PathValue("action"), q.R.PathValue("id")
	if a := q.Kind.Spec.Action(word); a != nil && (a.CreationList() == nil) == (id != "") {
		return findAction(q, a, id)
	}
	if slices.Contains(localActionNames(id != ""), word) {
		return findLocal(q, word, id)
	}
	return nil, page.NewUnknownWord("action", word, append(actionNames(q.Kind, id != ""), localActionNames(id != "")...), nil)
}

// actionNames returns the names of a kind's actions: those on an existing record, or those that create a record.
func actionNames(k *plan.Kind, record bool) (all []string) {
	for _, a := range k.Spec.Actions {
		if (a.CreationList() == nil) == record {
			all = append(all, a.Name)
		}
	}
	return all
}

// listOf returns the list to which an action adds a record.
func listOf(k *plan.Kind, a *spec.Action) *plan.List {
	return k.PlannedLists[slices.IndexFunc(k.PlannedLists, func(l *plan.List) bool { return l.Spec == a.CreationList() })]
}

// CreateLinks returns links to the actions that create a record of a kind, if the caller may run them. filled returns
// the value that a field of the form has at first.
func CreateLinks(q *page.Exchange, k *plan.Kind, filled func(*spec.ActionField) string) (all []page.Link) {
	if q.V.Options.Actions == nil || !q.Clock.AsOf.At.IsZero() {
		return nil
	}
	for _, a := range k.Spec.Actions {
		if a.CreationList() == nil || q.Rights.Gate.CheckAction(q.Rights.Caller, listOf(k, a).Sample, a) != nil {
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

// SyncLinks returns a link to the full sync of a kind. It returns nil if the caller may not start one.
func SyncLinks(q *page.Exchange, k *plan.Kind) (all []page.Link) {
	if q.Clock.AsOf.At.IsZero() && k.IsBrowsable() && len(k.Spec.ID) > 0 && canRunLocally(q, k, access.PermitSync) {
		all = append(all, page.Link{Href: address(k, access.PermitSync, ""), Text: "Sync"})
	}
	return all
}

// NumberLinks returns links to the actions that create a record with a phone number, such as a message. The number is
// the sender if it is our own, else the recipient. If the number is empty, the caller types it.
func NumberLinks(q *page.Exchange, source *plan.Source, number string, own bool) (all []page.Link) {
	for _, k := range source.Kinds {
		filled := false
		links := CreateLinks(q, k, func(f *spec.ActionField) string {
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

// RecordLinks returns links to the actions that the caller may run on a record. The actions that delete the record or
// its text are in removing.
func RecordLinks(q *page.Exchange, t *spec.Target, row access.Row) (all, removing []page.Link) {
	if q.V.Options.Actions == nil || !q.Clock.AsOf.At.IsZero() {
		return nil, nil
	}
	vars := plan.WithQuery(q.Source.AddressVars(t, t.Instance.ID))
	for _, a := range q.Kind.Spec.Actions {
		if a.CreationList() != nil || q.Rights.Gate.CheckAction(q.Rights.Caller, t, a) != nil || caseOf(a, row) == nil {
			continue
		}
		link := page.Link{Href: address(q.Kind, a.Name, t.ID) + vars, Text: a.Title, About: a.Warning}
		if isRemoving(q.Kind, a) {
			removing = append(removing, link)
		} else {
			all = append(all, link)
		}
	}
	for _, word := range localActionNames(true) {
		if t.ID != "" && canRunLocally(q, q.Kind, word) {
			removing = append(removing, page.Link{Href: address(q.Kind, word, t.ID) + vars, Text: plan.UpperFirst(word),
				About: localText(word, q.Kind.Spec.Singular, q.Kind.Spec.Title, q.Source.Spec.Title).warning})
		}
	}
	return all, removing
}

// isRemoving reports whether an action deletes a record or its text.
func isRemoving(k *plan.Kind, a *spec.Action) bool {
	return a.Method == http.MethodDelete || slices.ContainsFunc(a.Cases, func(c spec.ActionCase) bool {
		f := k.Spec.Field(c.When.Field)
		return f != nil && f.Redacts && slices.Contains(slices.Collect(maps.Values(c.Set)), "")
	})
}

// address returns the address of an action's page. If the action creates a record, id is empty.
func address(k *plan.Kind, word, id string) string {
	path := doPath + url.PathEscape(k.Source.Name) + "/" + url.PathEscape(k.Spec.Name) + "/" + url.PathEscape(word)
	if id != "" {
		path += "/" + url.PathEscape(id)
	}
	return path
}

// caseOf returns the first case of an action whose conditions the record meets, or nil if there is none. A condition
// on a field that the caller may not see counts as met.
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

func show(t *task) error {
	for _, f := range t.fields {
		t.values[f.Name] = t.q.R.URL.Query().Get(f.Name)
	}
	facts, err := t.doer.ShowFacts(t)
	if err != nil {
		return err
	}
	return t.render(http.StatusOK, askPage{Facts: facts, Key: rand.Text()})
}

// isValidKey reports whether a text has the form of the random keys in forms, which prevent that a task runs twice.
func isValidKey(key string) bool {
	isOther := func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '2' || r > '7') }
	return len(key) == len(rand.Text()) && !strings.ContainsFunc(key, isOther)
}
