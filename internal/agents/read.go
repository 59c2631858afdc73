// Read: records and lists as upstream shows them, now and at an earlier moment.

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

// errComputing is the error of a read that upstream answered with 202: there is no answer yet.
var errComputing = fmt.Errorf("agents: %w: upstream is still computing this", understudy.ErrUnavailable)

// recordArgs name a record.
type recordArgs struct {
	Source string            `json:"source"`
	Kind   string            `json:"kind"`
	ID     string            `json:"id"`
	Within map[string]string `json:"within"`
}

// listArgs name a page of a list.
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

// readAnswer is one record, or some of a list.
type readAnswer struct {
	Source string `json:"source"`
	Kind   string `json:"kind"`
	List   string `json:"list,omitempty"`
	ID     string `json:"id,omitempty" jsonschema:"absent where the role does not see it"`

	How string    `json:"how" jsonschema:"warm: held; stale: held and past fresh; cold: fetched now; composed: made from held records"`
	At  time.Time `json:"current_at" jsonschema:"when the API said so"`
	Age int64     `json:"age_seconds" jsonschema:"how old the answer is"`

	Link    string            `json:"link,omitempty" jsonschema:"its page for people"`
	Cut     string            `json:"cut,omitempty" jsonschema:"why there are fewer than were asked for"`
	Next    string            `json:"next_cursor,omitempty" jsonschema:"leads on; absent at the end"`
	Note    string            `json:"note"`
	Record  json.RawMessage   `json:"record,omitempty" jsonschema:"as the role sees it: hidden values are null"`
	Records []json.RawMessage `json:"records,omitzero" jsonschema:"as the role sees them: hidden values are null"`
}

func (b *builder) get() {
	p := b.within(b.id(b.kind(&properties{}, shown), false, shown), recordNeeds)
	add[readAnswer](b, "get", "Get a record", "One record by its id, as new as the server keeps it. Some kinds are one thing and have no id.",
		shown, p, func(ctx context.Context, v *exchange, arguments json.RawMessage) (any, error) {
			var a recordArgs
			if err := read(arguments, &a); err != nil {
				return nil, err
			}
			return v.record(ctx, a, time.Time{})
		})
}

func (b *builder) list() {
	add[readAnswer](b, "list", "List records", "The newest records of a kind first, by the filters of the API's own lists. "+
		"search finds by words and by any field.", listed, b.page(b.listProperties(&properties{})),
		func(ctx context.Context, v *exchange, arguments json.RawMessage) (any, error) {
			var a listArgs
			if err := read(arguments, &a); err != nil {
				return nil, err
			}
			if a.ID != "" || a.At != "" {
				return nil, invalid("list takes no id and no moment; get and as_of do")
			}
			return v.list(ctx, a, time.Time{})
		})
}

func (b *builder) listProperties(p *properties) *properties {
	b.kind(p, listed)
	p.add("list", text("which list of the kind, by the name that describe gives; its first when absent"))
	return b.filters(b.within(p, listNeeds))
}

func (b *builder) asOf() {
	p := (&properties{}).need("at", text("the moment: 2006-01-02T15:04:05Z, or a day for its beginning"))
	b.listProperties(b.id(p, false, remembered))
	add[readAnswer](b, "as_of", "See an earlier state", "One record (with id) or a list (without) as it was known at a moment.", anyKind,
		b.page(p),
		func(ctx context.Context, v *exchange, arguments json.RawMessage) (any, error) {
			var a listArgs
			if err := read(arguments, &a); err != nil {
				return nil, err
			}
			at, err := spec.ParseInstant(a.At)
			switch {
			case err != nil:
				return nil, err
			case at.After(v.began):
				return nil, invalid("at %s has not come yet", at.Format(time.RFC3339))
			case a.ID != "":
				return v.record(ctx, recordArgs{a.Source, a.Kind, a.ID, a.Within}, at)
			}
			return v.list(ctx, a, at)
		})
}

