// Near a record: the records it names, and the lists about it.

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

// addressed is the record of an id that its path does not have: what is held of the record tells its address. To a
// caller that may not find it, or does not see addresses, none is held.
func (rv *record) addressed(in *plan.Instance, id string) (*spec.Target, error) {
	none := page.NotFound("No "+rv.q.Kind.Spec.One+" named "+understudy.Clip(id)+" is held", "Pick it from the list.", rv.q.Kind.Href)
	if rv.q.V.Options.History == nil || !rv.q.Rights.Gate.Finds(rv.q.Rights.Caller, rv.q.Source.Name, rv.q.Kind.Spec.Name, id) {
		return nil, none
	}
	seen, err := rv.q.V.Options.History.ReadHistory(rv.q.Ctx, rv.q.Source.Name, rv.q.Kind.Spec.Name, id, fewVersions)
	if err != nil && !errors.Is(err, understudy.ErrNotFound) {
		return nil, err
	}
	for _, v := range seen {
		row, err := rv.q.Rights.Gate.Seen(rv.q.Rights.Caller, rv.q.Source.Name, rv.q.Kind.Spec.Name, v.Body)
		if err != nil || row.Field(in.Spec.Address).State != access.Seen {
			continue // it was gone, its body is not kept, or the role does not see where it is
		}
		if t, err := rv.q.Source.Spec.Follow(rv.q.Source.Name, row.Field(in.Spec.Address).Text); err == nil && t.Instance == in.Spec {
			return t, nil
		}
	}
	return nil, none
}

// others are the fields the spec does not name. The gate shows them to the role
// that sees everything, and to no other.
func (rv *record) others(row access.Row) detailGroup {
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

// related are the lists picked by this record: filters that link to its kind,
// those of the kinds shown left out; and of one of our own numbers its page.
func (rv *record) related(row access.Row, lists []*askedList) []page.Link {
	var all []page.Link
	own := rv.q.Kind.Spec.Own
	if v := row.Field(own); own != "" && v.State == access.Seen && len(rv.q.Rights.ContactKinds(rv.q.Source)) > 0 {
		if href := rv.q.Source.NumberHref(v.Text); href != "" {
			all = append(all, page.Link{Href: href, Text: "Everything with " + plan.GroupPhone(v.Text)})
		}
	}
	for _, k := range rv.q.Source.Kinds {
		if !k.Browsable() || slices.ContainsFunc(lists, func(l *askedList) bool { return l.list.Kind == k }) {
			continue
		}
		for i, f := range k.PlannedLists[0].Spec.Filters {
			field := k.Spec.Field(f.Field)
			if !rv.picks(k, field, f) || row.ID == "" || !rv.q.Rights.Offers(k.PlannedLists[0], i) {
				continue
			}
			all = append(all, page.Link{
				Href: rv.q.Clock.AsOf.Keep(k.Href + "?" + understudy.Query{{Name: f.Name, Value: row.ID}}.String()),
				Text: plan.UpperFirst(k.Spec.Title) + " whose " + plan.TitleOf(field) + " is this " + rv.q.Kind.Spec.One,
			})
		}
	}
	return all
}

// picks reports whether a filter of a kind's list takes ids of this kind. What links to any kind seldom means its own.
func (rv *record) picks(k *plan.Kind, field *spec.Field, f *spec.Filter) bool {
	return field != nil && f.Op == "is" && len(rv.q.Kind.Spec.ID) == 1 &&
		(field.Link == rv.q.Kind.Spec.Name || field.Link == spec.AnyKind && k != rv.q.Kind)
}
