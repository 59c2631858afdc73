// This file computes the counts and sums of all matches of a search from columns or records, and updates them after
// changes.

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

// Limits of reading matches in the background.
const (
	backgroundReadTime  = 2 * time.Minute
	matchesPerRoomCheck = 1 << 12 // the number of matches that are added between two requests for more memory
	// maxRecounted is the maximum number of records that a count may read again although no record changed. A count
	// under a row rule that looks beyond the record is read again every minute. A count that depends on the time of
	// day is read again each time.
	maxRecounted = 100_000
)

// aggregation is one request for a sum or a count of all matches of a search.
type aggregation struct {
	s           *Searcher
	caller      understudy.Caller
	q           *lang.BoundQuery
	views       []*lang.KindView // the kinds that are summed or counted
	measure     *measure         // what is summed; nil if only matches are counted by value
	memory      *resultCache
	key         string
	run         *keptRun
	deadline    <-chan struct{} // closed when the caller no longer waits for a complete answer
	countOnly   bool            // whether the caller asked for the count alone, without hits
	maxAge      time.Duration   // the maximum age of a kept result; 0 means no limit
	hasRowRule  bool            // whether a row rule applies, so that a change may make other records match
	states      []columns.State // the states of the tables of views, in the same order
	columnsFull bool            // whether the columns have no room for every record
	counting    bool            // whether a background read is still running
}

// answer updates the kept result and returns the answer. It returns ErrClosed after Close.
func (v *aggregation) answer(ctx context.Context) (n *answer, err error) {
	for {
		if v.run, err = v.memory.take(ctx, v.key); err != nil {
			return nil, err
		}
		n, err = v.answerLocked(ctx)
		v.run.release()
		if !errors.Is(err, errDropped) {
			return n, err
		}
	}
}

// errDropped means that the result cache dropped a run while a caller waited for the run.
var errDropped = errors.New("search: the sum was dropped")

// waitUnlocked releases the run while f waits, so that other callers can use it. It returns errDropped if the memory
// dropped the run meanwhile.
func (v *aggregation) waitUnlocked(f func()) error {
	v.run.release()
	f()
	v.run.lock <- struct{}{}
	if v.run.dropped {
		return errDropped
	}
	return nil
}

// answerLocked does the work of answer. The caller must hold the run's lock.
func (v *aggregation) answerLocked(ctx context.Context) (*answer, error) {
	if v.maxAge > 0 && v.run.background == nil && v.s.o.Now().Sub(v.run.startedAt) >= v.maxAge {
		short := v.run.incomplete && v.measure == nil // a count that was too large to read remains too large
		v.run.reset()
		v.run.incomplete = short
	}
	for filled := false; ; filled = true {
		if err := v.refresh(ctx); err != nil {
			return nil, err
		}
		if v.run.result != nil && !v.isUnchanged() {
			if v.run.result = nil; v.hasRowRule {
				v.run.reset()
			}
		}
		if v.run.result != nil && !v.counting && (v.run.incomplete || !v.run.result.partial) {
			return v.run.result, nil
		}
		switch {
		case !filled: // the next round of refresh reads changes made during complete
			if err := v.complete(ctx); err != nil {
				return nil, err
			}
		case v.measure == nil:
			return v.renderCount(ctx)
		default:
			return v.renderSum(), nil
		}
	}
}

// refresh updates the columns of every view and fills in states, columnsFull and counting.
func (v *aggregation) refresh(ctx context.Context) error {
	v.counting, v.columnsFull, v.states = false, false, v.states[:0]
	for _, s := range v.views {
		t := v.table(s)
		var st columns.State
		var whole bool
		var err error
		for again := true; again; again = err == nil && !whole && v.mustHaveAllRows(s, t) { // the rows may have been dropped during the refresh
			whole = v.mustHaveAllRows(s, t)
			dropped := v.waitUnlocked(func() { st, err = v.s.tables.Refresh(ctx, v.deadline, t, whole) })
			err = errors.Join(err, dropped)
		}
		if err != nil {
			return err
		}
		v.states = append(v.states, st)
		v.counting = v.counting || !st.Current || whole && !st.Complete && !st.Full
		v.columnsFull = v.columnsFull || whole && !st.Complete && st.Full
	}
	return nil
}

func (v *aggregation) table(s *lang.KindView) *columns.Table {
	return v.s.tables.Table(s.Source, s.Kind)
}

