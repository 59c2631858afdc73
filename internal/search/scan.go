// Scan: the full count of a search, from the columns of its kinds or, in the background, from its records.

package search

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"time"

	"understudy/internal/query"
	"understudy/internal/search/columns"
	"understudy/internal/search/lang"
)

// scanTime bounds a full count.
const scanTime = 2 * time.Minute

// mostRecounted is how many records are read for a count that has to be made again though no record changed:
// each minute under a row rule that looks at more than the record, and each time for a search that depends
// on the time of day.
const mostRecounted = 100_000

// scan starts a full count unless one runs for this search. It reports false when
// another search is still being counted after the wait. The caller holds the lock.
func (v *execution) scan(k *countRun, wait time.Duration) bool {
	if k.scan != nil {
		return true
	}
	c := v.s.counts
	select {
	case c.scanning <- struct{}{}:
	default:
		late := time.NewTimer(wait)
		defer late.Stop()
		select {
		case c.scanning <- struct{}{}:
		case <-late.C:
			return false
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		<-c.scanning
		return false
	}
	done := make(chan struct{})
	k.scan = done
	behind := &execution{s: v.s, c: v.c, request: v.request, q: v.q, began: v.began}
	c.scans.Go(func() {
		defer close(done) // last: a waiting search may scan next
		defer func() { <-c.scanning }()
		ctx, cancel := context.WithTimeout(c.ctx, scanTime)
		defer cancel()
		t, begun, err := behind.all(ctx, func(t *tally, begun edition) { // the count so far
			if k.acquire(ctx) == nil {
				k.edition, k.total, k.facets = begun, query.Count{N: t.total, AtLeast: true}, t.facets(true)
				k.release()
			}
		})
		if k.acquire(c.ctx) != nil {
			return
		}
		defer k.release()
		k.scan = nil
		switch {
		case err == nil:
			k.tally, k.edition, k.at, k.total, k.facets = t, begun, v.began, query.Count{N: t.total}, t.facets(false)
			c.resize(k, t.size())
		case errors.Is(err, errLarge), errors.Is(err, context.DeadlineExceeded):
			k.large = true
		default:
			v.s.o.Logger.Warn("search: counting behind a search", "err", err)
		}
	})
	return true
}

var errLarge = errors.New("search: too much to be counted whole")

// tellEvery is after how many records a full count reports its progress.
const tellEvery = 1 << 14

// all counts every match of the search and reports its progress. begun is the edition
// at its start: later changes may be counted, and are read again.
func (v *execution) all(ctx context.Context, tell func(*tally, edition)) (t *tally, begun edition, err error) {
	if begun, err = v.edition(ctx); err != nil {
		return nil, begun, err
	}
	t = &tally{}
	var c lang.Candidate
	looked, most := 0, math.MaxInt
	if v.expires() {
		most = mostRecounted
	}
	err = v.s.stream(ctx, v.q.Plan(), 0, false, func(f found) bool {
		t.set(f.record.Number, v.match(&c, f.view, f.record))
		if looked++; looked%tellEvery == 0 {
			tell(t, begun)
		}
		return ctx.Err() == nil && !t.full && t.size() < maxKept/2 && looked <= most
	})
	switch {
	case err == nil && ctx.Err() != nil:
		err = ctx.Err()
	case err == nil && (t.full || t.size() >= maxKept/2 || looked > most):
		err = errLarge
	}
	return t, begun, err
}

// await waits for the full count, as long as a count may take. It reports false when
// the count still runs. The lock is released during the wait.
func (v *execution) await(ctx context.Context, k *countRun) bool {
	done := k.scan
	k.release()
	late := time.NewTimer(v.patience())
	defer late.Stop()
	over := false
	select {
	case <-done:
		over = true
	case <-late.C:
	case <-ctx.Done():
	}
	k.lock <- struct{}{}
	return over
}

// patience is how long a count may wait until every match is counted. What is asked for the
// count alone can wait longer: a page that shows it is sent before.
func (v *execution) patience() time.Duration {
	if v.request.CountOnly {
		return v.s.o.Limits.Time / 2
	}
	return v.s.o.Limits.Count
}

// refreshRows brings the columns of the searched kinds up to date. It reports false when they do
// not tell what matches, or every value that is counted, and when that takes too long.
func (v *execution) refreshRows(ctx context.Context) (ready bool, err error) {
	if !v.request.CountOnly {
		return false, nil // its hits are read by an index, which may be far less than all
	}
	limited, cancel := context.WithTimeout(ctx, v.patience())
	defer cancel()
	for _, s := range v.q.Views {
		if !v.countsRows(s) {
			return false, nil
		}
	}
	for _, s := range v.q.Views {
		if !v.q.Cond.Possible(s) {
			continue
		}
		state, err := v.s.tables.Refresh(ctx, limited.Done(), v.s.tables.Table(s.Source, s.Kind), true)
		if err != nil || !state.Current || !state.Whole {
			return false, err
		}
	}
	return true, nil
}

// countsRows reports whether the columns of a kind tell what matches, and every value that is counted.
func (v *execution) countsRows(s *lang.KindView) bool {
	t := v.s.tables.Table(s.Source, s.Kind)
	t.Lock()
	defer t.Unlock()
	if s.Rule != nil || v.q.Cond.Rows(s, t) == nil {
		return false
	}
	if _, ok := s.Fields[s.Kind.Clock]; ok && t.Times(s.Kind.Clock) == nil {
		return false
	}
	return !slices.ContainsFunc(s.Counted, func(field string) bool {
		c := t.Column(field)
		return c == nil || c.Sort != columns.Word || !c.Readable()
	})
}

// tallyRows counts the rows that match. It reports false when the columns do not tell every match,
// any more.
func (v *execution) tallyRows(ctx context.Context) (t *tally, ok bool, err error) {
	t = &tally{}
	for _, s := range v.q.Views {
		if !v.q.Cond.Possible(s) {
			continue
		}
		if !v.countsRows(s) || !v.tallyKind(ctx, t, s) {
			return nil, false, ctx.Err()
		}
	}
	return t, true, nil
}

// tallyKind counts those of one kind.
func (v *execution) tallyKind(ctx context.Context, t *tally, s *lang.KindView) bool {
	table := v.s.tables.Table(s.Source, s.Kind)
	table.Lock()
	defer table.Unlock()
	test := v.q.Cond.Rows(s, table)
	if test == nil || !table.Whole() {
		return false
	}
	var clock func(row int32) int64
	if s.ShowsTime() {
		if clock = lang.Clock(s.Kind, table); clock == nil {
			return false
		}
	}
	counted := make([]*columns.Column, len(s.Counted))
	for i, field := range s.Counted {
		counted[i] = table.Column(field)
	}
	groups := map[string]uint32{} // by the day and the codes of a row
	var key []byte
	looked := 0
	table.Records(func(record int64, row int32) bool {
		if looked++; looked%tellEvery == 0 && ctx.Err() != nil {
			return false
		}
		if !test(row) {
			return true
		}
		day := int64(0)
		if clock != nil {
			if day = clock(row); day != 0 {
				day -= (day%86400 + 86400) % 86400
				day++ // of its first second, which is not 0
			}
		}
		key = binary.AppendVarint(key[:0], day)
		for _, c := range counted {
			key = binary.LittleEndian.AppendUint32(key, c.Word(row))
		}
		to, known := groups[string(key)]
		if !known {
			to = t.groupOf(s, dayOf(day), func(field string) (string, bool) {
				c := counted[slices.Index(s.Counted, field)]
				if c.Word(row) == 0 {
					return "", false
				}
				return c.Text(c.Word(row)), true
			})
			groups[string(key)] = to
		}
		t.assign(record, to)
		return !t.full
	})
	return !t.full && ctx.Err() == nil
}
