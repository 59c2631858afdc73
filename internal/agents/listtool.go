// This file reads the records of a list, from the beginning or from a cursor.

package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// listTarget returns the list and the target of a request, and how many rows to skip.
func (v *exchange) listTarget(a listArgs, at time.Time) (l *plan.List, t *spec.Target, skip int, err error) {
	k, err := v.offer.findKind(a.Source, a.Kind, hasLists)
	if err != nil {
		return nil, nil, 0, err
	}
	if a.Cursor != "" {
		return v.followCursor(k, a, at)
	}
	var params understudy.Query
	for name, value := range a.Within {
		params = append(params, understudy.Param{Name: name, Value: value})
	}
	if l = k.FindList(a.List, params); l == nil {
		return nil, nil, 0, newUnknown("list of "+k.Spec.Name, a.List, slugs(k))
	}
	within, err := readVars(a.Within, l.Needs)
	switch {
	case err != nil:
		return nil, nil, 0, err
	case len(within) < len(l.Needs):
		return nil, nil, 0, newInvalid("%s belong to another record; name that record in within: %s", k.Spec.Name, strings.Join(l.Needs, ", "))
	}
	query, err := v.readFilters(l, a.Filters)
	if err != nil {
		return nil, nil, 0, err
	}
	path, ok := l.Spec.Template().FillEscaped(func(name string) (string, bool) {
		if given, ok := within.Get(name); ok {
			return given, true
		}
		return k.Source.Config.PathVar(name)
	})
	if !ok {
		return nil, nil, 0, newInvalid("this list cannot be requested")
	}
	t, err = k.Source.Spec.Resolve(k.Source.Name, path, query.String())
	if err == nil && t.List != l.Spec {
		err = newInvalid("the value in within is not an id")
	}
	return l, t, 0, err
}

// followCursor returns the list, the target and the number of rows to skip that a cursor contains.
func (v *exchange) followCursor(k *plan.Kind, a listArgs, at time.Time) (*plan.List, *spec.Target, int, error) {
	p, err := v.unseal(k.Source.Name, a.Cursor)
	if err != nil {
		return nil, nil, 0, err
	}
	t, err := k.Source.Spec.ResolveLink(k.Source.Name, p.URI)
	if err != nil {
		return nil, nil, 0, err
	}
	for _, l := range k.PlannedLists {
		if l.Spec == t.List && t.Kind == k.Spec && p.At.Equal(at) {
			return l, t, p.Skip, nil
		}
	}
	return nil, nil, 0, newInvalid("this cursor is not of this list and role; start without a cursor")
}

// readFilters returns the filter conditions for a list, in the order of the list's filters.
func (v *exchange) readFilters(l *plan.List, given map[string]string) (understudy.Query, error) {
	var all understudy.Query
	var known []string
	for i, f := range l.Spec.Filters {
		value, ok := given[keyOf(f)]
		if v.srv.o.Gate.CheckRead(v.caller, l.Probes[i]) == nil {
			known = append(known, keyOf(f))
		} else if ok {
			return nil, fmt.Errorf("agents: %w: role %s may not use the filter %s", understudy.ErrForbidden, v.caller.Role(), keyOf(f))
		}
		if ok {
			all = append(all, understudy.Param{Name: f.Name, Value: value})
		}
	}
	for name := range given {
		if !slices.ContainsFunc(l.Spec.Filters, func(f *spec.Filter) bool { return keyOf(f) == name }) {
			return nil, newUnknown("filter of "+l.Kind.Spec.Name, name, known)
		}
	}
	return all, nil
}

func slugs(k *plan.Kind) []string {
	var all []string
	for _, l := range k.PlannedLists {
		all = append(all, l.Slug)
	}
	return all
}

// list returns records of a list.
func (v *exchange) list(ctx context.Context, a listArgs, at time.Time) (any, error) {
	limit, err := v.limit(a.Limit)
	if err != nil {
		return nil, err
	}
	l, t, skip, err := v.listTarget(a, at)
	if err != nil {
		return nil, err
	}
	answer, view, err := v.ask(ctx, t, at)
	if err != nil {
		return nil, err
	}
	out := v.newReadAnswer(l.Kind, answer)
	out.List, out.Records = l.Slug, []json.RawMessage{}
	rows := view.Rows()
	rows = rows[min(max(skip, 0), len(rows)):]
	wanted := rows[:min(limit, len(rows))]
	fit := v.fittingRows(len(wanted), func(i int) int { return len(wanted[i].JSON()) })
	if fit < len(wanted) {
		out.Cut = fmt.Sprintf("%d of %d: more would make the answer too large; continue with next_cursor", fit, len(wanted))
	}
	var ids []string
	for _, r := range wanted[:fit] {
		if err := v.checkSize(len(r.JSON())); err != nil {
			return nil, err
		}
		out.Records, ids = append(out.Records, r.JSON()), append(ids, r.ID)
	}
	switch next := answer.Page.Next; {
	case fit < len(rows):
		out.Next, err = v.seal(out.Source, position{URI: t.Key.URI, Skip: skip + fit, At: at})
	case !next.IsZero():
		out.Next, err = v.seal(out.Source, position{URI: next.URI, At: at})
	}
	if err != nil {
		return nil, err
	}
	var values []string
	for _, p := range t.Query {
		if l.Spec.Filter(p.Name) != nil {
			values = append(values, p.Value)
		}
	}
	values = append(values, t.ParentIDs()...)
	action := understudy.ListAction(t.First && skip == 0 && at.IsZero(), fit, values)
	return out, v.recordAction(ctx, understudy.AuditEntry{Action: action, What: "an agent lists records", Source: out.Source,
		Kind: out.Kind, IDs: ids, Rows: fit, Values: values})
}
