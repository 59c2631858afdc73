// This file sums up the matches of a search. Sums are kept and updated after changes.

package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/search/aggregate"
	"understudy/internal/search/lang"
)

// maxSums is the maximum number of small sums that are kept.
const maxSums = 200

// Sum sums up the matches of a search as the caller may see them. It waits only a short time for a complete answer, and
// the result says when it is not complete. It returns the errors of Find.
func (s *Searcher) Sum(ctx context.Context, c understudy.Caller, r query.SumRequest) (*query.SumResult, error) {
	leave, err := s.begin(c)
	if err != nil {
		return nil, err
	}
	defer leave()
	v := &aggregation{s: s, caller: c, memory: s.sums}
	if v.q, v.measure, err = s.bindSum(c, &r, s.o.Now()); err != nil {
		return nil, err
	}
	v.views = v.measure.views
	v.hasRowRule = slices.ContainsFunc(v.views, func(s *lang.KindView) bool { return s.Rule != nil })
	if v.hasRowRule || v.q.Relative {
		v.maxAge = maxRuleAge
	}
	v.key = v.sumKey(&r)
	wait := cmp.Or(max(r.Wait, 0), s.o.Limits.Sum)
	limited, cancel := context.WithTimeout(ctx, min(wait, s.o.Limits.Time))
	defer cancel()
	v.deadline = limited.Done()
	n, err := v.answer(ctx)
	if errors.Is(err, understudy.ErrClosed) && s.sums.ctx.Err() != nil {
		return nil, understudy.ErrClosed
	}
	if err != nil {
		return nil, fmt.Errorf("search: sum: %w", err)
	}
	out := *n.sum // copied, because n.sum may be kept for other callers
	out.Incomplete = s.incompleteNote(ctx, v.views)
	return &out, nil
}

// CheckSum validates a request as Sum does, without summing. It returns the errors of Sum.
func (s *Searcher) CheckSum(c understudy.Caller, r query.SumRequest) error {
	_, _, err := s.bindSum(c, &r, s.o.Now())
	return err
}

// bindSum checks a sum request and resolves its names.
func (s *Searcher) bindSum(c understudy.Caller, r *query.SumRequest, now time.Time) (*lang.BoundQuery, *measure, error) {
	if a := &r.Search; a.Sort != "" || a.Cursor != "" || a.Limit != 0 || a.Facets || a.CountOnly {
		return nil, nil, newInvalid("a sum covers all matches; leave out sort, cursor and facets")
	}
	q, err := s.read(c, &r.Search, now)
	if err != nil {
		return nil, nil, err
	}
	m, err := measureOf(q, r)
	return q, m, err
}

// sumKey returns the key under which a sum is kept. Two callers with the same key find the same records and see the
// same fields.
func (v *aggregation) sumKey(r *query.SumRequest) string {
	a := &r.Search
	key := fmt.Sprintf("%q %q %q %q %q %q %#v %q %q %q %d %d", v.caller.Role(), v.caller.Source, a.Source, a.Kinds, a.Text, a.Number, a.Where,
		r.Sum, r.By, v.measure.zone, r.Limit, v.s.annotationsVersion(v.q))
	for _, s := range v.measure.views {
		key += fmt.Sprintf(" %q/%q %d %t", s.Source, s.Kind.Name, len(s.Fields), s.Unnamed)
		if s.Rule != nil {
			key += fmt.Sprintf(" %q", v.caller.Name)
		}
	}
	return key
}

// renderSum builds the answer from the parts of the sum.
func (v *aggregation) renderSum() *answer {
	var tables aggregate.Tables
	var size int64
	versions := v.eachPart(func(p *part) {
		if v.counting = v.counting || p == nil || !p.watch.Ready; p != nil {
			tables.Add(p.sum)
			size += p.sum.Bytes()
		}
	})
	r := v.measure.request
	out := &query.SumResult{Query: v.q.Tree.String(), Sum: r.Sum, By: slices.Clone(r.By), Zone: v.measure.zone.String()}
	for i, s := range v.views {
		out.Kinds = append(out.Kinds, s.Kind.Name)
		if out.AsOf = v.states[i].Change; !canSeeAll(v.q.Views) || s.Source != v.views[0].Source {
			out.AsOf = 0
		}
	}
	v.fillRows(&tables, out)
	switch {
	case v.counting:
		out.Notes = append(out.Notes, "Counting is not finished: these are the matches so far. Try again in a moment.")
	case v.run.timedOut && !v.columnsFull:
		out.Notes = append(out.Notes, "Not every match is in this sum: reading them all took too long. Narrow the search.")
	case v.columnsFull || v.run.incomplete:
		out.Notes = append(out.Notes, "Not every match is in this sum: there was not enough memory for all. Narrow the search; "+
			"an administrator can raise search.columns.")
	default:
		out.Complete = true
		v.run.result, v.run.versions = &answer{sum: out}, versions
	}
	v.memory.resize(v.key, v.run, size)
	return &answer{sum: out}
}

// fillRows writes the groups into the answer.
func (v *aggregation) fillRows(tables *aggregate.Tables, out *query.SumResult) {
	var timed [aggregate.MaxDimensions]bool
	for i, name := range v.measure.request.By {
		timed[i] = aggregate.IsSpan(name)
	}
	limit := v.measure.request.Limit
	limit = cmp.Or(limit, query.MaxSums)
	table := tables.Table(limit, v.measure.request.Sum != query.SumCount, timed)
	out.Rows, out.Totals, out.Others = make([]query.SumRow, 0, len(table.Rows)), v.sumRows(table.Totals), v.sumRows(table.Others)
	for i := range table.Rows {
		r := v.sumRow(&table.Rows[i])
		r.Key = table.Rows[i].By[:len(v.measure.request.By)]
		r.Term = v.measure.groupTerm(r.Key)
		out.Rows = append(out.Rows, r)
	}
}

// sumRows returns the rows of the totals, or of the groups that are not listed. Such rows have no key.
func (v *aggregation) sumRows(rows []aggregate.Row) []query.SumRow {
	all := make([]query.SumRow, 0, len(rows))
	for i := range rows {
		all = append(all, v.sumRow(&rows[i]))
	}
	return all
}

func (v *aggregation) sumRow(r *aggregate.Row) query.SumRow {
	out := query.SumRow{Unit: strings.Clone(r.Unit), Count: r.Count, Values: r.Values}
	if v.measure.request.Sum == query.SumCount {
		out.Values = r.Count
	} else if r.Values > 0 {
		out.Sum = aggregate.Decimal(r.Sum())
	}
	if v.measure.timed {
		if mean, q, ok := r.Durations(0.5, 0.95); ok {
			out.Seconds = &query.SumTimes{Mean: mean, P50: q[0], P95: q[1]}
		}
	}
	return out
}
