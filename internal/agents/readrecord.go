// This file reads records and lists, as they are now and at an earlier time.

package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/viewer/plan"
	"understudy/request"
	"understudy/spec"
)

// errComputing is the error of a read to which the upstream responded with 202: the result is not ready.
var errComputing = fmt.Errorf("agents: %w: upstream is still computing this", understudy.ErrUnavailable)

// recordArgs are the tool arguments that name a record.
type recordArgs struct {
	Source string            `json:"source"`
	Kind   string            `json:"kind"`
	ID     string            `json:"id"`
	Within map[string]string `json:"within"`
}

// listArgs are the tool arguments that name a page of a list.
type listArgs struct {
	Source  string            `json:"source"`
	Kind    string            `json:"kind"`
	ID      string            `json:"id"`
	Within  map[string]string `json:"within"`
	List    string            `json:"list"`
	Filters map[string]string `json:"filters"`
	Cursor  string            `json:"cursor"`
	Limit   int               `json:"limit"`
	At      string            `json:"at"`
}

// readAnswer contains one record, or the records of a list.
type readAnswer struct {
	Source string `json:"source"`
	Kind   string `json:"kind"`
	List   string `json:"list,omitempty"`
	ID     string `json:"id,omitempty" jsonschema:"absent if your role does not see it"`

	How string    `json:"how" jsonschema:"warm: cached; stale: cached, past its fresh time; cold: fetched now; composed: built from records"`
	At  time.Time `json:"current_at" jsonschema:"when the API answered"`
	Age int64     `json:"age_seconds" jsonschema:"how old the answer is"`

	Link    string            `json:"link,omitempty" jsonschema:"the address of the record's page for people"`
	Cut     string            `json:"cut,omitempty" jsonschema:"why there are fewer records than requested"`
	Next    string            `json:"next_cursor,omitempty" jsonschema:"the cursor of the next page; absent at the end"`
	Note    string            `json:"note"`
	Record  json.RawMessage   `json:"record,omitempty" jsonschema:"the record as your role sees it: hidden values are null"`
	Records []json.RawMessage `json:"records,omitzero" jsonschema:"the records as your role sees them: hidden values are null"`
}

// addGet adds the tool that reads a record.
func (b *builder) addGet() {
	p := b.addWithin(b.addID(b.addKind(&properties{}, hasInstances), false, hasInstances), recordNeeds)
	add[readAnswer](b, "get", "Get a record",
		"Returns one record by its id, as fresh as the server keeps it. Kinds with a single record take no id.",
		hasInstances, p, func(ctx context.Context, v *exchange, a recordArgs) (any, error) {
			return v.record(ctx, a, time.Time{})
		})
}

// addList adds the tool that lists records.
func (b *builder) addList() {
	add[readAnswer](b, "list", "List records", "Returns the records of a kind, newest first, with the filters of the API's own lists. "+
		"To find records by words or by any field, use search.", hasLists, b.addPage(b.listProperties(&properties{})),
		func(ctx context.Context, v *exchange, a listArgs) (any, error) {
			if a.ID != "" || a.At != "" {
				return nil, newInvalid("list takes no id and no time; use get or as_of")
			}
			return v.list(ctx, a, time.Time{})
		})
}

func (b *builder) listProperties(p *properties) *properties {
	b.addKind(p, hasLists)
	p.add("list", text("the list of the kind, by the name in describe; default: its first list"))
	return b.addFilters(b.addWithin(p, listNeeds))
}

// addAsOf adds the tool that shows an earlier state of a record or list.
func (b *builder) addAsOf() {
	p := (&properties{}).need("at", text("the time, such as 2006-01-02T15:04:05Z, or a day, which means its beginning"))
	b.listProperties(b.addID(p, false, hasHistory))
	add[readAnswer](b, "as_of", "See an earlier state",
		"Returns one record (with id) or a list (without id) as it was known at a time.", isAnyKind,
		b.addPage(p),
		func(ctx context.Context, v *exchange, a listArgs) (any, error) {
			at, err := spec.ParseInstant(a.At)
			switch {
			case err != nil:
				return nil, err
			case at.After(v.began):
				return nil, newInvalid("at %s has not come yet", at.Format(time.RFC3339))
			case a.ID != "":
				return v.record(ctx, recordArgs{a.Source, a.Kind, a.ID, a.Within}, at)
			}
			return v.list(ctx, a, at)
		})
}

