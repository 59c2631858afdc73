// Scan: the full count of a search, in the background.

package search

import (
	"context"
	"errors"
	"time"

	"understudy/internal/query"
	"understudy/internal/search/lang"
)

// scanTime bounds a full count.
const scanTime = 2 * time.Minute

// scan starts a full count unless one runs for this search. It reports false when
// another search is being counted. The caller holds the lock.
func (v *execution) scan(k *countRun) bool {
	if k.scan != nil {
		return true
	}
	c := v.s.counts
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case c.scanning <- struct{}{}:
	default:
		return false
	}
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
			k.tally, k.edition, k.total, k.facets = t, begun, query.Count{N: t.total}, t.facets(false)
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
	looked := 0
	err = v.s.stream(ctx, v.q.Plan(), 0, false, func(f found) bool {
		t.set(f.Number, v.match(&c, f.view, f.Record))
		if looked++; looked%tellEvery == 0 {
			tell(t, begun)
		}
		return ctx.Err() == nil && !t.full && t.size() < maxKept/2
	})
	switch {
	case err == nil && ctx.Err() != nil:
		err = ctx.Err()
	case err == nil && (t.full || t.size() >= maxKept/2):
		err = errLarge
	}
	return t, begun, err
}

// await waits for the full count, as long as a count may take. It reports false when
// the count still runs. The lock is released during the wait.
func (v *execution) await(ctx context.Context, k *countRun) bool {
	done := k.scan
	k.release()
	late := time.NewTimer(v.s.o.Limits.Count)
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
