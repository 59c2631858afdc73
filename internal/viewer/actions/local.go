// Actions on stored data: sync a kind, purge or erase a record, or erase everything about a phone number.

package actions

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/actions"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// local is a doer for an action on stored data.
type local struct {
	actionName string       // the name of the action in the setting do of a role
	target     *spec.Target // the record; nil if the action is about a kind or a phone number
	number     string       // the phone number of the person; empty if the action is about a record or a kind
}

// localActionNames returns the names of the actions on stored data: those on a record, or those on a kind.
func localActionNames(record bool) []string {
	if record {
		return []string{access.PermitPurge, access.PermitErase}
	}
	return []string{access.PermitSync}
}

// localText returns the texts of an action on stored data. one and many are the nouns for its records. upstream is
// the name of the API.
func localText(word, one, many, upstream string) taskTexts {
	switch word {
	case access.PermitSync:
		return taskTexts{title: "Sync " + many, done: "A sync of all " + many + " has started.",
			warning: "Fetches every record from the API, within its request limit, and keeps them up to date."}
	case access.PermitPurge:
		return taskTexts{title: "Purge the " + one, done: "The copy is cleared.",
			warning: "Clears the copy of this " + one + " here; it is fetched from " + upstream + " again when somebody opens it."}
	}
	return taskTexts{title: "Erase the " + one, isFinal: true, done: "It will be erased from every file within seconds.",
		warning: "Permanently removes this " + one + " and everything under it from this server; " + upstream +
			" keeps its copy, so delete it there too."}
}

// canRunLocally reports whether the caller may run an action on the stored records of a kind.
func canRunLocally(q *page.Exchange, k *plan.Kind, word string) bool {
	return q.V.Options.Actions != nil && q.V.Options.Actions.Options.Operator != nil && q.Rights.CanSeeKind(k) &&
		q.Rights.Gate.CheckPermission(q.Rights.Caller, k.Source.Name, word) == nil
}

// findLocal returns the task of an action on stored data. If the action is about a kind, id is empty.
func findLocal(q *page.Exchange, word, id string) (*task, error) {
	if q.V.Options.Actions.Options.Operator == nil {
		return nil, errNoActions
	}
	if err := q.Rights.Gate.CheckPermission(q.Rights.Caller, q.Source.Name, word); err != nil {
		return nil, err
	}
	l := local{actionName: word}
	t := &task{q: q, values: map[string]string{}, words: localText(word, q.Kind.Spec.Singular, q.Kind.Spec.Title, q.Source.Spec.Title),
		subjectLink: page.Link{Href: listHref(q), Text: plan.UpperFirst(q.Kind.Spec.Title)}, back: listHref(q)}
	t.path, t.words.name = address(q.Kind, word, id), q.Kind.Spec.Name+" "+word+" "+id
	if id != "" {
		params, err := understudy.ParseQuery(q.R.URL.RawQuery)
		if err == nil {
			l.target, err = recordTarget(q, id, params)
		}
		if err != nil {
			return nil, err
		}
		t.record = id
		t.back, t.path = q.Source.Place(l.target), t.path+plan.WithQuery(q.Source.AddressVars(l.target, l.target.Instance.ID))
	} else if !q.Rights.CanSeeKind(q.Kind) {
		return nil, page.NewNoSuchRecord(q.Kind)
	}
	t.doer = l
	return t, nil
}

// findPerson returns the task that erases everything about a phone number.
func findPerson(q *page.Exchange) (*task, error) {
	number := q.R.PathValue("number")
	switch {
	case q.V.Options.Actions == nil || q.V.Options.Actions.Options.Operator == nil:
		return nil, errNoActions
	case !plan.IsNumber(number):
		return nil, page.NewNotFound("There is no number "+understudy.Clip(number), "Write it with its country code: +14155550100.", "/")
	}
	if err := q.Rights.Gate.CheckPermission(q.Rights.Caller, q.Source.Name, access.PermitErase); err != nil {
		return nil, err
	}
	if q.Rights.Gate.HasRowRules(q.Rights.Caller, q.Source.Name) || len(q.Rights.ContactKinds(q.Source)) == 0 {
		return nil, &page.Problem{Title: "Your role does not allow this", Kind: understudy.ErrForbidden,
			Hint: "Only a role that can see every record and every number can erase a number's records."}
	}
	t := &task{q: q, values: map[string]string{}, words: localText(access.PermitErase, "number "+plan.GroupPhone(number), "", ""),
		subjectLink: page.Link{Href: q.Source.NumberHref(number), Text: plan.GroupPhone(number)}, back: q.Source.NumberHref(number)}
	t.path = doPath + url.PathEscape(q.Source.Name) + "/" + plan.NumberWord + "/" + access.PermitErase + "/" + url.PathEscape(number)
	t.words.name = "erase " + number
	t.words.warning = warnPerson(q)
	t.doer = local{actionName: access.PermitErase, number: number}
	return t, nil
}

