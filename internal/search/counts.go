// Counts: how many matches there are, by kind, choice and time.

package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/search/lang"
)

const (
	maxCounts = 500 // that are kept while they are small
	fewLooked = 30  // matches that are counted even when time is over

	ruleAge = time.Minute // of what is kept under a row rule that looks at more than the record, and of sums that depend on the time
	timeAge = time.Second // of counts of a search that depends on the time of day
)

// count fills in total and facets.
func (v *execution) count(ctx context.Context) error {
	n, err := newCount(v.s, v.c, v.request, v.q).count(ctx)
	if err != nil {
		return err
	}
	total := n.total
	v.out.Total, v.out.Facets = &total, slices.Clone(n.facets)
	for i := range v.out.Facets {
		v.out.Facets[i].Values = slices.Clone(v.out.Facets[i].Values)
	}
	if n.broken {
		v.settle() // with the hits of this search
	}
	return nil
}

// count counts the matches, from what is kept of them if that can be brought up to date in time. What depends on the time of
// day is kept only for those who ask for the count alone: counting it behind every search would cost more than it saves.
func (v *adding) count(ctx context.Context) (*answer, error) {
	if v.q.Relative && !v.patient {
		return v.countNow(ctx)
	}
	// What is asked for the count alone can wait longer: a page that shows it is sent before.
	wait := v.s.o.Limits.Facets
	if v.patient {
		wait = v.s.o.Limits.Time / 2
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	v.enough = limited.Done()
	n, err := v.answer(ctx)
	if errors.Is(err, understudy.ErrClosed) {
		return v.countNow(ctx)
	}
	return n, err
}

// newCount returns a count that has not begun.
func newCount(s *Searcher, c understudy.Caller, r *query.SearchRequest, q *lang.BoundQuery) *adding {
	v := &adding{s: s, c: c, q: q, memory: s.counts, patient: r.CountOnly}
	v.key = fmt.Sprintf("%q %q %q %q %q %q %#v %d", c.Role(), c.Source, r.Source, r.Kinds, r.Text, r.Number, r.Where, s.written(q))
	for _, s := range q.Views {
		if q.Cond.Possible(s) {
			v.views = append(v.views, s)
		}
		if s.Rule != nil && !s.Rule.RecordOnly {
			v.maxAge = ruleAge
		}
	}
	if q.Relative {
		v.maxAge = timeAge
	}
	return v
}

// renderCount makes the answer of the counts that are there or, while they are not complete, counts now.
func (v *adding) renderCount(ctx context.Context) (*answer, error) {
	all := newFacets()
	ready, size := !v.more && !v.k.short, int64(0)
	versions := v.eachPart(func(p *part) {
		if p == nil || !p.watch.Ready {
			ready = false
		}
		if p != nil {
			all.add(p.count)
			size += p.count.size()
			p.count.unasked = 0
		}
	})
	switch {
	case ready:
		v.memory.resize(v.key, v.k, size)
		v.k.result = all.answer(false)
	case all.total >= fewLooked: // reading goes on
		return all.answer(true), nil
	case v.k.result == nil:
		n, err := v.countNow(ctx)
		if err != nil {
			return nil, err
		}
		v.k.result = n
		if v.k.short {
			v.k.at = v.s.o.Now()
		}
	default:
		return v.k.result, nil
	}
	v.k.versions = versions
	return v.k.result, nil
}

// countNow counts matches for as long as a count may take. Then the store counts the rest, where it can count without
// reading records.
func (v *adding) countNow(ctx context.Context) (*answer, error) {
	now, limits := v.s.o.Now(), v.s.o.Limits
	end, late := now.Add(limits.Facets), now.Add(limits.Count)
	// On a busy machine the first match may take longer; it is counted all the same.
	looking, cancel := context.WithTimeout(ctx, max(limits.Count, limits.Facets/2))
	defer cancel()
	var t tally
	broken := false
	err := v.s.each(looking, v.q, 0, false, func(_ found, c *lang.Candidate) bool {
		broken = t.full || t.total >= fewLooked && v.s.o.Now().After(late)
		if !broken && c != nil {
			t.add(c)
		}
		return !broken
	})
	broken = broken || err != nil || looking.Err() != nil
	if broken && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	all := newFacets()
	all.add(&t)
	out := all.answer(broken)
	if !broken {
		return out, nil
	}
	return out, v.countInStore(ctx, end, out)
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
			sums[i] += value.N
			f.More = f.More || value.AtLeast
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

// countInStore replaces partial counts by those of the store, when the store can count exactly what the caller sees.
func (v *adding) countInStore(ctx context.Context, end time.Time, out *answer) error {
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
	if err := one(plan[0].Query, &out.total); err != nil {
		return err
	}
	for i := range out.facets {
		f := &out.facets[i]
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
			n := query.Count{N: f.Values[j].N, AtLeast: f.Values[j].AtLeast}
			if err := one(q, &n); err != nil {
				return err
			}
			f.Values[j].N, f.Values[j].AtLeast = n.N, n.AtLeast
		}
		sortValues(f)
	}
	return nil
}

// mostCounted bounds a count.
const mostCounted = 1_000_000_000

// countable says whether what the store finds is just what the query means to
// this caller: nothing is hidden, and every condition is one the store decides.
func (v *adding) countable() bool {
	if !seesAll(v.q.Views) {
		return false
	}
	for _, p := range v.q.Cond.Parts() {
		switch {
		case p.Words():
			for _, l := range p.Wanted(nil) {
				if l.Words.IsTruncated() {
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
