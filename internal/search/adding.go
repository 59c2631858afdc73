// Adding: what the matches of a search add up to, from columns or from records, and brought up to date by what changed.

package search

import (
	"context"
	"errors"
	"time"

	"understudy"
	"understudy/internal/search/aggregate"
	"understudy/internal/search/columns"
	"understudy/internal/search/lang"
)

// Bounds of reading matches.
const (
	fillTime = 2 * time.Minute
	perRoom  = 1 << 12 // after so many matches room is made for more
	// mostRecounted is how many records are read for a count that has to be made again though no record changed:
	// each minute under a row rule that looks at more than the record, and each time for a search that depends
	// on the time of day.
	mostRecounted = 100_000
)

// adding is one request for what the matches of a search add up to.
type adding struct {
	s       *Searcher
	c       understudy.Caller
	q       *lang.BoundQuery
	views   []*lang.KindView // the kinds that are added up
	m       *measure         // of a sum; nil: the matches are counted by value
	memory  *memory
	key     string
	k       *keptRun
	enough  <-chan struct{} // ends the wait for a complete answer
	patient bool            // nothing but the count is asked for
	maxAge  time.Duration   // of what is kept; 0: any
	anew    bool            // a change may make other records match
	states  []columns.State // of the tables of views
	full    bool            // not every record is in the columns
	more    bool            // counting goes on
}

// answer brings what is kept up to date and makes the answer. Errors: ErrClosed.
func (v *adding) answer(ctx context.Context) (n *answer, err error) {
	for {
		if v.k, err = v.memory.take(ctx, v.key); err != nil {
			return nil, err
		}
		n, err = v.run(ctx)
		v.k.release()
		if !errors.Is(err, errDropped) {
			return n, err
		}
	}
}

// errDropped is the error of a run that the memory let go while somebody waited.
var errDropped = errors.New("search: dropped meanwhile")

// wait lets others use the run while f waits. Errors: errDropped.
func (v *adding) wait(f func()) error {
	v.k.release()
	f()
	v.k.lock <- struct{}{}
	if v.k.over {
		return errDropped
	}
	return nil
}

// run is answer for a run that the caller has.
func (v *adding) run(ctx context.Context) (*answer, error) {
	if v.maxAge > 0 && v.k.fill == nil && v.s.o.Now().Sub(v.k.at) >= v.maxAge {
		short := v.k.short && v.m == nil // a count that is too large stays so
		v.k.reset()
		v.k.short = short
	}
	for filled := false; ; filled = true {
		if err := v.refresh(ctx); err != nil {
			return nil, err
		}
		if v.k.result != nil && !v.unchanged() {
			if v.k.result = nil; v.anew {
				v.k.reset()
			}
		}
		if v.k.result != nil && !v.more && (v.k.short || !v.k.result.broken) {
			return v.k.result, nil
		}
		switch {
		case !filled: // what changes meanwhile is read after it
			if err := v.complete(ctx); err != nil {
				return nil, err
			}
		case v.m == nil:
			return v.renderCount(ctx)
		default:
			return v.renderSum(), nil
		}
	}
}

// refresh brings the columns up to date.
func (v *adding) refresh(ctx context.Context) error {
	v.more, v.full, v.states = false, false, v.states[:0]
	for _, s := range v.views {
		t := v.table(s)
		var st columns.State
		var whole bool
		var err error
		for again := true; again; again = err == nil && !whole && v.needsRows(s, t) { // what was kept may be gone
			whole = v.needsRows(s, t)
			dropped := v.wait(func() { st, err = v.s.tables.Refresh(ctx, v.enough, t, whole) })
			err = errors.Join(err, dropped)
		}
		if err != nil {
			return err
		}
		v.states = append(v.states, st)
		v.more = v.more || !st.Current || whole && !st.Whole && !st.Full
		v.full = v.full || whole && !st.Whole && st.Full
	}
	return nil
}

func (v *adding) table(s *lang.KindView) *columns.Table { return v.s.tables.Table(s.Source, s.Kind) }

