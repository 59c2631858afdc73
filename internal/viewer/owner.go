// The record that upstream has of a phone number, if the number is one of our own.

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

// ownNumberLookup searches a kind that lists our own phone numbers for the record of one number.
type ownNumberLookup struct {
	Future *page.Future
	kind   *plan.Kind
	number string
	newest page.Reading
	target *spec.Target
	record page.Reading // the answer for target, which may contain the record of the number
}

// lookUpOwnNumber starts to look for the record of the number. It reads the newest page of our own numbers. If the
// number is not on it and there are more pages, it requests the list filtered by the number.
func lookUpOwnNumber(q *page.Exchange, k *plan.Kind, number string) *ownNumberLookup {
	o := &ownNumberLookup{kind: k, number: number, target: k.PlannedLists[0].Newest}
	o.Future = q.Tasks.Begin("our own numbers", q.V.PartTimeout, func(ctx context.Context) error {
		o.newest = q.Read(ctx, o.target)
		o.record = o.newest
		if len(o.rows()) == 0 && o.newest.HasMore() {
			if t := findOwnNumberTarget(q, k, number); t != nil {
				o.target, o.record = t, q.Read(ctx, t)
			}
		}
		return cmp.Or(o.newest.Err, o.record.Err)
	})
	return o
}

// drawOwnNumber draws the record of the number. It returns nil if the number is not one of ours.
func (v numberView) drawOwnNumber(o *ownNumberLookup) *relatedList {
	rows := o.rows()
	if len(rows) == 0 {
		return nil
	}
	columns := slices.DeleteFunc(v.q.Rights.ColumnsOf(o.kind), func(c *plan.Column) bool { return c.Spec.Name == o.kind.Spec.OwnNumber })
	l := v.drawRelatedList(o.target, o.record, "One of our own numbers", v.q.CellContext(o.kind, nil, nil), columns, rows)
	l.Shown, l.Href = "", v.q.Source.Place(o.kind.PlannedLists[0].Newest)
	return l
}

// rows returns the rows of the answer that have the number. There are none if it is not one of ours.
func (o *ownNumberLookup) rows() []access.Row {
	return slices.DeleteFunc(o.record.Rows(), func(row access.Row) bool {
		v := row.Field(o.kind.Spec.OwnNumber)
		return v.State != access.Seen || v.Text != o.number
	})
}

// findOwnNumberTarget returns the list of our own numbers, filtered by one number. It returns nil if the list has no
// such filter.
func findOwnNumberTarget(q *page.Exchange, k *plan.Kind, number string) *spec.Target {
	for i, f := range k.PlannedLists[0].Spec.Filters {
		if f.Field == k.Spec.OwnNumber && (f.Op == "is" || f.Op == "digits") && q.Rights.CanFilter(k.PlannedLists[0], i) {
			t, err := q.Source.Spec.Resolve(q.Source.Name, k.PlannedLists[0].Newest.Key.Path(),
				understudy.Query{{Name: f.Name, Value: number}}.String())
			if err == nil {
				return t
			}
		}
	}
	return nil
}
