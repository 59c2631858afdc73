// Counts: kept counts of searches, brought up to date by the changes since.

package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/search/lang"
)

// Bounds of what is kept.
const (
	maxKept  = 32 << 20    // bytes of all tallies
	maxAsks  = 500         // searches whose counts are kept
	maxCatch = 1000        // changes that are read one by one; after more the count begins anew
	ruleAge  = time.Minute // of counts under a row rule that looks at more than the record
	timeAge  = time.Second // of counts of a search that depends on the time of day
)

// counts are the counts of the searches of one policy, by request and role. They are
// safe for concurrent use.
type counts struct {
	mu    sync.Mutex
	all   map[string]*countRun
	used  int64 // rises with every use
	bytes int64

	scanning chan struct{} // one counts all at a time
	ctx      context.Context
	cancel   context.CancelFunc
	scans    sync.WaitGroup
}

// countRun is the count of one search.
type countRun struct {
	lock chan struct{} // guards the fields below
	used int64         // of counts
	size int64         // of counts

	edition edition
	at      time.Time
	total   query.Count
	facets  []query.SearchFacet // nil: nothing was counted
	tally   *tally              // of all, at the edition; nil: there is none
	scan    chan struct{}       // closed when the full count ends; nil: no full count runs
	large   bool                // the search has too many matches for a full count
}

// edition says which records the store has.
type edition struct{ change, silent int64 }

