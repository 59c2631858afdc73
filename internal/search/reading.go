// Reading: the matches of a sum that the columns do not tell are read, record by record.

package search

import (
	"context"
	"errors"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/search/aggregate"
	"understudy/internal/search/columns"
	"understudy/internal/search/lang"
)

// fill is the reading of matches behind a sum.
type fill struct {
	done  chan struct{}
	err   error // once done
	short bool  // not every match was added
	late  bool  // because there was no time; else for want of room
}

// await reads the matches of some kinds, or waits for who reads them already. Nothing is
// said of a reading that takes longer: the parts are not Ready.
func (v *summing) await(read []*lang.KindView) error {
	f := v.k.fill
	if f == nil {
		if f = v.read(read); f == nil {
			return nil // another sum reads
		}
		v.k.fill = f
	}
	select {
	case <-f.done:
		v.k.fill = nil
		switch {
		case f.err == nil:
			v.k.short, v.k.late = v.k.short || f.short, v.k.late || f.late
		case errors.Is(f.err, errAnew):
			v.k.drop()
		default:
			v.k.drop()
			return f.err
		}
	case <-v.enough:
	}
	return nil
}

// errAnew ends a reading whose columns begin anew.
var errAnew = errors.New("search: the columns begin anew")

// read begins to read the matches of some kinds; nil when another sum's are being read.
func (v *summing) read(some []*lang.KindView) *fill {
	all := v.s.sums
	all.mu.Lock()
	defer all.mu.Unlock()
	select {
	case all.filling <- struct{}{}:
	default:
		return nil
	}
	if all.ctx.Err() != nil {
		<-all.filling
		return nil
	}
	parts := map[*lang.KindView]*aggregate.Part{}
	for _, s := range some {
		parts[s] = v.fromRecords(s)
	}
	q := *v.q
	q.Views = some
	behind := &execution{s: v.s, c: v.c, q: &q}
	f := &fill{done: make(chan struct{})}
	all.work.Go(func() {
		defer close(f.done) // last: who waits may begin another
		defer func() { <-all.filling }()
		ctx, cancel := context.WithTimeout(all.ctx, fillTime)
		defer cancel()
		f.short, f.err = behind.addAll(ctx, parts)
		if late := ctx.Err(); errors.Is(late, context.DeadlineExceeded) {
			f.short, f.late, f.err = true, true, nil
		} else if f.err == nil {
			f.err = late
		}
		for _, p := range parts {
			if p.Table.Lock(); f.err == nil && !p.Gone() {
				p.Filled()
			}
			p.Table.Unlock()
		}
	})
	return f
}

// fromRecords begins a part of a kind whose records have to be read.
func (v *summing) fromRecords(s *lang.KindView) *aggregate.Part {
	t := v.table(s)
	t.Lock()
	defer t.Unlock()
	o := v.m.options(s, t)
	var c lang.Candidate
	cond := v.q.Cond
	o.Records = func(r *understudy.Record) bool { return s.See(&c, r) && cond.Holds(&c) }
	p := aggregate.New(t, o)
	t.Watch(p)
	v.k.parts[t] = p
	return p
}

// perRoom is after how many matches room is made for more.
const perRoom = 1 << 12

// addAll adds every match. full says that there was no room for all.
func (v *execution) addAll(ctx context.Context, parts map[*lang.KindView]*aggregate.Part) (full bool, err error) {
	n := 0
	var stopped error
	err = v.each(ctx, 0, func(f found, c *lang.Candidate) bool {
		if c == nil {
			return true
		}
		p := parts[f.view]
		if n++; n%perRoom == 0 {
			full = full || !v.s.tables.Room(p.Table)
		}
		p.Table.Lock()
		defer p.Table.Unlock()
		if p.Gone() {
			stopped = errAnew
			return false
		}
		row, ok := p.Table.Row(f.record.Number)
		if !ok && !full {
			row, ok = p.Table.Ensure(f.record)
		}
		if full = full || !ok; ok {
			p.Add(row)
		}
		return true
	})
	return full, errors.Join(err, stopped)
}

// render makes the answer.
func (v *summing) render(states []columns.State) {
	var tables aggregate.Tables
	var size int64
	versions := map[*columns.Table]int64{}
	v.out = &query.SumResult{Query: v.q.Tree.String(), Sum: v.m.request.Sum, By: slices.Clone(v.m.request.By), Zone: v.m.zone.String()}
	for i, s := range v.m.views {
		v.out.Kinds = append(v.out.Kinds, s.Kind.Name)
		t := v.table(s)
		t.Lock()
		p := v.k.parts[t]
		if v.more = v.more || p == nil || p.Gone() || !p.Ready(); p != nil && !p.Gone() {
			tables.Add(p)
			size += p.Bytes()
		}
		versions[t] = t.Version()
		t.Unlock()
		if v.out.AsOf = states[i].Change; !seesAll(v.q.Views) || s.Source != v.m.views[0].Source {
			v.out.AsOf = 0
		}
	}
	v.rows(&tables)
	if v.out.Complete = !v.more && !v.full && !v.k.short; v.out.Complete {
		v.k.result, v.k.versions = v.out, versions
	} else {
		v.k.result = nil
	}
	switch {
	case v.more:
		v.out.Notes = append(v.out.Notes, "Counting goes on: these are the matches counted so far. Ask again in a moment.")
	case v.k.late && !v.full:
		v.out.Notes = append(v.out.Notes, "Not every match is in this sum: reading them all took too long. Say more closely what you look for.")
	case v.full || v.k.short:
		v.out.Notes = append(v.out.Notes, "Not every match is in this sum: there was no room for all. Say more closely what you look for; "+
			"an administrator can raise search.columns.")
	}
	v.s.sums.resize(v.k, size)
}

// rows are the groups as the answer has them.
func (v *summing) rows(tables *aggregate.Tables) {
	var timed [aggregate.MostBy]bool
	for i, name := range v.m.request.By {
		timed[i] = aggregate.IsSpan(name)
	}
	most := v.m.request.Limit
	if most == 0 {
		most = query.MostSums
	}
	table := tables.Table(most, v.m.request.Sum != query.SumCount, timed)
	v.out.Rows, v.out.Totals, v.out.Others = make([]query.SumRow, 0, len(table.Rows)), v.plain(table.Totals), v.plain(table.Others)
	for i := range table.Rows {
		r := v.row(&table.Rows[i])
		r.Key = table.Rows[i].By[:len(v.m.request.By)]
		r.Term = v.m.term(r.Key)
		v.out.Rows = append(v.out.Rows, r)
	}
}

// plain are rows of several groups.
func (v *summing) plain(rows []aggregate.Row) []query.SumRow {
	all := make([]query.SumRow, 0, len(rows))
	for i := range rows {
		all = append(all, v.row(&rows[i]))
	}
	return all
}

func (v *summing) row(r *aggregate.Row) query.SumRow {
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
