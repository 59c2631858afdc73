// Talk: kinds that say who was in contact with whom, read off the spec.

package viewer

import (
	"slices"

	"understudy"
)

// numberWord is the part of an address that begins the pages of numbers; no
// kind may be named so.
const numberWord = "number"

// talk is a kind whose records are contacts between numbers: its main list can
// be asked for a number, and its records have a time.
type talk struct {
	kind *kindPlan
	list *listPlan
	ends []end // in the spec's order of fields: who began it, whom it reached
}

// end is a field that holds a number, and the filter that picks records by it.
type end struct {
	column *column
	filter int
}

// planTalks finds the talks of a source.
func (s *sourcePlan) planTalks() {
	for _, k := range s.kinds {
		if !k.browsable() || k.Clock == "" || k.Own != "" {
			continue
		}
		t := &talk{kind: k, list: k.lists[0]}
		for _, f := range k.Fields {
			i := slices.IndexFunc(t.list.Filters, func(flt *understudy.Filter) bool { return flt.Field == f.Name && flt.Op == "is" })
			if i >= 0 && f.Class == understudy.ClassPhone && f.From == "" {
				t.ends = append(t.ends, end{k.byField[f.Name], i})
			}
		}
		if len(t.ends) > 0 {
			s.talks = append(s.talks, t)
		}
	}
}

// between is the talk's filters for records from one number to another; ok is
// false when it has no two ends.
func (t *talk) between(from, to string) (query understudy.Query, ok bool) {
	if len(t.ends) < 2 {
		return nil, false
	}
	return understudy.Query{
		{Name: t.list.Filters[t.ends[0].filter].Name, Value: from},
		{Name: t.list.Filters[t.ends[1].filter].Name, Value: to},
	}, true
}

// to is the target of the talk's newest page under a query.
func (t *talk) to(query understudy.Query) (*understudy.Target, error) {
	return t.kind.source.Spec.Target(t.kind.source.Name, t.list.newest.Key.Path(), query.String())
}

// talks are those of the source at hand the caller may ask for a number, at
// one end or more.
func (q *visit) talks(s *sourcePlan) []*talk {
	var all []*talk
	for _, t := range s.talks {
		if slices.ContainsFunc(t.ends, func(e end) bool { return q.offers(t.list, e.filter) }) {
			all = append(all, t)
		}
	}
	return all
}

// numberHref is the page of a number, "" when the text is none. A number is
// E.164, or the few digits of a short code.
func (s *sourcePlan) numberHref(text string) string {
	if !isNumber(text) {
		return ""
	}
	return "/" + s.Name + "/" + numberWord + "/" + text
}

// isNumber reports whether a text is a number as records hold them.
func isNumber(text string) bool {
	digits, least := text, 3
	if text != "" && text[0] == '+' {
		digits, least = text[1:], 7
	}
	if len(digits) < least || len(digits) > 15 || digits[0] == '0' {
		return false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return true
}
