// This file passes a part of a row rule to the store, which checks it with its indexes and so reads fewer records.

package access

import (
	"maps"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/request"
)

// The limits of a query to a store.
const (
	// maxOrderError is the maximum error of the time in a record's order key, because a page may have shown the
	// record out of clock order.
	maxOrderError = 24 * time.Hour
	maxTerms      = 8
	maxValues     = 16
)

// narrow adds conditions to a query, so that the store can skip records.
func (f *rowFilter) narrow(w *request.LocalQuery, now time.Time) {
	if f.age > 0 {
		w.From = max(w.From, now.Add(-f.age-maxOrderError).Unix())
		w.Predicates = append(w.Predicates[:len(w.Predicates):len(w.Predicates)], query.Predicate{From: now.Add(-f.age).Unix()})
	}
	for _, c := range f.where {
		if c.match.Prefix == "" && len(c.match.In) <= maxValues && len(w.Predicates) < maxTerms {
			w.Predicates = append(slices.Clip(w.Predicates), query.Predicate{Field: f.fields[c.field].Name, Any: c.match.In})
		}
	}
	if all := f.indexedNumbers(); len(all) == 1 && len(w.Predicates) < maxTerms {
		w.Predicates = append(w.Predicates[:len(w.Predicates):len(w.Predicates)], query.Predicate{Number: all[0]})
	}
}

// indexedNumbers returns the phone numbers that a rule requires, if they are complete numbers that do not begin with
// zero. The store finds such a number in every form that the rule accepts. Otherwise indexedNumbers returns nil.
func (f *rowFilter) indexedNumbers() []string {
	if len(f.phones) == 0 || f.ownNumbers || len(f.wanted) > maxValues {
		return nil
	}
	for n := range f.wanted {
		if len(n) < 7 || len(n) > 15 || n[0] == '0' || strings.Trim(n, "0123456789") != "" {
			return nil
		}
	}
	return slices.Sorted(maps.Keys(f.wanted))
}

// Rule returns the query for a caller that may find only some records of a kind, or nil if it may find all of
// them. The field Finds is the filter of RecordFilter.
func (g *Gate) Rule(c understudy.Caller, source, kind string) *query.RowRule {
	only := g.RecordFilter(c, source, kind)
	if only == nil {
		return nil
	}
	r := &query.RowRule{CanFind: only, CanFindID: func(string) bool { return false }}
	f, err := g.findRowFilter(c, source, kind)
	if err != nil {
		return r
	}
	now := g.now()
	r.CanFindID = func(id string) bool { return f.canFindID(id, now, 0) }
	w := request.LocalQuery{}
	f.narrow(&w, now)
	r.Predicates, r.From, r.Complete, r.RecordOnly = w.Predicates, w.From, f.isIndexed(), f.age == 0 && !f.ownNumbers && f.hasNoParentRules()
	if all := f.indexedNumbers(); len(all) > 1 {
		r.Numbers = all
	}
	return r
}

// isIndexed reports whether a store's indexes can check the whole rule. They cannot check a parent record, our own
// numbers, or the beginning of a value.
func (f *rowFilter) isIndexed() bool {
	s := f.gate.specs[f.source]
	if f.findsNone || len(f.where) > maxTerms-1 || len(f.phones) > 0 && f.indexedNumbers() == nil {
		return false
	}
	for _, c := range f.where {
		if c.match.Prefix != "" || len(c.match.In) > maxValues || !s.HasValueIndex(f.kind, f.kind.Field(f.fields[c.field].Name)) {
			return false
		}
	}
	return f.hasNoParentRules()
}

// hasNoParentRules reports whether no rule applies to a parent record.
func (f *rowFilter) hasNoParentRules() bool {
	return !slices.ContainsFunc(f.parents, func(a ancestor) bool { return a.kind == nil || f.rows[a.kind.Name] != nil })
}