func newCounts() *counts {
	c := &counts{all: map[string]*countRun{}, scanning: make(chan struct{}, 1)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

func (c *counts) close() {
	c.mu.Lock()
	c.cancel()
	c.mu.Unlock()
	c.scans.Wait()
}

// of returns the kept counts of a search, new ones where it has none. It returns nil for a search
// of several sources. What depends on the time of day is kept only for those who ask for the count
// alone: counting it behind every search would cost more than it saves.
func (c *counts) of(v *execution) *countRun {
	if len(v.q.Views) == 0 || v.q.Relative && !v.request.CountOnly {
		return nil
	}
	source := v.q.Views[0].Source
	key := fmt.Sprintf("%q %q %q %q %q %q %#v %d", v.c.Role(), v.c.Source, v.request.Source, v.request.Kinds, v.request.Text,
		v.request.Number, v.request.Where, v.s.written(v.q))
	if slices.ContainsFunc(v.q.Views, func(s *lang.KindView) bool { return s.Source != source }) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.all[key]
	if k == nil {
		k = &countRun{lock: make(chan struct{}, 1)}
		c.all[key] = k
	}
	c.used++
	k.used = c.used
	c.evict(k)
	return k
}

// evict removes the least recently used counts until the rest is within bounds. A
// search that uses one of them keeps it.
func (c *counts) evict(keep *countRun) {
	for len(c.all) > maxAsks || c.bytes > maxKept {
		oldest := ""
		for key, k := range c.all {
			if k != keep && (oldest == "" || k.used < c.all[oldest].used) {
				oldest = key
			}
		}
		if oldest == "" {
			return
		}
		c.bytes -= c.all[oldest].size
		c.all[oldest].size = 0
		delete(c.all, oldest)
	}
}

// resize notes how many bytes a count takes now.
func (c *counts) resize(k *countRun, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.all {
		if one == k {
			c.bytes += size - k.size
			k.size = size
			c.evict(k)
			return
		}
	}
}

// count fills in total and facets from the kept counts, brought up to date. Without
// them it starts a full count in the background, and counts now for a short time.
func (v *execution) count(ctx context.Context) error {
	k := v.s.counts.of(v)
	if k == nil {
		return v.countOnce(ctx)
	}
	if err := k.acquire(ctx); err != nil {
		return err
	}
	defer k.release()
	if err := v.bringUp(ctx, k); err != nil {
		return err
	}
	total := k.total
	v.out.Total, v.out.Facets = &total, make([]query.SearchFacet, len(k.facets))
	for i, f := range k.facets {
		f.Values = slices.Clone(f.Values)
		v.out.Facets[i] = f
	}
	if total.AtLeast {
		v.settle() // with the hits of this search
	}
	return nil
}

// countOnce fills in total and facets of a search whose counts are not kept.
func (v *execution) countOnce(ctx context.Context) error {
	ready, err := v.refreshRows(ctx)
	if err != nil {
		return err
	}
	if !ready {
		return v.countNow(ctx, v.request.CountOnly)
	}
	t, ok, err := v.tallyRows(ctx)
	if err != nil {
		return err
	}
	if !ok {
		return v.countNow(ctx, v.request.CountOnly)
	}
	v.out.Total, v.out.Facets = &query.Count{N: t.total}, t.facets(false)
	return nil
}

func (k *countRun) acquire(ctx context.Context) error {
	select {
	case k.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (k *countRun) release() { <-k.lock }

// bringUp updates the kept counts to the current records. The caller holds the lock.
func (v *execution) bringUp(ctx context.Context, k *countRun) error {
	for scanned := false; ; scanned = true {
		now, err := v.edition(ctx)
		if err != nil {
			return err
		}
		old := !scanned && v.expires() && v.s.o.Now().Sub(k.at) >= v.maxAge()
		switch fresh := k.facets != nil && k.edition == now; {
		case fresh && !old:
			if k.large || !k.total.AtLeast {
				return nil
			}
			if done, err := v.countRows(ctx, k, now); done || err != nil {
				return err
			}
			v.scan(k, 0) // another search was counting before
			return nil
		case k.large:
			return v.countInto(ctx, k, now)
		case k.scan != nil && k.facets != nil:
			return nil // the full count is still running
		case k.tally != nil && k.edition.silent == now.silent && !old:
			if done, err := v.catchUp(ctx, k, now); done || err != nil {
				return err
			}
		}
		k.tally, k.facets = nil, nil
		if !scanned {
			if done, err := v.countRows(ctx, k, now); done || err != nil {
				return err
			}
		}
		wait := time.Duration(0)
		if v.request.CountOnly {
			wait = v.patience()
		}
		if scanned || !v.scan(k, wait) || !v.await(ctx, k) {
			return v.countInto(ctx, k, now)
		}
	}
}

// ruled reports whether a row rule looks at more than the record: what it finds may change
// without a change of a record.
func (v *execution) ruled() bool {
	return slices.ContainsFunc(v.q.Views, func(s *lang.KindView) bool { return s.Rule != nil && !s.Rule.Steady })
}

// expires reports whether what the search finds may change without a change of a record.
func (v *execution) expires() bool { return v.q.Relative || v.ruled() }

// maxAge returns how old a count of a search that expires may become.
func (v *execution) maxAge() time.Duration {
	if v.q.Relative {
		return timeAge
	}
	return ruleAge
}

// countRows counts from the columns. It reports false when they do not tell every match. The caller
// holds the lock, which is released while the columns are brought up to date.
func (v *execution) countRows(ctx context.Context, k *countRun, now edition) (done bool, err error) {
	k.release()
	ready, err := v.refreshRows(ctx)
	k.lock <- struct{}{}
	if !ready || err != nil {
		return false, err
	}
	t, ok, err := v.tallyRows(ctx)
	if !ok || err != nil {
		return false, err
	}
	k.tally, k.edition, k.at, k.total, k.facets = t, now, v.s.o.Now(), query.Count{N: t.total}, t.facets(false)
	v.s.counts.resize(k, t.size())
	return true, nil
}

func (v *execution) edition(ctx context.Context) (e edition, err error) {
	e.change, e.silent, err = v.s.o.Store.Edition(ctx, v.q.Views[0].Source)
	return e, err
}

// countInto counts now. The count is kept until a record changes.
func (v *execution) countInto(ctx context.Context, k *countRun, now edition) error {
	if err := v.countNow(ctx, false); err != nil {
		return err
	}
	k.edition, k.at, k.total, k.facets = now, v.s.o.Now(), *v.out.Total, v.out.Facets
	return nil
}

// catchUp reads only the changes since the kept count. It reports false when there are
// too many. A change during it may be counted already; the next call reads it again.
func (v *execution) catchUp(ctx context.Context, k *countRun, now edition) (done bool, err error) {
	facets, after := k.facets, k.edition.change
	k.facets = nil // until it is complete
	changed, err := v.follow(ctx, k.tally, after)
	switch {
	case errors.Is(err, errLarge):
		return false, nil
	case err != nil:
		k.tally = nil
		return false, err
	}
	if k.edition, k.facets = now, facets; changed {
		k.total, k.facets = query.Count{N: k.tally.total}, k.tally.facets(false)
		v.s.counts.resize(k, k.tally.size())
	}
	return true, nil
}

// follow applies the changes after one to a tally. It reports whether one of them is
// of a counted kind.
func (v *execution) follow(ctx context.Context, t *tally, after int64) (changed bool, err error) {
	source := v.q.Views[0].Source
	changes, err := v.s.o.Store.Changes(ctx, source, after, maxCatch)
	if err == nil && len(changes) == maxCatch {
		err = errLarge
	}
	for _, s := range v.q.Views {
		q := query.RecordQuery{Source: source, Kinds: []string{s.Kind.Name}}
		for _, c := range changes {
			if c.Kind == s.Kind.Name {
				q.IDs = append(q.IDs, c.ID)
				t.set(c.Record, nil) // it may be gone
			}
		}
		if len(q.IDs) == 0 || err != nil {
			continue
		}
		changed = true
		var c lang.Candidate
		err = v.s.o.Store.Seek(ctx, q, func(f query.Hit) bool {
			t.set(f.Number, v.match(&c, s, f.Record))
			return ctx.Err() == nil
		})
	}
	return changed, errors.Join(err, ctx.Err())
}

// match makes c of a record. It is nil when the record does not match.
func (v *execution) match(c *lang.Candidate, in *lang.KindView, r *understudy.Record) *lang.Candidate {
	if in == nil || !in.See(c, r) || !v.q.Cond.Holds(c) {
		return nil
	}
	return c
}