// ask asks the mirror as the caller, through the gate there and back.
func (v *exchange) ask(ctx context.Context, t *spec.Target, at time.Time) (*request.Response, *access.View, error) {
	sight := v.srv.o.Gate.Sight(v.caller, t)
	if err := sight.Read(t); err != nil {
		return nil, nil, err
	}
	read := request.Request{Target: t, AsOf: at, Flow: v.caller.Flow, AgeLimit: v.caller.Grant.MaxStale}
	answer, err := sight.Page(ctx, read, v.srv.o.Mirror.Answer)
	if err != nil {
		return nil, nil, err
	}
	view, err := sight.View(answer.Page)
	switch {
	case err != nil:
		return nil, nil, err
	case answer.Page.Status == http.StatusNotFound, answer.Page.Status == http.StatusGone:
		return nil, nil, understudy.ErrNotFound
	case answer.Page.Status == http.StatusAccepted:
		return nil, nil, errComputing
	case answer.Page.Status != http.StatusOK:
		return nil, nil, invalid("%s refused this with status %d, and these words of its own: %q", t.Spec.Title, answer.Page.Status,
			understudy.Clip(string(view.Body)))
	case !view.Readable():
		return nil, nil, invalid("what %s answered is no JSON", t.Spec.Title)
	}
	return answer, view, nil
}

// instance is the target of a record.
func (v *exchange) instance(a recordArgs) (*plan.Kind, *spec.Target, error) {
	k, err := v.offer.kindOf(a.Source, a.Kind, shown)
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
			return nil, nil, invalid("there is one %s alone; leave id out", k.Spec.One)
		}
		return nil, nil, invalid("id %q: want the %s of %s", understudy.Clip(a.ID), strings.Join(k.Spec.ID, spec.IDSeparator),
			plan.Article(k.Spec.One))
	}
	within, err := vars(a.Within, recordNeeds(k))
	if err != nil {
		return nil, nil, err
	}
	path, ok := k.PathTo(parts, within)
	if !ok {
		return nil, nil, invalid("%s lies under another record; say which in within: %s", plan.Article(k.Spec.One),
			strings.Join(recordNeeds(k), ", "))
	}
	t, err := k.Source.Spec.Target(k.Source.Name, path, "")
	if err == nil && t.Instance != in.Spec {
		err = understudy.ErrNotFound
	}
	return k, t, err
}

// vars are the path variables that arguments give, of those there are.
func vars(given map[string]string, known []string) (all understudy.Query, err error) {
	for name, value := range given {
		switch {
		case !slices.Contains(known, name):
			return nil, wrong("name in within", name, known)
		case value == "":
			return nil, invalid("within.%s is empty", name)
		}
		all = append(all, understudy.Param{Name: name, Value: value})
	}
	slices.SortFunc(all, plan.ByName)
	return all, nil
}

// record answers with one record.
func (v *exchange) record(ctx context.Context, a recordArgs, at time.Time) (any, error) {
	k, t, err := v.instance(a)
	if err != nil {
		return nil, err
	}
	if !at.IsZero() && !recorded(k) {
		return nil, invalid("nothing is kept of how %s was", k.Spec.One)
	}
	answer, view, err := v.ask(ctx, t, at)
	if err != nil {
		return nil, err
	}
	rows := view.Rows()
	if len(rows) != 1 {
		return nil, understudy.ErrNotFound
	}
	if err := v.fits(len(rows[0].Raw())); err != nil {
		return nil, err
	}
	out := v.newReadAnswer(k, answer)
	out.ID, out.Link, out.Record = rows[0].ID, v.srv.o.PublicURL+k.Source.Place(t), rows[0].Raw()
	return out, v.audit(ctx, understudy.AuditEntry{Action: understudy.ActionRecord, What: "an agent reads a record", Source: out.Source,
		Kind: out.Kind, IDs: []string{t.ID}, Rows: 1})
}