// needsRows reports whether every record of a kind must have a row: a sum is made of them if they tell what matches, a
// count is begun with them. A count beside hits is not: its matches are read by an index, which may be far less than all.
func (v *adding) needsRows(s *lang.KindView, t *columns.Table) bool {
	t.Lock()
	defer t.Unlock()
	if v.m != nil {
		return s.Rule == nil && v.q.Cond.Rows(s, t) != nil
	}
	p := v.k.parts[t]
	return v.patient && !v.k.short && (p == nil || p.isGone()) && countsRows(v.q.Cond, s, t) && (t.Whole() || !v.q.Cond.Indexed())
}

// unchanged reports whether no row has changed since the last answer that is kept.
func (v *adding) unchanged() bool {
	for _, s := range v.views {
		t := v.table(s)
		t.Lock()
		same := v.k.versions[t] == t.Version()
		t.Unlock()
		if !same {
			return false
		}
	}
	return true
}

// eachPart calls yield with the part of each kind, whose table is locked; nil: there is none. It returns the versions of
// the tables.
func (v *adding) eachPart(yield func(*part)) map[*columns.Table]int64 {
	versions := map[*columns.Table]int64{}
	for _, s := range v.views {
		t := v.table(s)
		t.Lock()
		p := v.k.parts[t]
		if p != nil && p.isGone() {
			p = nil
		}
		yield(p)
		versions[t] = t.Version()
		t.Unlock()
	}
	return versions
}