// ask requests a page from the mirror for the caller. The gate checks the request and the response.
func (v *exchange) ask(ctx context.Context, t *spec.Target, at time.Time) (*request.Response, *access.View, error) {
	sight := v.srv.o.Gate.Visibility(v.caller, t)
	if err := sight.CheckRead(t); err != nil {
		return nil, nil, err
	}
	read := request.Request{Target: t, AsOf: at, Flow: v.caller.Flow, AgeLimit: v.caller.Grant.MaxStale}
	answer, err := sight.RequestPage(ctx, read, v.srv.o.Mirror.Answer)
	if err != nil {
		return nil, nil, err
	}
	view, err := sight.MakeView(answer.Page)
	switch {
	case err != nil:
		return nil, nil, err
	case answer.Page.Status == http.StatusNotFound, answer.Page.Status == http.StatusGone:
		return nil, nil, understudy.ErrNotFound
	case answer.Page.Status == http.StatusAccepted:
		return nil, nil, errComputing
	case answer.Page.Status != http.StatusOK:
		return nil, nil, newInvalid("%s refused this with status %d and the message %q", t.Spec.Title, answer.Page.Status,
			understudy.Clip(string(view.Body)))
	case !view.IsReadable():
		return nil, nil, newInvalid("the answer of %s is not JSON", t.Spec.Title)
	}
	return answer, view, nil
}

// findInstance returns the kind and the target of a record.
func (v *exchange) findInstance(a recordArgs) (*plan.Kind, *spec.Target, error) {
	k, err := v.offer.findKind(a.Source, a.Kind, hasInstances)
	if err != nil {
		return nil, nil, err
	}
	in := k.PlannedInstances[0]
	parts := strings.Split(a.ID, spec.IDSeparator)
	if a.ID == "" {
		parts = nil
	}
	if len(parts) != len(in.Spec.ID) {
		if len(in.Spec.ID) == 0 {
			return nil, nil, newInvalid("there is only one %s; leave id out", k.Spec.Singular)
		}
		return nil, nil, newInvalid("id %q is not complete; write the %s of %s", understudy.Clip(a.ID), strings.Join(k.Spec.ID, spec.IDSeparator),
			plan.Article(k.Spec.Singular))
	}
	within, err := readVars(a.Within, recordNeeds(k))
	if err != nil {
		return nil, nil, err
	}
	path, ok := k.PathTo(parts, within)
	if !ok {
		return nil, nil, newInvalid("%s belongs to another record; name that record in within: %s", plan.Article(k.Spec.Singular),
			strings.Join(recordNeeds(k), ", "))
	}
	t, err := k.Source.Spec.Resolve(k.Source.Name, path, "")
	if err == nil && t.Instance != in.Spec {
		err = understudy.ErrNotFound
	}
	return k, t, err
}

// readVars returns the path variables that the arguments contain. An unknown variable is an error.
func readVars(given map[string]string, known []string) (all understudy.Query, err error) {
	for name, value := range given {
		switch {
		case !slices.Contains(known, name):
			return nil, newUnknown("name in within", name, known)
		case value == "":
			return nil, newInvalid("within.%s is empty", name)
		}
		all = append(all, understudy.Param{Name: name, Value: value})
	}
	slices.SortFunc(all, plan.CompareNames)
	return all, nil
}

// record returns one record.
func (v *exchange) record(ctx context.Context, a recordArgs, at time.Time) (any, error) {
	k, t, err := v.findInstance(a)
	if err != nil {
		return nil, err
	}
	if !at.IsZero() && !hasID(k) {
		return nil, newInvalid("no history of %s is stored", k.Spec.Singular)
	}
	answer, view, err := v.ask(ctx, t, at)
	if err != nil {
		return nil, err
	}
	rows := view.Rows()
	if len(rows) != 1 {
		return nil, understudy.ErrNotFound
	}
	if err := v.checkSize(len(rows[0].JSON())); err != nil {
		return nil, err
	}
	out := v.newReadAnswer(k, answer)
	out.ID, out.Link, out.Record = rows[0].ID, v.srv.o.PublicURL+k.Source.Place(t), rows[0].JSON()
	return out, v.recordAction(ctx, understudy.AuditEntry{Action: understudy.ActionRecord, What: "an agent reads a record", Source: out.Source,
		Kind: out.Kind, IDs: []string{t.ID}, Rows: 1})
}
