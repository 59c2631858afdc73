// Actions that the spec defines. Each is one request that the mirror sends to upstream.

package actions

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/actions"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/request"
	"understudy/spec"
)

// work is a function that runs a task.
type work = func(context.Context) actions.Result

// upstream is a doer for an action that the spec defines.
type upstream struct {
	action *spec.Action
	target *spec.Target
}

// findAction returns the task of an action that the spec defines. If the action creates a record, id is empty.
func findAction(q *page.Exchange, a *spec.Action, id string) (*task, error) {
	params, err := understudy.ParseQuery(q.R.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	u := upstream{action: a}
	if id == "" {
		u.target, err = listTarget(q, a, params)
	} else {
		u.target, err = recordTarget(q, id, params)
	}
	if err != nil {
		return nil, err
	}
	if err := q.Rights.Gate.CheckAction(q.Rights.Caller, u.target, a); err != nil {
		return nil, err
	}
	t := &task{q: q, fields: a.Fields, values: map[string]string{}, doer: u, subjectLink: page.Link{Href: listHref(q),
		Text: plan.UpperFirst(q.Kind.Spec.Title)}, words: taskTexts{name: q.Kind.Spec.Name + "." + a.Name + " " +
		u.target.Key.URI, title: a.Title, warning: a.Warning, done: a.Done, isFinal: isRemoving(q.Kind, a)}}
	var own []string
	t.back = listHref(q)
	if id != "" {
		own, t.back, t.record = u.target.Instance.ID, q.Source.Place(u.target), id
	}
	t.path = address(q.Kind, a.Name, id) + plan.WithQuery(q.Source.AddressVars(u.target, own))
	return t, nil
}

// listTarget returns the target of the list to which an action adds a record.
func listTarget(q *page.Exchange, a *spec.Action, params understudy.Query) (*spec.Target, error) {
	path, ok := a.CreationList().Template().FillEscaped(func(name string) (string, bool) {
		if given, ok := params.Get(name); ok {
			return given, true
		}
		return q.Source.Config.PathVar(name)
	})
	if !ok {
		vars := a.CreationList().Template().Vars()
		return nil, page.NewBadRequest("This address is incomplete", "Open the action from the page of its list.", vars)
	}
	return q.Source.Spec.Resolve(q.Source.Name, path, "")
}

// recordTarget returns the target of the record that an address names.
func recordTarget(q *page.Exchange, id string, params understudy.Query) (*spec.Target, error) {
	none := page.NewNotFound("There is no "+q.Kind.Spec.Singular+" "+understudy.Clip(id), "Open it from the list.", q.Kind.Href)
	if len(q.Kind.Spec.Instances) == 0 || !q.Kind.CanOpen(id, params) {
		return nil, none
	}
	path, _ := q.Kind.PathTo(strings.Split(id, spec.IDSeparator), params)
	return q.Source.Spec.Resolve(q.Source.Name, path, "")
}

// readRecord reads a record. It returns an error if the caller may not find the record.
func readRecord(ctx context.Context, q *page.Exchange, t *spec.Target) (row access.Row, err error) {
	r := q.Read(ctx, t)
	switch rows := r.Rows(); {
	case errors.Is(r.Err, understudy.ErrNotFound), r.Err == nil && isGone(r.Answer.Page.Status), r.Err == nil && len(rows) != 1:
		return row, page.NewNoSuchRecord(q.Kind)
	case r.Err != nil:
		return row, r.Err
	default:
		return rows[0], nil
	}
}

func isGone(status int) bool { return status == http.StatusNotFound || status == http.StatusGone }

// ShowFacts implements doer. It returns the columns that lists show of the record.
func (u upstream) ShowFacts(t *task) ([]page.Cell, error) {
	if u.action.CreationList() != nil {
		return nil, nil
	}
	row, err := readRecord(t.q.Ctx, t.q, u.target)
	if err != nil {
		return nil, err
	}
	if caseOf(u.action, row) == nil {
		return nil, &page.Problem{Title: "This can't be done now", Hint: "It is not possible for " + plan.Article(t.q.Kind.Spec.Singular) +
			" in this state.", Href: t.back, Link: "Back to the " + t.q.Kind.Spec.Singular, Kind: understudy.ErrInvalid}
	}
	return readFacts(t.q, u.target, row)
}

// readFacts writes an audit entry and returns the columns that lists show of a record.
func readFacts(q *page.Exchange, t *spec.Target, row access.Row) (all []page.Cell, err error) {
	if err := page.WriteAudit(q, understudy.AuditEntry{Action: understudy.ActionRecord, IDs: []string{t.ID}, Rows: 1}); err != nil {
		return nil, err
	}
	s := q.CellContext(q.Kind, q.Source.AddressVars(t, t.Instance.ID), nil)
	for _, c := range q.Rights.ColumnsOf(q.Kind) {
		if row.Field(c.Spec.Name).State != access.Absent {
			all = append(all, s.Cell(c, row, true))
		}
	}
	return all, nil
}

// Prepare implements doer. The returned function sends the request to upstream.
func (u upstream) Prepare(t *task) work {
	q := t.q
	e := understudy.AuditEntry{Action: understudy.ActionSend, What: q.Kind.Spec.Name + "." + u.action.Name}
	if u.action.Method == http.MethodDelete {
		e.Action = understudy.ActionDelete
	}
	if u.target.ID != "" {
		e.IDs = []string{u.target.ID}
	}
	for _, f := range t.fields {
		if field := q.Kind.Spec.Field(f.Field); field.Class == spec.ClassPhone {
			e.Values = append(e.Values, t.values[f.Name])
		}
	}
	list := page.PrepareAudit(q, e)
	done := page.AuditEntry(q, understudy.AuditEntry{Action: e.Action, What: understudy.WhatCreated})
	return func(ctx context.Context) actions.Result {
		c := &spec.ActionCase{}
		if u.action.CreationList() == nil {
			row, err := readRecord(ctx, q, u.target)
			if err != nil {
				return unsentResult(q, err)
			}
			if c = caseOf(u.action, row); c == nil {
				return actions.Result{State: actions.NotSent, Why: "It is not possible for " + plan.Article(q.Kind.Spec.Singular) + " in this state."}
			}
		} else if len(u.action.Cases) > 0 {
			c = &u.action.Cases[0]
		}
		if err := list(ctx); err != nil {
			return unsentResult(q, err)
		}
		body, contentType := u.action.Form(t.values, c.Set)
		w := request.Write{Target: u.target, Method: u.action.Method, Body: body, ContentType: contentType, Flow: q.Rights.Caller.Flow}
		answer, err := q.V.Options.Actions.Options.Mirror.Write(ctx, w)
		if err == nil && u.action.CreationList() != nil && answer.Page.CreatedID() != "" {
			done.IDs, done.Status = []string{answer.Page.CreatedID()}, answer.Page.Status
			_ = understudy.RecordAudit(ctx, q.V.Options.Audit, done) // the action has been done already, so an error of the log changes nothing
		}
		return writeResult(q, answer, err)
	}
}

// writeResult returns the result of a write to upstream.
func writeResult(q *page.Exchange, answer *request.Response, err error) actions.Result {
	switch {
	case errors.Is(err, understudy.ErrUnknownOutcome):
		return actions.Result{State: actions.Unknown}
	case err != nil:
		return unsentResult(q, err)
	}
	p := answer.Page
	if p.Status < http.StatusMultipleChoices {
		return actions.Result{State: actions.Done, ID: p.CreatedID()}
	}
	out := actions.Result{State: actions.Refused, Status: p.Status}
	if p.Status >= http.StatusInternalServerError {
		out.State = actions.Unknown
	}
	said := *p
	said.Key.Source = q.Source.Name // the response to a write has no key, so its source is not set
	if refused, ok := errors.AsType[*page.Problem](q.Rights.CheckWrite(q.Source, &said)); ok {
		out.Words = refused.Hint
		if refused.Reason != nil {
			out.Code = refused.Reason.Code
		}
	}
	return out
}

// unsentResult returns the result of work that failed before a request was sent to upstream.
func unsentResult(q *page.Exchange, err error) actions.Result {
	out := actions.Result{State: actions.NotSent}
	var up *understudy.UpstreamError
	switch {
	case errors.As(err, &up):
		out.Why = q.Source.Spec.Title + " is not answering (" + up.ShortText() + ")."
	case errors.Is(err, understudy.ErrNotFound) && q.Kind != nil:
		out.Why, out.Status = "There is no such "+q.Kind.Spec.Singular+".", http.StatusNotFound
	case errors.Is(err, understudy.ErrNotAudited):
		out.Why = "The audit log can't be written, and nothing is done without it."
	case errors.Is(err, understudy.ErrInvalid):
		out.Why = page.Sentence(err)
	default:
		q.V.Options.Logger.Error("viewer: action", "source", q.Source.Name, "error", err)
		out.Why = "The server's log has the reason."
	}
	return out
}

// Next implements doer. It returns the address of the record if the caller may find the record, else that of its list.
func (u upstream) Next(t *task, id string) string {
	q := t.q
	switch {
	case u.action.Method == http.MethodDelete:
		return listHref(q)
	case u.action.CreationList() == nil:
		return t.back
	case id == "" || !q.Rights.Gate.CanSeeIDs(q.Rights.Caller, q.Source.Name, q.Kind.Spec) ||
		q.Rights.Gate.HasRowRules(q.Rights.Caller, q.Source.Name) && !q.Rights.Gate.CanFind(q.Rights.Caller, q.Source.Name, q.Kind.Spec.Name, id):
		return listHref(q)
	}
	own := plan.OwnVars(q.Source.AddressVars(u.target, nil))
	if !q.Kind.CanOpen(id, own) {
		return listHref(q)
	}
	return q.Kind.Href + "/" + url.PathEscape(id) + plan.WithQuery(own)
}

// listHref returns the address of the kind's list. It returns the home page if the kind has no list that can be opened.
func listHref(q *page.Exchange) string {
	if q.Kind.IsBrowsable() {
		return q.Kind.Href
	}
	return "/"
}

// ownNumbers waits for our own numbers and returns those that the caller may see, sorted.
func ownNumbers(q *page.Exchange) []string {
	var kinds []*plan.Kind
	var lists []*spec.Target
	for _, k := range q.Source.OwnKinds {
		if q.Rights.CanSeeOwnNumbers(k) && q.Rights.CanCount(k) {
			kinds, lists = append(kinds, k), append(lists, k.PlannedLists[0].Newest)
		}
	}
	own := map[string]bool{}
	for i, r := range q.ReadAll(lists) {
		q.V.Numbers.Add(own, q.Rights.Caller.Role(), kinds[i], r)
	}
	return slices.Sorted(maps.Keys(own))
}
