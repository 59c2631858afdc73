// Contact: kinds that say who was in contact with whom, read off the spec.

package plan

import (
	"slices"

	"understudy"
	"understudy/spec"
)

// numberWord is the part of an address that begins the pages of numbers; no
// kind may be named so.
const NumberWord = "number"

// Contact is a kind whose records are contacts between two numbers: its main list
// can be asked for either, and its records have a time.
type Contact struct {
	Kind *Kind
	List *List
	Ends [2]End // in the spec's order of fields: who began it, whom it reached
}

// End is a field that holds a number, and the filter that picks records by it.
type End struct {
	Column *Column
	Filter int
}

// planContactKinds finds the kinds of contact of a source.
func (s *Source) planContactKinds() {
	for _, k := range s.Kinds {
		if !k.Browsable() || k.Spec.Clock == "" || k.Spec.Own != "" {
			continue
		}
		t := &Contact{Kind: k, List: k.PlannedLists[0]}
		n := 0
		for _, f := range k.Spec.Fields {
			i := slices.IndexFunc(t.List.Spec.Filters, func(flt *spec.Filter) bool { return flt.Field == f.Name && flt.Op == "is" })
			if i >= 0 && f.Class == spec.ClassPhone && f.From == "" && n < len(t.Ends) {
				t.Ends[n] = End{k.ByField[f.Name], i}
				n++
			}
		}
		if n == len(t.Ends) {
			s.Contacts = append(s.Contacts, t)
		}
	}
}

// Between is the kind's filters for records from one number to another.
func (t *Contact) Between(from, to string) understudy.Query {
	return understudy.Query{
		{Name: t.List.Spec.Filters[t.Ends[0].Filter].Name, Value: from},
		{Name: t.List.Spec.Filters[t.Ends[1].Filter].Name, Value: to},
	}
}

// Target is the target of the kind's newest page under a query.
func (t *Contact) Target(query understudy.Query) (*spec.Target, error) {
	return t.Kind.Source.Spec.Target(t.Kind.Source.Name, t.List.Newest.Key.Path(), query.String())
}
