// Sum: what the matches of a search add up to, kept and brought up to date by what changed.

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

// maxSums are kept while they are small.
const maxSums = 200

// Sum adds up the matches of a search as the caller may see them. It waits for a complete
// answer for a short time only, and says when one is not. Errors: as Find.
func (s *Searcher) Sum(ctx context.Context, c understudy.Caller, r query.SumRequest) (*query.SumResult, error) {
	leave, err := s.begin(c)
	if err != nil {
		return nil, err
	}
	defer leave()
	v := &adding{s: s, c: c, memory: s.sums}
	if v.q, v.m, err = s.summed(c, &r, s.o.Now()); err != nil {
		return nil, err
	}
	v.views = v.m.views
	v.anew = slices.ContainsFunc(v.views, func(s *lang.KindView) bool { return s.Rule != nil })
	if v.anew || v.q.Relative {
		v.maxAge = ruleAge
	}
	v.key = v.sumKey(&r)
	wait := r.Wait
	if wait <= 0 {
		wait = s.o.Limits.Sum
	}
	limited, cancel := context.WithTimeout(ctx, min(wait, s.o.Limits.Time))
	defer cancel()
	v.enough = limited.Done()
	n, err := v.answer(ctx)
	if errors.Is(err, understudy.ErrClosed) && s.sums.ctx.Err() != nil {
		return nil, understudy.ErrClosed
	}
	if err != nil {
		return nil, fmt.Errorf("search: sum: %w", err)
	}
	out := *n.sum // it may be kept
	out.Incomplete = s.unheld(ctx, v.views)
	return &out, nil
}

// CheckSum reads a request as Sum does, without a sum. Errors: as Sum.
func (s *Searcher) CheckSum(c understudy.Caller, r query.SumRequest) error {
	_, _, err := s.summed(c, &r, s.o.Now())
	return err
}

// summed reads a request.
func (s *Searcher) summed(c understudy.Caller, r *query.SumRequest, now time.Time) (*lang.BoundQuery, *measure, error) {
	if a := &r.Search; a.Sort != "" || a.Cursor != "" || a.Limit != 0 || a.Facets || a.CountOnly {
		return nil, nil, invalid("a sum is of all matches; leave sort, cursor and facets out")
	}
	q, err := s.read(c, &r.Search, now)
	if err != nil {
		return nil, nil, err
	}
	m, err := measureOf(q, r)
	return q, m, err
}

// sumKey names what is kept for a request. Two callers of one key find the same records, and see the same of them.
func (v *adding) sumKey(r *query.SumRequest) string {
	a := &r.Search
	key := fmt.Sprintf("%q %q %q %q %q %q %#v %q %q %q %d %d", v.c.Role(), v.c.Source, a.Source, a.Kinds, a.Text, a.Number, a.Where, r.Sum,
		r.By, v.m.zone, r.Limit, v.s.written(v.q))
	for _, s := range v.m.views {
		key += fmt.Sprintf(" %q/%q %d %t", s.Source, s.Kind.Name, len(s.Fields), s.All)
		if s.Rule != nil {
			key += fmt.Sprintf(" %q", v.c.Name)
		}
	}
	return key
}

// renderSum makes the answer.
func (v *adding) renderSum() *answer {
	var tables aggregate.Tables
	var size int64
	versions := v.eachPart(func(p *part) {
		if v.more = v.more || p == nil || !p.watch.Ready; p != nil {
			tables.Add(p.sum)
			size += p.sum.Bytes()
		}
	})
	out := &query.SumResult{Query: v.q.Tree.String(), Sum: v.m.request.Sum, By: slices.Clone(v.m.request.By), Zone: v.m.zone.String()}
	for i, s := range v.views {
		out.Kinds = append(out.Kinds, s.Kind.Name)
		if out.AsOf = v.states[i].Change; !seesAll(v.q.Views) || s.Source != v.views[0].Source {
			out.AsOf = 0
		}
	}
	v.rows(&tables, out)
	switch {
	case v.more:
		out.Notes = append(out.Notes, "Counting goes on: these are the matches counted so far. Ask again in a moment.")
	case v.k.late && !v.full:
		out.Notes = append(out.Notes, "Not every match is in this sum: reading them all took too long. Say more closely what you look for.")
	case v.full || v.k.short:
		out.Notes = append(out.Notes, "Not every match is in this sum: there was no room for all. Say more closely what you look for; "+
			"an administrator can raise search.columns.")
	default:
		out.Complete = true
		v.k.result, v.k.versions = &answer{sum: out}, versions
	}
	v.memory.resize(v.key, v.k, size)
	return &answer{sum: out}
}

// rows are the groups as the answer has them.
func (v *adding) rows(tables *aggregate.Tables, out *query.SumResult) {
	var timed [aggregate.MostBy]bool
	for i, name := range v.m.request.By {
		timed[i] = aggregate.IsSpan(name)
	}
	most := v.m.request.Limit
	most = cmp.Or(most, query.MaxSums)
	table := tables.Table(most, v.m.request.Sum != query.SumCount, timed)
	out.Rows, out.Totals, out.Others = make([]query.SumRow, 0, len(table.Rows)), v.plain(table.Totals), v.plain(table.Others)
	for i := range table.Rows {
		r := v.row(&table.Rows[i])
		r.Key = table.Rows[i].By[:len(v.m.request.By)]
		r.Term = v.m.term(r.Key)
		out.Rows = append(out.Rows, r)
	}
}

// plain are rows of several groups.
func (v *adding) plain(rows []aggregate.Row) []query.SumRow {
	all := make([]query.SumRow, 0, len(rows))
	for i := range rows {
		all = append(all, v.row(&rows[i]))
	}
	return all
}

func (v *adding) row(r *aggregate.Row) query.SumRow {
	out := query.SumRow{Unit: strings.Clone(r.Unit), Count: r.Count, Values: r.Values}
	if v.m.request.Sum == query.SumCount {
		out.Values = r.Count
	} else if r.Values > 0 {
		out.Sum = aggregate.Decimal(r.Sum())
	}
	if v.m.timed {
		if mean, q, ok := r.Times(0.5, 0.95); ok {
			out.Seconds = &query.SumTimes{Mean: mean, P50: q[0], P95: q[1]}
		}
	}
	return out
}
