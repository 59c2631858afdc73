// Contacts: records such as calls and messages, which connect two phone numbers.

package plan

import (
	"slices"

	"understudy"
	"understudy/spec"
)

// NumberWord is the part of a path that begins the pages about phone numbers. No kind may have this name.
const NumberWord = "number"

// Contact is a kind whose records connect two phone numbers. Its main list can be filtered by either number, and its
// records have a time.
type Contact struct {
	Kind *Kind
	List *List
	Ends [2]End // the two fields in the order of the spec: first the caller or sender, then the receiver
}

// End is a field with one of the two phone numbers, and the filter for this field.
type End struct {
	Column *Column
	Filter int
}

// planContactKinds finds the kinds of a source whose records connect two phone numbers.
func (s *Source) planContactKinds() {
	for _, k := range s.Kinds {
		if !k.IsBrowsable() || k.Spec.Clock == "" || k.Spec.OwnNumber != "" {
			continue
		}
		t := &Contact{Kind: k, List: k.PlannedLists[0]}
		n := 0
		for _, f := range k.Spec.Fields {
			i := slices.IndexFunc(t.List.Spec.Filters, func(flt *spec.Filter) bool { return flt.Field == f.Name && flt.Op == "is" })
			if i >= 0 && f.Class == spec.ClassPhone && f.DerivedFrom == "" && n < len(t.Ends) {
				t.Ends[n] = End{k.ByField[f.Name], i}
				n++
			}
		}
		if n == len(t.Ends) {
			s.Contacts = append(s.Contacts, t)
		}
	}
}

// NumberFilters returns the filters that select the records from one phone number to another.
func (t *Contact) NumberFilters(from, to string) understudy.Query {
	return understudy.Query{
		{Name: t.List.Spec.Filters[t.Ends[0].Filter].Name, Value: from},
		{Name: t.List.Spec.Filters[t.Ends[1].Filter].Name, Value: to},
	}
}

// MakeTarget returns the target of the newest page of the kind's main list with a query.
func (t *Contact) MakeTarget(query understudy.Query) (*spec.Target, error) {
	return t.Kind.Source.Spec.Resolve(t.Kind.Source.Name, t.List.Newest.Key.Path(), query.String())
}