// subject returns the record or the phone number in the form that the Operator expects.
func (l local) subject() string {
	if l.number != "" {
		return l.number
	}
	return l.target.Kind.Name + "/" + l.target.ID
}

// ShowFacts implements doer. It returns the columns of the record, or the numbers of records that will be erased.
func (l local) ShowFacts(t *task) (all []page.Cell, err error) {
	if l.target != nil {
		row, err := readRecord(t.q.Ctx, t.q, l.target)
		if err == nil {
			all, err = readFacts(t.q, l.target, row)
		}
		if err != nil {
			return nil, err
		}
	}
	if l.actionName != access.PermitErase {
		return all, nil
	}
	kinds, own, err := t.q.V.Options.Actions.Options.Operator.CountErasable(t.q.Ctx, t.q.Source.Name, l.subject())
	switch {
	case err != nil:
		return nil, err
	case own:
		return nil, &page.Problem{Title: "This is one of our own numbers", Href: t.back, Link: "Back", Kind: understudy.ErrInvalid,
			Hint: "Erasing it would remove everything sent or received with it. To do that, run understudy erase --own."}
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		// the number of records is left out if it could reveal hidden records
		if k := t.q.Source.ByName[name]; k != nil && t.q.Rights.CanCount(k) {
			all = append(all, page.Cell{Label: plan.UpperFirst(k.Spec.Title) + " to erase", Text: strconv.Itoa(kinds[name])})
		}
	}
	return all, nil
}

// Prepare implements doer. The returned function calls the Operator.
func (l local) Prepare(t *task) work {
	q := t.q
	e := understudy.AuditEntry{Action: understudy.ActionAdminister, What: l.actionName}
	if l.actionName == access.PermitErase {
		e.Action = understudy.ActionDelete
	}
	if l.target != nil {
		e.IDs = []string{l.target.ID}
	}
	if l.number != "" {
		e.Values = []string{l.number}
	}
	list, op, source := page.PrepareAudit(q, e), q.V.Options.Actions.Options.Operator, q.Source.Name
	return func(ctx context.Context) (out actions.Result) {
		if l.target != nil {
			if _, err := readRecord(ctx, q, l.target); err != nil {
				return unsentResult(q, err)
			}
		}
		err := list(ctx)
		if err == nil {
			err = l.run(ctx, op, source, q.Kind)
		}
		if err != nil {
			return unsentResult(q, err)
		}
		return actions.Result{State: actions.Done}
	}
}

// run calls the Operator's method for the action.
func (l local) run(ctx context.Context, op actions.Operator, source string, k *plan.Kind) error {
	switch l.actionName {
	case access.PermitSync:
		return op.Sync(ctx, source, k.Spec.Name)
	case access.PermitPurge:
		return op.Purge(ctx, source, k.Spec.Name, l.target.ID)
	}
	_, err := op.Erase(ctx, source, l.subject(), false)
	return err
}

// Next implements doer. It returns the address to which the browser is redirected after the action.
func (l local) Next(t *task, _ string) string {
	if l.actionName == access.PermitPurge {
		return t.back
	}
	if l.number != "" {
		return "/"
	}
	return listHref(t.q)
}

// ErasePerson returns a link to erase everything about a phone number. It returns nil if the caller may not do that.
func ErasePerson(q *page.Exchange, number string) (all []page.Link) {
	if q.V.Options.Actions != nil && q.V.Options.Actions.Options.Operator != nil &&
		!q.Rights.Gate.HasRowRules(q.Rights.Caller, q.Source.Name) &&
		q.Rights.Gate.CheckPermission(q.Rights.Caller, q.Source.Name, access.PermitErase) == nil {
		all = append(all, page.Link{Text: "Erase", Href: doPath + url.PathEscape(q.Source.Name) + "/" + plan.NumberWord + "/" +
			access.PermitErase + "/" + url.PathEscape(number), About: warnPerson(q)})
	}
	return all
}

// warnPerson returns the warning that is shown before everything about a phone number is erased.
func warnPerson(q *page.Exchange) string {
	return "Permanently removes every record with this number, and everything under it, from this server, also where other " +
		"people took part. " + q.Source.Spec.Title + " keeps its copies, so delete them there too."
}
