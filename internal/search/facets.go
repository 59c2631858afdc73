// Facets: how many matches there are, by kind, choice and time.

package search

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"understudy/internal/query"
	"understudy/internal/search/lang"
)

const (
	maxFacets   = 12
	maxListed   = 20   // values of a facet
	maxCounted  = 1000 // values of a facet that are counted
	maxFacetted = 100  // bytes of a value that is counted
	fewLooked   = 30   // matches that are counted even when time is over
)

// countNow fills in total and facets. It counts matches for as long as a count may
// take; a patient one waits until all are counted, if it need not read too many records. Then the
// store counts the rest, where it can count without reading records.
func (v *execution) countNow(ctx context.Context, patient bool) error {
	now, limits := v.s.o.Now(), v.s.o.Limits
	end, count := now.Add(limits.Facets), limits.Count
	// On a busy machine the first match may take longer; it is counted all the same.
	most := max(limits.Count, limits.Facets/2)
	if patient {
		count, most = v.patience(), v.patience()
	}
	late, looked := now.Add(count), 0
	looking, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if v.meant != nil {
		meant := v.meant
		v.meant = nil // it is one of those counted
		defer func() { v.meant = meant }()
	}
	up := v.order.up
	v.order.up = false
	defer func() { v.order.up = up }()
	var t tally
	broken := false
	err := v.each(looking, 0, func(_ found, c *lang.Candidate) bool {
		looked++
		broken = t.full || t.total >= fewLooked && v.s.o.Now().After(late) || patient && looked > mostRecounted
		if broken || c == nil {
			return !broken
		}
		t.add(c)
		return true
	})
	broken = broken || err != nil || looking.Err() != nil
	if broken && ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	v.out.Total, v.out.Facets = &query.Count{N: t.total, AtLeast: broken}, t.facets(broken)
	if !broken {
		return nil
	}
	if err := v.countInStore(ctx, end); err != nil {
		return err
	}
	v.settle()
	return nil
}

// settle makes partial counts consistent. The total is at least the number of hits. A
// record has at most one value of a field, so the values of a field are at most as
// many as the records. Records that are left over may have values that are not listed.
func (v *execution) settle() {
	total := v.out.Total
	whole := !v.request.CountOnly && v.request.Cursor == "" && v.out.Next == "" && !v.out.Partial && !v.out.More
	if n := int64(len(v.out.Hits)); whole && n >= total.N {
		*total = query.Count{N: n}
	}
	sums := make([]int64, len(v.out.Facets))
	for i := range v.out.Facets {
		f := &v.out.Facets[i]
		for _, value := range f.Values {
			sums[i] += value.Count.N
			f.More = f.More || value.Count.AtLeast
		}
		if total.AtLeast {
			total.N = max(total.N, sums[i])
		}
	}
	if f := &v.out.Facets[0]; len(f.Values) == len(v.q.Views) && !f.More { // every kind, each to its end
		*total = query.Count{N: sums[0]}
	}
	for i := range v.out.Facets {
		f := &v.out.Facets[i]
		f.More = f.More || total.AtLeast || sums[i] < total.N
	}
}

func keys[V any](m map[string]V) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// sortValues puts the newest time first, of others the most frequent.
func sortValues(f *query.SearchFacet) {
	times := f.Name == "day" || f.Name == "month"
	slices.SortFunc(f.Values, func(a, b query.SearchValue) int {
		if times {
			return strings.Compare(b.Value, a.Value)
		}
		return cmp.Or(cmp.Compare(b.Count.N, a.Count.N), strings.Compare(a.Value, b.Value))
	})
}

// term is the condition that leaves one value of a facet.
func term(name, text string) string {
	n := &lang.Node{Op: lang.OpField, Name: name, Rel: lang.RelSame, Values: []lang.Value{{Text: text}}}
	switch name {
	case lang.KindName:
		n.Rel = lang.RelIs
	case "day", "month":
		n.Name, n.Rel = lang.DateName, lang.RelIs
	}
	return n.String()
}

// countInStore replaces partial counts by those of the store, when the store can count
// exactly what the caller sees.
func (v *execution) countInStore(ctx context.Context, end time.Time) error {
	plan := v.q.Plan()
	if len(plan) != 1 || !v.countable() {
		return nil
	}
	one := func(q query.RecordQuery, at *query.Count) error {
		left := end.Sub(v.s.o.Now())
		if left <= 0 {
			return nil
		}
		n, err := v.s.o.Store.Count(ctx, q, mostCounted, v.s.o.Now().Add(min(left, v.s.o.Limits.Count)))
		if err != nil {
			if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
				return nil
			}
			return err
		}
		if n.N >= at.N {
			*at = n
		}
		return nil
	}
	if err := one(plan[0].Query, v.out.Total); err != nil {
		return err
	}
	for i := range v.out.Facets {
		f := &v.out.Facets[i]
		for j := range f.Values {
			q := plan[0].Query
			switch f.Name {
			case "day", "month":
				continue
			case lang.KindName:
				q.Kinds = []string{f.Values[j].Value}
			default:
				q.Predicates = append(slices.Clone(q.Predicates), query.Predicate{Field: f.Name, Any: []string{f.Values[j].Value}})
			}
			if err := one(q, &f.Values[j].Count); err != nil {
				return err
			}
		}
		sortValues(f)
	}
	return nil
}

// mostCounted bounds a count.
const mostCounted = 1_000_000_000

// countable says whether what the store finds is just what the query means to
// this caller: nothing is hidden, and every condition is one the store decides.
func (v *execution) countable() bool {
	if !seesAll(v.q.Views) {
		return false
	}
	for _, p := range v.q.Cond.Parts() {
		switch {
		case p.Words():
			for _, l := range p.Wanted(nil) {
				if l.Words.Loose() {
					return false
				}
			}
		case p.Predicate == nil:
			return false
		case lang.IsKind(p.Predicate.Node.Name):
		case p.Predicate.Term == nil || len(p.Predicate.Term.Any) == 0 || p.Predicate.StorePredicate(v.q.Views) == nil:
			return false
		}
	}
	return true
}