// complete adds up the kinds that are not yet: from the columns now, or from the records,
// behind the answer when that takes too long.
func (v *adding) complete(ctx context.Context) error {
	if v.m == nil && v.k.short {
		return nil
	}
	var read []*lang.KindView
	for i, s := range v.views {
		t := v.table(s)
		t.Lock()
		p := v.k.parts[t]
		if p != nil && p.isGone() {
			t.Unwatch(p.watch)
			delete(v.k.parts, t)
			p = nil
		}
		if p == nil {
			if v.k.at = v.s.o.Now(); !v.fromColumns(ctx, s, t, v.states[i]) {
				read = append(read, s)
			}
		}
		t.Unlock()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if v.k.fill != nil || len(read) > 0 {
		return v.await(read)
	}
	return nil
}

// fromColumns adds up a kind from its columns, which are locked. It reports false when they
// do not tell what matches. Nothing is counted while they are being filled.
func (v *adding) fromColumns(ctx context.Context, s *lang.KindView, t *columns.Table, st columns.State) bool {
	goOn := func() bool { return ctx.Err() == nil }
	if v.m == nil {
		if !v.patient || !t.Whole() && (st.Full || v.q.Cond.Indexed()) || !countsRows(v.q.Cond, s, t) {
			return false
		}
		n := &tally{in: s, cond: v.q.Cond}
		if t.Whole() && n.fill(t, goOn) {
			v.keep(&part{table: t, watch: t.Follow(n), count: n}).watch.Ready = true
		}
		return !n.full
	}
	test := v.q.Cond.Rows(s, t)
	if s.Rule != nil || test == nil {
		return false
	}
	o := v.m.options(s, t)
	o.Rows = test
	if p := aggregate.New(t, o); p.Fill(goOn) {
		v.keep(&part{table: t, watch: t.Watch(p), sum: p}).watch.Ready = true
	}
	return true
}

// fromRecords begins a part of a kind whose records have to be read.
func (v *adding) fromRecords(s *lang.KindView) *part {
	t := v.table(s)
	t.Lock()
	defer t.Unlock()
	if v.m == nil {
		n := &tally{in: s, cond: v.q.Cond}
		return v.keep(&part{table: t, watch: t.Follow(n), count: n})
	}
	o := v.m.options(s, t)
	var c lang.Candidate
	cond := v.q.Cond
	o.Records = func(r *understudy.Record) bool { return s.See(&c, r) && cond.Holds(&c) }
	p := aggregate.New(t, o)
	return v.keep(&part{table: t, watch: t.Watch(p), sum: p})
}

func (v *adding) keep(p *part) *part {
	v.k.parts[p.table] = p
	return p
}

// fill is the reading of matches behind an answer.
type fill struct {
	done  chan struct{}
	err   error // once done
	short bool  // not every match was added
	late  bool  // because there was no time; else for want of room
}

// await reads the matches of some kinds, or waits for who reads them already. Nothing is
// said of a reading that takes longer: the parts are not Ready.
func (v *adding) await(read []*lang.KindView) error {
	f := v.k.fill
	if f == nil {
		if f = v.read(read); f == nil {
			return nil // another search reads
		}
		v.k.fill = f
	}
	var late <-chan time.Time
	if v.m == nil && !v.patient {
		timer := time.NewTimer(v.s.o.Limits.Count)
		defer timer.Stop()
		late = timer.C
	}
	done := false
	err := v.wait(func() {
		select {
		case <-f.done:
			done = true
		case <-late:
		case <-v.enough:
		}
	})
	if err != nil || !done || v.k.fill != f {
		return err
	}
	v.k.fill = nil
	switch {
	case f.err == nil && f.short && v.m == nil:
		v.k.reset()
		v.k.short = true
	case f.err == nil:
		v.k.short, v.k.late = v.k.short || f.short, v.k.late || f.late
	default:
		v.k.reset()
		if v.m != nil && !errors.Is(f.err, errAnew) {
			return f.err
		}
	}
	return nil
}

// errAnew ends a reading whose columns begin anew.
var errAnew = errors.New("search: the columns begin anew")

// read begins to read the matches of some kinds; nil when another search's are being read.
func (v *adding) read(some []*lang.KindView) *fill {
	all := v.memory
	select {
	case all.reading <- struct{}{}:
	default:
		if !v.patient {
			return nil
		}
		select {
		case all.reading <- struct{}{}:
		case <-v.enough:
			return nil
		}
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.ctx.Err() != nil {
		<-all.reading
		return nil
	}
	parts := map[*lang.KindView]*part{}
	for _, s := range some {
		parts[s] = v.fromRecords(s)
	}
	q := *v.q
	q.Views = some
	f := &fill{done: make(chan struct{})}
	all.work.Go(func() {
		defer close(f.done) // last: who waits may begin another
		defer func() { <-all.reading }()
		ctx, cancel := context.WithTimeout(all.ctx, fillTime)
		defer cancel()
		f.short, f.err = v.addAll(ctx, &q, parts)
		if late := ctx.Err(); errors.Is(late, context.DeadlineExceeded) {
			f.short, f.late, f.err = true, true, nil
		} else if f.err == nil {
			f.err = late
		}
		for _, p := range parts {
			p.table.Lock()
			p.watch.Ready = f.err == nil
			p.table.Unlock()
		}
		if f.err != nil && v.m == nil && !errors.Is(f.err, errAnew) && all.ctx.Err() == nil {
			v.s.o.Logger.Warn("search: counting behind a search", "err", f.err)
		}
	})
	return f
}

// addAll adds every match. short says that it could not.
func (v *adding) addAll(ctx context.Context, q *lang.BoundQuery, parts map[*lang.KindView]*part) (short bool, err error) {
	n, looked := 0, 0
	var stopped error
	err = v.s.each(ctx, q, 0, false, func(f found, c *lang.Candidate) bool {
		if looked++; v.m == nil && v.maxAge > 0 && looked > mostRecounted {
			short = true
			return false
		}
		if c == nil {
			return true
		}
		p := parts[f.view]
		if n++; v.m != nil && n%perRoom == 0 {
			short = short || !v.s.tables.Room(p.table)
		}
		p.table.Lock()
		defer p.table.Unlock()
		switch {
		case p.isGone():
			stopped = errAnew
			return false
		case p.count != nil:
			p.count.assign(f.record.Number, p.count.group(c))
			short = p.count.full || p.count.size() >= maxKept/2
			return !short
		}
		row, ok := p.table.Row(f.record.Number)
		if !ok && !short {
			row, ok = p.table.Ensure(f.record)
		}
		if short = short || !ok; ok {
			p.sum.Add(row)
		}
		return true
	})
	return short, errors.Join(err, stopped)
}