// mustHaveAllRows reports whether every record of a kind must have a row. A sum needs all rows if the columns can
// decide what matches. A count alone starts from all rows. A count beside hits does not need them: an index finds its
// matches, which may be far fewer than all records.
func (v *aggregation) mustHaveAllRows(s *lang.KindView, t *columns.Table) bool {
	t.Lock()
	defer t.Unlock()
	if v.measure != nil {
		return s.Rule == nil && v.q.Cond.CompileRows(s, t) != nil
	}
	p := v.run.parts[t]
	return v.countOnly && !v.run.incomplete && (p == nil || p.isDropped()) && canCountRows(v.q.Cond, s, t) &&
		(t.IsComplete() || !v.q.Cond.HasNumberIndex())
}

// isUnchanged reports whether no row of the tables has changed since the kept result was computed.
func (v *aggregation) isUnchanged() bool {
	for _, s := range v.views {
		t := v.table(s)
		t.Lock()
		same := v.run.versions[t] == t.Version()
		t.Unlock()
		if !same {
			return false
		}
	}
	return true
}

// eachPart calls yield with the part of each kind while its table is locked. It yields nil for a kind without a
// part. It returns the versions of the tables.
func (v *aggregation) eachPart(yield func(*part)) map[*columns.Table]int64 {
	versions := map[*columns.Table]int64{}
	for _, s := range v.views {
		t := v.table(s)
		t.Lock()
		p := v.run.parts[t]
		if p != nil && p.isDropped() {
			p = nil
		}
		yield(p)
		versions[t] = t.Version()
		t.Unlock()
	}
	return versions
}

