// The address of a list query: its canonical form.

package list

import (
	"slices"

	"understudy"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// address is the viewer's address of a query with another position: query
// holds upstream's parameters, back the newer pages.
func (ask *listQuery) address(suffix string, query understudy.Query, back []string) string {
	own := append(ask.arrangement.params(), ask.asOf.Param()...)
	for _, b := range back[max(0, len(back)-page.MaxBack):] {
		own = append(own, understudy.Param{Name: page.OwnBack, Value: b})
	}
	return ask.list.Address(suffix, slices.Concat(ask.vars, query), own)
}

// sibling is the filter of a list on the same field with another meaning.
func sibling(l *plan.List, f *spec.Filter, op string) *spec.Filter {
	for _, other := range l.Filters {
		if other.Op == op && other.Field == f.Field && other.Field != "" {
			return other
		}
	}
	return nil
}
