// Sum: what the matches of a search add up to, kept and brought up to date by what changed.

package search

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/search/aggregate"
	"understudy/internal/search/columns"
	"understudy/internal/search/lang"
)

// Bounds of the sums that are kept.
const (
	maxSums     = 200
	maxSumBytes = 32 << 20
	fillTime    = 2 * time.Minute // of finding the matches that the columns do not tell
)

// sums are the sums of one policy, by request and role. They are safe for concurrent use.
type sums struct {
	mu      sync.Mutex
	all     map[string]*keptSum
	used    int64
	bytes   int64
	filling chan struct{} // one sum's matches are read at a time
	ctx     context.Context
	cancel  context.CancelFunc
	work    sync.WaitGroup
}

// keptSum is one sum.
type keptSum struct {
	lock  chan struct{} // guards the fields below, but for used and size
	used  int64         // of sums
	size  int64         // of sums
	parts map[*columns.Table]*aggregate.Part
	fill  *fill
	short bool      // not every match could be read
	late  bool      // for want of time
	at    time.Time // when its parts were begun

	result   *query.SumResult // the last complete one; nil: there is none
	versions map[*columns.Table]int64
}

func newSums() *sums {
	s := &sums{all: map[string]*keptSum{}, filling: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// close ends what goes on behind the sums, and lets go of all.
func (s *sums) close() {
	s.mu.Lock()
	s.cancel()
	all := s.all
	s.all = map[string]*keptSum{}
	s.mu.Unlock()
	s.work.Wait()
	for _, k := range all {
		k.lock <- struct{}{}
		k.drop()
		<-k.lock
	}
}

// of is the sum of a key, an empty one where it is new; nil once the sums are closed.
func (s *sums) of(key string) *keptSum {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return nil
	}
	k := s.all[key]
	if k == nil {
		k = &keptSum{lock: make(chan struct{}, 1), parts: map[*columns.Table]*aggregate.Part{}}
		s.all[key] = k
	}
	s.used++
	k.used = s.used
	return k
}

// resize notes how many bytes a sum takes and lets go of those used least recently while
// they take too many.
func (s *sums) resize(keep *keptSum, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes += size - keep.size
	keep.size = size
	for len(s.all) > maxSums || s.bytes > maxSumBytes {
		oldest := ""
		for key, k := range s.all {
			if k != keep && (oldest == "" || k.used < s.all[oldest].used) {
				oldest = key
			}
		}
		if oldest == "" {
			return
		}
		k := s.all[oldest]
		s.bytes -= k.size
		k.size = 0
		delete(s.all, oldest)
		s.work.Go(func() { // who uses it ends first
			k.lock <- struct{}{}
			k.drop()
			<-k.lock
		})
	}
}

// drop lets go of what is kept. The caller holds the lock.
func (k *keptSum) drop() {
	for t, p := range k.parts {
		t.Lock()
		t.Unwatch(p)
		p.Reset()
		t.Unlock()
	}
	clear(k.parts)
	k.result, k.fill, k.short, k.late = nil, nil, false, false
}

// summing is one run of a sum.
type summing struct {
	s *Searcher
	c understudy.Caller
	q *lang.BoundQuery
	m *measure
	k *keptSum
	// enough ends the wait for a complete answer.
	enough <-chan struct{}
	out    *query.SumResult
	full   bool // not every record is in the columns
	more   bool // counting goes on
}

// Sum adds up the matches of a search as the caller may see them. It waits for a complete
// answer for a short time only, and says when one is not. Errors: as Find.
func (s *Searcher) Sum(ctx context.Context, c understudy.Caller, r query.SumRequest) (*query.SumResult, error) {
	leave, err := s.begin(c)
	if err != nil {
		return nil, err
	}
	defer leave()
	v := &summing{s: s, c: c}
	if v.q, v.m, err = s.summed(c, &r, s.o.Now()); err != nil {
		return nil, err
	}
	if v.k = s.sums.of(v.key(&r)); v.k == nil {
		return nil, understudy.ErrClosed
	}
	wait := r.Wait
	if wait <= 0 {
		wait = s.o.Limits.Sum
	}
	limited, cancel := context.WithTimeout(ctx, min(wait, s.o.Limits.Time))
	defer cancel()
	v.enough = limited.Done()
	select {
	case v.k.lock <- struct{}{}:
		defer func() { <-v.k.lock }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.sums.ctx.Done():
		return nil, understudy.ErrClosed
	}
	if err := v.run(ctx); err != nil {
		return nil, fmt.Errorf("search: sum: %w", err)
	}
	out := *v.out // v.out may be kept
	out.Unheld = s.unheld(ctx, v.m.views)
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

// key names what is kept for a request. Two callers of one key find the same records, and
// see the same of them.
func (v *summing) key(r *query.SumRequest) string {
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

// run brings the sum up to date and makes the answer.
func (v *summing) run(ctx context.Context) error {
	ruled := slices.ContainsFunc(v.m.views, func(s *lang.KindView) bool { return s.Rule != nil })
	if old := v.s.o.Now().Sub(v.k.at) >= ruleAge; old && (ruled || v.q.Relative) {
		v.k.drop()
	}
	for filled := false; ; filled = true {
		states, err := v.refresh(ctx)
		if err != nil {
			return err
		}
		if ruled && v.k.result != nil && !v.unchanged() { // what a rule says may be of other records
			v.k.drop()
		}
		if v.k.result != nil && v.unchanged() && !v.more {
			v.out = v.k.result
			return nil
		}
		if !filled {
			if err := v.complete(ctx); err != nil {
				return err
			}
			continue // what changed meanwhile is read now
		}
		v.render(states)
		return nil
	}
}

// refresh brings the columns up to date.
func (v *summing) refresh(ctx context.Context) (states []columns.State, err error) {
	v.more, v.full = false, false
	for _, s := range v.m.views {
		t := v.table(s)
		whole := v.compiled(s, t)
		st, err := v.s.tables.Refresh(ctx, v.enough, t, whole)
		if err != nil {
			return nil, err
		}
		states = append(states, st)
		v.more = v.more || !st.Current || whole && !st.Whole && !st.Full
		v.full = v.full || whole && !st.Whole && st.Full
	}
	return states, nil
}

func (v *summing) table(s *lang.KindView) *columns.Table { return v.s.tables.Table(s.Source, s.Kind) }

// compiled reports whether the columns of a kind tell what matches.
func (v *summing) compiled(s *lang.KindView, t *columns.Table) bool {
	t.Lock()
	defer t.Unlock()
	return s.Rule == nil && v.q.Cond.Rows(s, t) != nil
}

// unchanged reports whether no row has changed since the last complete answer.
func (v *summing) unchanged() bool {
	for _, s := range v.m.views {
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

// complete adds up the kinds that are not yet: from the columns now, or from the records,
// behind the answer when that takes too long.
func (v *summing) complete(ctx context.Context) error {
	var read []*lang.KindView
	for _, s := range v.m.views {
		t := v.table(s)
		t.Lock()
		p := v.k.parts[t]
		if p != nil && p.Gone() {
			t.Unwatch(p)
			delete(v.k.parts, t)
			p = nil
		}
		if p == nil {
			if v.k.at = v.s.o.Now(); s.Rule != nil || !v.fromColumns(ctx, s, t) {
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
// do not tell what matches.
func (v *summing) fromColumns(ctx context.Context, s *lang.KindView, t *columns.Table) bool {
	test := v.q.Cond.Rows(s, t)
	if test == nil {
		return false
	}
	o := v.m.options(s, t)
	o.Rows = test
	p := aggregate.New(t, o)
	if p.Fill(func() bool { return ctx.Err() == nil }) {
		t.Watch(p)
		v.k.parts[t] = p
	}
	return true
}