// complete computes the missing parts. Parts are computed from columns at once, or from records, which are read in
// the background if this takes too long.
func (v *aggregation) complete(ctx context.Context) error {
	if v.measure == nil && v.run.incomplete {
		return nil
	}
	var read []*lang.KindView
	for i, s := range v.views {
		t := v.table(s)
		t.Lock()
		p := v.run.parts[t]
		if p != nil && p.isDropped() {
			t.EndWatch(p.watch)
			delete(v.run.parts, t)
			p = nil
		}
		if p == nil {
			if v.run.startedAt = v.s.o.Now(); !v.addFromColumns(ctx, s, t, v.states[i]) {
				read = append(read, s)
			}
		}
		t.Unlock()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if v.run.background != nil || len(read) > 0 {
		return v.awaitRead(read)
	}
	return nil
}

// addFromColumns computes the part of a kind from its columns, which the caller has locked. It returns false when the
// columns cannot decide what matches. It computes nothing while the columns are being filled.
func (v *aggregation) addFromColumns(ctx context.Context, s *lang.KindView, t *columns.Table, st columns.State) bool {
	goOn := func() bool { return ctx.Err() == nil }
	if v.measure == nil {
		if !v.countOnly || !t.IsComplete() && (st.Full || v.q.Cond.HasNumberIndex()) || !canCountRows(v.q.Cond, s, t) {
			return false
		}
		n := &tally{view: s, cond: v.q.Cond}
		if t.IsComplete() && n.fill(t, goOn) {
			v.keepPart(&part{table: t, watch: t.Follow(n), count: n}).watch.Ready = true
		}
		return !n.full
	}
	test := v.q.Cond.CompileRows(s, t)
	if s.Rule != nil || test == nil {
		return false
	}
	o := v.measure.aggregateOptions(s, t)
	o.Rows = test
	if p := aggregate.New(t, o); p.Fill(goOn) {
		v.keepPart(&part{table: t, watch: t.Watch(p), sum: p}).watch.Ready = true
	}
	return true
}

// beginPart creates an empty part for a kind whose records must be read.
func (v *aggregation) beginPart(s *lang.KindView) *part {
	t := v.table(s)
	t.Lock()
	defer t.Unlock()
	if v.measure == nil {
		n := &tally{view: s, cond: v.q.Cond}
		return v.keepPart(&part{table: t, watch: t.Follow(n), count: n})
	}
	o := v.measure.aggregateOptions(s, t)
	var c lang.Candidate
	cond := v.q.Cond
	o.Records = func(r *understudy.Record) bool { return s.Read(&c, r) && cond.Match(&c) }
	p := aggregate.New(t, o)
	return v.keepPart(&part{table: t, watch: t.Watch(p), sum: p})
}

func (v *aggregation) keepPart(p *part) *part {
	v.run.parts[p.table] = p
	return p
}

// backgroundRead reads the matches of a search and may continue after the answer was sent.
type backgroundRead struct {
	done       chan struct{}
	err        error // the error of the read; valid once done is closed
	incomplete bool  // whether some matches were not added
	timedOut   bool  // whether the time limit is why matches were not added; otherwise memory was too small
}

// awaitRead reads the matches of some kinds, or waits for a read that is already running. If the read takes too long,
// awaitRead returns nil and the parts are not Ready.
func (v *aggregation) awaitRead(read []*lang.KindView) error {
	f := v.run.background
	if f == nil {
		if f = v.startRead(read); f == nil {
			return nil // a background read for another search is running
		}
		v.run.background = f
	}
	var timeout <-chan time.Time
	if v.measure == nil && !v.countOnly {
		timeout = time.After(v.s.o.Limits.Count)
	}
	done := false
	err := v.waitUnlocked(func() {
		select {
		case <-f.done:
			done = true
		case <-timeout:
		case <-v.deadline:
		}
	})
	if err != nil || !done || v.run.background != f {
		return err
	}
	v.run.background = nil
	switch {
	case f.err == nil && f.incomplete && v.measure == nil:
		v.run.reset()
		v.run.incomplete = true
	case f.err == nil:
		v.run.incomplete, v.run.timedOut = v.run.incomplete || f.incomplete, v.run.timedOut || f.timedOut
	default:
		v.run.reset()
		if v.measure != nil && !errors.Is(f.err, errColumnsReset) {
			return f.err
		}
	}
	return nil
}

// errColumnsReset ends a read whose table was reset during the read.
var errColumnsReset = errors.New("search: the columns start again")

// startRead starts to read the matches of some kinds in the background. Only one read runs at a time. It returns nil if
// another read is running and the caller cannot wait for it.
func (v *aggregation) startRead(some []*lang.KindView) *backgroundRead {
	all := v.memory
	select {
	case all.readSlot <- struct{}{}:
	default:
		if !v.countOnly {
			return nil
		}
		select {
		case all.readSlot <- struct{}{}:
		case <-v.deadline:
			return nil
		}
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.ctx.Err() != nil {
		<-all.readSlot
		return nil
	}
	parts := map[*lang.KindView]*part{}
	for _, s := range some {
		parts[s] = v.beginPart(s)
	}
	q := *v.q
	q.Views = some
	f := &backgroundRead{done: make(chan struct{})}
	all.work.Go(func() {
		defer close(f.done) // closed last, because a waiting caller may then start another read
		defer func() { <-all.readSlot }()
		ctx, cancel := context.WithTimeout(all.ctx, backgroundReadTime)
		defer cancel()
		f.incomplete, f.err = v.addMatches(ctx, &q, parts)
		if late := ctx.Err(); errors.Is(late, context.DeadlineExceeded) {
			f.incomplete, f.timedOut, f.err = true, true, nil
		} else if f.err == nil {
			f.err = late
		}
		for _, p := range parts {
			p.table.Lock()
			p.watch.Ready = f.err == nil
			p.table.Unlock()
		}
		if f.err != nil && v.measure == nil && !errors.Is(f.err, errColumnsReset) && all.ctx.Err() == nil {
			v.s.o.Logger.Warn("search: counting after a search", "err", f.err)
		}
	})
	return f
}

// addMatches adds every match to its part. It returns incomplete = true when some matches could not be added.
func (v *aggregation) addMatches(ctx context.Context, q *lang.BoundQuery, parts map[*lang.KindView]*part) (incomplete bool, err error) {
	n, looked := 0, 0
	var stopped error
	err = v.s.scan(ctx, q, 0, false, func(f foundRecord, c *lang.Candidate) bool {
		if looked++; v.measure == nil && v.maxAge > 0 && looked > maxRecounted {
			incomplete = true
			return false
		}
		if c == nil {
			return true
		}
		p := parts[f.view]
		if n++; v.measure != nil && n%matchesPerRoomCheck == 0 {
			incomplete = incomplete || !v.s.tables.MakeRoom(p.table)
		}
		p.table.Lock()
		defer p.table.Unlock()
		switch {
		case p.isDropped():
			stopped = errColumnsReset
			return false
		case p.count != nil:
			p.count.assign(f.record.Number, p.count.group(c))
			incomplete = p.count.full || p.count.size() >= maxKept/2
			return !incomplete
		}
		row, ok := p.table.Row(f.record.Number)
		if !ok && !incomplete {
			row, ok = p.table.EnsureRow(f.record)
		}
		if incomplete = incomplete || !ok; ok {
			p.sum.Add(row)
		}
		return true
	})
	return incomplete, errors.Join(err, stopped)
}
