// Links to what is related to a record: the records it refers to, and the lists filtered by it.

package viewer

import (
	"errors"
	"slices"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// findStoredTarget returns the target of a record whose path cannot be made from its id. It takes the address from a
// stored version of the record. It returns an error if the caller may not find the record or may not see its address.
func (rv *recordView) findStoredTarget(in *plan.Instance, id string) (*spec.Target, error) {
	none := page.NewNotFound("No "+rv.q.Kind.Spec.Singular+" "+understudy.Clip(id)+" is stored here", "Open it from the list.", rv.q.Kind.Href)
	if rv.q.V.Options.History == nil || !rv.q.Rights.Gate.CanFind(rv.q.Rights.Caller, rv.q.Source.Name, rv.q.Kind.Spec.Name, id) {
		return nil, none
	}
	seen, err := rv.q.V.Options.History.ReadHistory(rv.q.Ctx, rv.q.Source.Name, rv.q.Kind.Spec.Name, id, defaultVersions)
	if err != nil && !errors.Is(err, understudy.ErrNotFound) {
		return nil, err
	}
	for _, v := range seen {
		row, err := rv.q.Rights.Gate.ParseShownRow(rv.q.Rights.Caller, rv.q.Source.Name, rv.q.Kind.Spec.Name, v.Body)
		if err != nil || row.Field(in.Spec.Address).State != access.Seen {
			continue // the version is a deletion, its body is not stored, or the role may not see the address
		}
		if t, err := rv.q.Source.Spec.ResolveLink(rv.q.Source.Name, row.Field(in.Spec.Address).Text); err == nil && t.Instance == in.Spec {
			return t, nil
		}
	}
	return nil, none
}

// otherFields returns the fields of a record that are not in the spec. Only the role that may see everything gets
// such fields from the gate.
func (rv *recordView) otherFields(row access.Row) detailGroup {
	g := detailGroup{Title: "Other fields"}
	for _, val := range row.Fields() {
		if val.Field != nil || val.State == access.Hidden || val.State == access.Absent {
			continue
		}
		c := page.Cell{Label: plan.UpperFirst(plan.Spell(val.Name)), Text: val.Text, Wide: len(val.Text) > 60, Prose: true}
		if tags, ok := plan.Tags(val.Text); ok {
			c.DrawTags(tags)
		}
		if val.State == access.Null || val.Text == "" {
			c.Text, c.Tone = "—", "none"
		}
		g.Cells = append(g.Cells, c)
	}
	return g
}

// relatedLinks returns links to the lists that can be filtered by this record, unless the page already shows the
// list. If the record belongs to one of our own numbers, it also returns a link to the number's page.
func (rv *recordView) relatedLinks(row access.Row, lists []*relatedRead) []page.Link {
	var all []page.Link
	own := rv.q.Kind.Spec.OwnNumber
	if v := row.Field(own); own != "" && v.State == access.Seen && len(rv.q.Rights.ContactKinds(rv.q.Source)) > 0 {
		if href := rv.q.Source.NumberHref(v.Text); href != "" {
			all = append(all, page.Link{Href: href, Text: "Everything with " + plan.GroupPhone(v.Text)})
		}
	}
	for _, k := range rv.q.Source.Kinds {
		if !k.IsBrowsable() || slices.ContainsFunc(lists, func(l *relatedRead) bool { return l.list.Kind == k }) {
			continue
		}
		for i, f := range k.PlannedLists[0].Spec.Filters {
			field := k.Spec.Field(f.Field)
			if !rv.canFilterByRecord(k, field, f) || row.ID == "" || !rv.q.Rights.CanFilter(k.PlannedLists[0], i) {
				continue
			}
			all = append(all, page.Link{
				Href: rv.q.Clock.AsOf.AddTo(k.Href + "?" + understudy.Query{{Name: f.Name, Value: row.ID}}.String()),
				Text: plan.UpperFirst(k.Spec.Title) + " whose " + plan.TitleOf(field) + " is this " + rv.q.Kind.Spec.Singular,
			})
		}
	}
	return all
}

// canFilterByRecord reports whether a filter of kind k accepts the id of this record. A filter whose field may link
// to any kind is accepted only if k is not the record's own kind.
func (rv *recordView) canFilterByRecord(k *plan.Kind, field *spec.Field, f *spec.Filter) bool {
	return field != nil && f.Op == "is" && len(rv.q.Kind.Spec.ID) == 1 &&
		(field.Link == rv.q.Kind.Spec.Name || field.Link == spec.AnyKind && k != rv.q.Kind)
}
