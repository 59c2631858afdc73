// Narrow: what a store can be asked of a row rule, so that it reads no more.

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

// What a store is told of a rule beside the rule itself.
const (
	// placeGrace is the maximum error of the time in a record's order key. A page
	// may have shown the record out of clock order.
	placeGrace = 24 * time.Hour
	mostTerms  = 8
	mostValues = 16
)

// narrow tells the store which records it can skip.
func (f *rowFilter) narrow(w *request.LocalQuery, now time.Time) {
	if f.age > 0 {
		w.From = max(w.From, now.Add(-f.age-placeGrace).Unix())
		w.Predicates = append(w.Predicates[:len(w.Predicates):len(w.Predicates)], query.Predicate{From: now.Add(-f.age).Unix()})
	}
	for _, c := range f.where {
		if c.match.Prefix == "" && len(c.match.In) <= mostValues && len(w.Predicates) < mostTerms {
			w.Predicates = append(slices.Clip(w.Predicates), query.Predicate{Field: f.fields[c.field].Name, Any: c.match.In})
		}
	}
	if all := f.numbers(); len(all) == 1 && len(w.Predicates) < mostTerms {
		w.Predicates = append(w.Predicates[:len(w.Predicates):len(w.Predicates)], query.Predicate{Number: all[0]})
	}
}

// numbers are those a rule asks for, when a store finds each in every form in
// which the rule does: whole ones, which begin with no zero.
func (f *rowFilter) numbers() []string {
	if len(f.phones) == 0 || f.own || len(f.nums) > mostValues {
		return nil
	}
	for n := range f.nums {
		if len(n) < 7 || len(n) > 15 || n[0] == '0' || strings.Trim(n, "0123456789") != "" {
			return nil
		}
	}
	return slices.Sorted(maps.Keys(f.nums))
}

// Rule is what a store is asked for a caller that may find only some records of a
// kind; nil: the caller may find all of them. Its Finds is the filter of Only.
func (g *Gate) Rule(c understudy.Caller, source, kind string) *query.RowRule {
	only := g.Only(c, source, kind)
	if only == nil {
		return nil
	}
	r := &query.RowRule{CanFind: only, CanFindID: func(string) bool { return false }}
	f, err := g.rowFilter(c, source, kind)
	if err != nil {
		return r
	}
	now := g.now()
	r.CanFindID = func(id string) bool { return f.held(id, now, 0) }
	w := request.LocalQuery{}
	f.narrow(&w, now)
	r.Predicates, r.From, r.Complete, r.RecordOnly = w.Predicates, w.From, f.told(), f.age == 0 && !f.own && f.isAlone()
	if all := f.numbers(); len(all) > 1 {
		r.Numbers = all
	}
	return r
}

// told reports whether all that a rule says can be asked of a store's indexes. A
// record above it, one of our own numbers and the beginning of a value cannot.
func (f *rowFilter) told() bool {
	s := f.gate.specs[f.source]
	if f.never || len(f.where) > mostTerms-1 || len(f.phones) > 0 && f.numbers() == nil {
		return false
	}
	for _, c := range f.where {
		if c.match.Prefix != "" || len(c.match.In) > mostValues || !s.HasValueIndex(f.kind, f.kind.Field(f.fields[c.field].Name)) {
			return false
		}
	}
	return f.isAlone()
}

// isAlone reports whether no rule for a record above counts.
func (f *rowFilter) isAlone() bool {
	return !slices.ContainsFunc(f.above, func(a ancestor) bool { return a.kind == nil || f.rows[a.kind.Name] != nil })
}
