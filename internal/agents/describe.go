// This file describes the fields, lists and filters of a kind, from the spec and as far as the role sees them.

package agents

import (
	"context"

	"understudy/internal/access"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// describeAnswer is the description of a kind.
type describeAnswer struct {
	Source string      `json:"source"`
	Kind   string      `json:"kind"`
	Title  string      `json:"title"`
	ID     []string    `json:"id_fields,omitempty" jsonschema:"the fields that an id is made of, joined by ~"`
	Clock  string      `json:"clock,omitempty" jsonschema:"the field that orders records in time"`
	Within []string    `json:"within,omitempty" jsonschema:"the values that get needs in within"`
	Fields []fieldView `json:"fields" jsonschema:"the fields that your role sees"`
	Lists  []listView  `json:"lists,omitempty"`
}

// fieldView is the description of a field.
type fieldView struct {
	Name  string `json:"name"`
	Title string `json:"title,omitempty"`
	Type  string `json:"type"`
	Class string `json:"class,omitempty"`
	Shown string `json:"shown" jsonschema:"see, or how the field is masked; only visible fields can be searched"`
	Link  string `json:"link,omitempty" jsonschema:"the kind of record whose id the field contains"`
}

// listView is the description of a list.
type listView struct {
	List    string            `json:"list"`
	Title   string            `json:"title"`
	Within  []string          `json:"within,omitempty" jsonschema:"the values that within must contain"`
	Filters map[string]string `json:"filters,omitempty" jsonschema:"the effect of each filter, by name"`
}

type describeArgs struct {
	Source string `json:"source"`
	Kind   string `json:"kind"`
}

// addDescribe adds the tool that describes a kind.
func (b *builder) addDescribe() {
	add[describeAnswer](b, "describe", "Describe a kind",
		"Returns the fields, lists and filters of a kind of record, as far as your role sees them.",
		isAnyKind, b.addKind(&properties{}, isAnyKind), func(_ context.Context, v *exchange, a describeArgs) (any, error) {
			k, err := v.offer.findKind(a.Source, a.Kind, isAnyKind)
			if err != nil {
				return nil, err
			}
			return v.describe(k), nil
		})
}

// describe returns the description of a kind. It contains no data of records.
func (v *exchange) describe(k *plan.Kind) *describeAnswer {
	out := &describeAnswer{Source: k.Source.Name, Kind: k.Spec.Name, Title: k.Spec.Title, Within: recordNeeds(k), Fields: []fieldView{}}
	level := func(name string) access.Level { return v.srv.o.Gate.Level(v.caller, k.Source.Name, k.Spec.Name, name) }
	for _, f := range k.Spec.Fields {
		if l := level(f.Name); l != access.Hide && f.Class != spec.ClassSecret {
			out.Fields = append(out.Fields, fieldView{f.Name, f.Title, f.Type, f.Class, l.String(), f.Link})
		}
	}
	if v.srv.o.Gate.CanSeeIDs(v.caller, k.Source.Name, k.Spec) {
		out.ID = k.Spec.ID
	}
	if k.Spec.Clock != "" && level(k.Spec.Clock) != access.Hide {
		out.Clock = k.Spec.Clock
	}
	for _, l := range k.PlannedLists {
		one := listView{List: l.Slug, Title: l.TabTitle, Within: l.Needs, Filters: map[string]string{}}
		for i, f := range l.Spec.Filters {
			if v.srv.o.Gate.CheckRead(v.caller, l.Probes[i]) == nil {
				one.Filters[keyOf(f)] = filterMeaning(f)
			}
		}
		out.Lists = append(out.Lists, one)
	}
	return out
}
