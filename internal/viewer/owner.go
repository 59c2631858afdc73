// Owner: our own record of a number, where it is one of ours.

package viewer

import (
	"cmp"
	"context"
	"slices"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// owner is a kind that lists our own numbers, read for our own record of one.
type owner struct {
	Future *page.Future
	kind   *plan.Kind
	number string
	newest page.Reading
	target *spec.Target
	record page.Reading // of the target
}

// readOwner looks for our own record of the number: on the newest page, which marks
// our numbers, too. When that does not have it and there are older ones, it is
// asked for.
func readOwner(q *page.Exchange, k *plan.Kind, number string) *owner {
	o := &owner{kind: k, number: number, target: k.PlannedLists[0].Newest}
	o.Future = q.Tasks.Begin("our own numbers", q.V.Glance, func(ctx context.Context) error {
		o.newest = q.Read(ctx, o.target)
		o.record = o.newest
		if len(o.rows()) == 0 && o.newest.More() {
			if t := findOwnTarget(q, k, number); t != nil {
				o.target, o.record = t, q.Read(ctx, t)
			}
		}
		return cmp.Or(o.newest.Err, o.record.Err)
	})
	return o
}

// drawOwner draws our own record of the number; nil when it is none of ours.
func (v numberView) drawOwner(o *owner) *relatedList {
	rows := o.rows()
	if len(rows) == 0 {
		return nil
	}
	columns := slices.DeleteFunc(v.q.Rights.ColumnsOf(o.kind), func(c *plan.Column) bool { return c.Spec.Name == o.kind.Spec.Own })
	l := v.glimpseOf(o.target, o.record, "One of our own numbers", v.q.CellContext(o.kind, nil, nil), columns, rows)
	l.Shown, l.Href = "", v.q.Source.Place(o.kind.PlannedLists[0].Newest)
	return l
}

// rows are those of our own record of the number.
func (o *owner) rows() []access.Row {
	return slices.DeleteFunc(o.record.Rows(), func(row access.Row) bool {
		v := row.Field(o.kind.Spec.Own)
		return v.State != access.Seen || v.Text != o.number
	})
}

// findOwnTarget asks for our own record of a number by a filter, nil when the list
// has none for it.
func findOwnTarget(q *page.Exchange, k *plan.Kind, number string) *spec.Target {
	for i, f := range k.PlannedLists[0].Spec.Filters {
		if f.Field == k.Spec.Own && (f.Op == "is" || f.Op == "digits") && q.Rights.Offers(k.PlannedLists[0], i) {
			t, err := q.Source.Spec.Target(q.Source.Name, k.PlannedLists[0].Newest.Key.Path(),
				understudy.Query{{Name: f.Name, Value: number}}.String())
			if err == nil {
				return t
			}
		}
	}
	return nil
}
