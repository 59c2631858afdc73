// This file counts the matches of a search by kind, field value and time.

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
	maxCounts  = 500 // the maximum number of small counts that are kept
	minCounted = 30  // the minimum number of matches that are counted, even after the time limit

	// maxRuleAge is the maximum age of a kept result under a row rule that looks beyond the record, and of a sum that
	// depends on the time of day.
	maxRuleAge = time.Minute
	// maxRelativeAge is the maximum age of a kept count that depends on the time of day.
	maxRelativeAge = time.Second
)

// count fills in the total and the facets of the result.
func (v *execution) count(ctx context.Context) error {
	n, err := newCount(v.s, v.caller, v.request, v.q).count(ctx)
	if err != nil {
		return err
	}
	total := n.total
	v.result.Total, v.result.Facets = &total, slices.Clone(n.facets)
	for i := range v.result.Facets {
		v.result.Facets[i].Values = slices.Clone(v.result.Facets[i].Values)
	}
	if n.partial {
		v.settleCounts() // some matches were not counted, so the counts must be made consistent with the hits
	}
	return nil
}

// count counts the matches and reuses the kept count if it can be updated in time. A count that depends on the time of
// day is kept only if the caller asked for the count alone: keeping it for every search would cost more than it saves.
func (v *aggregation) count(ctx context.Context) (*answer, error) {
	if v.q.Relative && !v.countOnly {
		return v.countNow(ctx)
	}
	// A caller that asks for the count alone can wait longer, because its page was already sent without the count.
	wait := v.s.o.Limits.Facets
	if v.countOnly {
		wait = v.s.o.Limits.Time / 2
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	v.deadline = limited.Done()
	n, err := v.answer(ctx)
	if errors.Is(err, understudy.ErrClosed) {
		return v.countNow(ctx)
	}
	return n, err
}

// newCount returns an aggregation that counts the matches of q. It does not start to count.
func newCount(s *Searcher, c understudy.Caller, r *query.SearchRequest, q *lang.BoundQuery) *aggregation {
	v := &aggregation{s: s, caller: c, q: q, memory: s.counts, countOnly: r.CountOnly}
	v.key = fmt.Sprintf("%q %q %q %q %q %q %#v %d", c.Role(), c.Source, r.Source, r.Kinds, r.Text, r.Number, r.Where, s.annotationsVersion(q))
	for _, s := range q.Views {
		if q.Cond.CanMatch(s) {
			v.views = append(v.views, s)
		}
		if s.Rule != nil && !s.Rule.RecordOnly {
			v.maxAge = maxRuleAge
		}
	}
	if q.Relative {
		v.maxAge = maxRelativeAge
	}
	return v
}

// renderCount builds the answer from the parts counted so far. If they are incomplete, it counts matches until a
// time limit.
func (v *aggregation) renderCount(ctx context.Context) (*answer, error) {
	all := newFacets()
	ready, size := !v.counting && !v.run.incomplete, int64(0)
	versions := v.eachPart(func(p *part) {
		if p == nil || !p.watch.Ready {
			ready = false
		}
		if p != nil {
			all.add(p.count)
			size += p.count.size()
			p.count.unreadChanges = 0
		}
	})
	switch {
	case ready:
		v.memory.resize(v.key, v.run, size)
		v.run.result = all.answer(false)
	case all.total >= minCounted: // enough for a partial answer; the background read continues
		return all.answer(true), nil
	case v.run.result == nil:
		n, err := v.countNow(ctx)
		if err != nil {
			return nil, err
		}
		v.run.result = n
		if v.run.incomplete {
			v.run.startedAt = v.s.o.Now()
		}
	default:
		return v.run.result, nil
	}
	v.run.versions = versions
	return v.run.result, nil
}

// countNow counts matches until the time limit of counts. Then the store counts the other matches, if it can do so
// without reading records.
func (v *aggregation) countNow(ctx context.Context) (*answer, error) {
	now, limits := v.s.o.Now(), v.s.o.Limits
	end, countEnd := now.Add(limits.Facets), now.Add(limits.Count)
	// On a busy machine the first match may take longer than the limit. Even then it is counted.
	looking, cancel := context.WithTimeout(ctx, max(limits.Count, limits.Facets/2))
	defer cancel()
	var t tally
	broken := false
	err := v.s.scan(looking, v.q, 0, false, func(_ foundRecord, c *lang.Candidate) bool {
		broken = t.full || t.total >= minCounted && v.s.o.Now().After(countEnd)
		if !broken && c != nil {
			t.move(t.group(c), +1)
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

// settleCounts makes incomplete counts consistent. The total is at least the number of hits. A record has at most
// one value of a field, so the counts of a field's values sum up to at most the number of records. Any difference
// may be records with values that are not listed.
func (v *execution) settleCounts() {
	total := v.result.Total
	whole := !v.request.CountOnly && v.request.Cursor == "" && v.result.Next == "" && !v.result.Partial && !v.result.More
	if n := int64(len(v.result.Hits)); whole && n >= total.N {
		*total = query.Count{N: n}
	}
	sums := make([]int64, len(v.result.Facets))
	for i := range v.result.Facets {
		f := &v.result.Facets[i]
		for _, value := range f.Values {
			sums[i] += value.N
			f.More = f.More || value.AtLeast
		}
		if total.AtLeast {
			total.N = max(total.N, sums[i])
		}
	}
	if f := &v.result.Facets[0]; len(f.Values) == len(v.q.Views) && !f.More { // the counts by kind are complete, so their sum is the total
		*total = query.Count{N: sums[0]}
	}
	for i := range v.result.Facets {
		f := &v.result.Facets[i]
		f.More = f.More || total.AtLeast || sums[i] < total.N
	}
}

// countInStore replaces incomplete counts by counts of the store, if the store can count exactly what the caller sees.
func (v *aggregation) countInStore(ctx context.Context, end time.Time, out *answer) error {
	plan := v.q.Plan()
	if len(plan) != 1 || !v.canCountInStore() {
		return nil
	}
	one := func(q query.RecordQuery, at *query.Count) error {
		left := end.Sub(v.s.o.Now())
		if left <= 0 {
			return nil
		}
		n, err := v.s.o.Store.Count(ctx, q, maxStoreCount, v.s.o.Now().Add(min(left, v.s.o.Limits.Count)))
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

// maxStoreCount is the limit up to which the store counts records.
const maxStoreCount = 1_000_000_000

// canCountInStore reports whether the store finds exactly the records that the query means to this caller: nothing is
// hidden, and the store can decide every condition.
func (v *aggregation) canCountInStore() bool {
	if !canSeeAll(v.q.Views) {
		return false
	}
	for _, p := range v.q.Cond.Parts() {
		switch {
		case p.HasOnlyWords():
			for _, l := range p.WordPredicates(nil) {
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
