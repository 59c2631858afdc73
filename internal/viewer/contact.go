// Contact: kinds that say who was in contact with whom, read off the spec.

package viewer

import (
	"slices"

	"understudy"
)

// numberWord is the part of an address that begins the pages of numbers; no
// kind may be named so.
const numberWord = "number"

// Contact is a kind whose records are contacts between two numbers: its main list
// can be asked for either, and its records have a time.
type Contact struct {
	kind *Kind
	list *List
	ends [2]End // in the spec's order of fields: who began it, whom it reached
}

// End is a field that holds a number, and the filter that picks records by it.
type End struct {
	column *Column
	filter int
}

// planContactKinds finds the kinds of contact of a source.
func (s *Source) planContactKinds() {
	for _, k := range s.kinds {
		if !k.browsable() || k.Clock == "" || k.Own != "" {
			continue
		}
		t := &Contact{kind: k, list: k.PlannedLists[0]}
		n := 0
		for _, f := range k.Fields {
			i := slices.IndexFunc(t.list.Filters, func(flt *understudy.Filter) bool { return flt.Field == f.Name && flt.Op == "is" })
			if i >= 0 && f.Class == understudy.ClassPhone && f.From == "" && n < len(t.ends) {
				t.ends[n] = End{k.byField[f.Name], i}
				n++
			}
		}
		if n == len(t.ends) {
			s.Contacts = append(s.Contacts, t)
		}
	}
}

// between is the kind's filters for records from one number to another.
func (t *Contact) between(from, to string) understudy.Query {
	return understudy.Query{
		{Name: t.list.Filters[t.ends[0].filter].Name, Value: from},
		{Name: t.list.Filters[t.ends[1].filter].Name, Value: to},
	}
}

// to is the target of the kind's newest page under a query.
func (t *Contact) Target(query understudy.Query) (*understudy.Target, error) {
	return t.kind.source.Spec.Target(t.kind.source.Name, t.list.newest.Key.Path(), query.String())
}
