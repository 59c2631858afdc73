// Package seek answers questions about what is held, in short read transactions: a plan joins the postings of the
// indexes, a walk goes from posting to row, and bodies are unpacked ahead.
package seek

import (
	"context"
	"database/sql/driver"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store/catalog"
	"understudy/internal/store/codec"
	"understudy/internal/store/index"
	"understudy/internal/store/order"
	"understudy/internal/store/records"
	"understudy/internal/store/sqlite"
	"understudy/internal/store/words"
)

const (
	// seekFirst is how many records the first part of a Seek gives when it is not said how many are wanted, seekMost
	// how many any part; seekLook how many places one part looks at, seekFew how many of them one statement looks up.
	seekFirst = 64
	seekMost  = 512
	seekLook  = 2048
	seekFew   = 16
)

// Seeker answers questions about what is held. Many goroutines may use it at once.
type Seeker struct {
	pool    *sqlite.Pool
	catalog *catalog.Catalog
	records *records.Opener
	index   *index.Index
	epoch   *atomic.Int64
	now     func() time.Time
	buffers sync.Pool // *[]byte that blocks are unpacked into
}

// New makes one of a file. epoch is twice how often records made room for others, and odd
// until that is committed or not.
func New(pool *sqlite.Pool, catalog *catalog.Catalog, records *records.Opener, index *index.Index, epoch *atomic.Int64,
	now func() time.Time) *Seeker {
	return &Seeker{pool: pool, catalog: catalog, records: records, index: index, epoch: epoch, now: now}
}

// Seek hands out records as the question has it, until yield returns false. It reads a few at a time and holds
// nothing while yield runs: what is saved meanwhile may show. A record that changes meanwhile is neither missed nor
// told twice; one that a page moves may be. Terms are compared with the bodies, so what comes fulfils them. Errors:
// ErrInvalid.
func (k *Seeker) Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error {
	leave, err := k.pool.Begin()
	if err != nil {
		return err
	}
	defer leave()
	s, err := k.seek(&q)
	if err != nil {
		return sqlite.Failed(false, err, "seek in %s", q.Source)
	}
	given, doubled := 0, seekFirst
	for !s.ended {
		size := min(q.Want-given, seekMost)
		if size <= 0 {
			size, doubled = doubled, min(2*doubled, seekMost)
		}
		if q.Limit > 0 {
			size = min(size, q.Limit-given)
		}
		var found []query.Hit
		err := k.pool.Read(ctx, func(c *sqlite.Conn) (err error) {
			found, err = s.part(ctx, c, size)
			return err
		})
		if err != nil {
			return sqlite.Failed(false, err, "seek in %s", q.Source)
		}
		for i := range found {
			if !yield(found[i]) {
				return nil
			}
		}
		if given += len(found); q.Limit > 0 && given >= q.Limit {
			return nil
		}
	}
	return nil
}

// seek makes a question ready, or refuses what means nothing.
func (k *Seeker) seek(q *query.RecordQuery) (*recordSearch, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	s := &recordSearch{seeker: k, p: k.plan(q), below: q.Below, epoch: k.epoch.Load()}
	if q.Text == nil {
		return s, nil
	}
	var err error
	s.p.text, err = words.PlanOf(q.Text)
	return s, err
}

// recordSearch is one question under way.
type recordSearch struct {
	seeker *Seeker
	p      *seekPlan
	below  query.OrderKey // of the record looked at last
	last   heldAt
	epoch  int64 // of the seeker, when below was right
	ended  bool
}

// heldAt is a record where it stands.
type heldAt struct {
	plan        *kindPlan
	record      int64
	place       query.OrderKey
	shape       *catalog.Shape
	version     int64
	seen, state int64
	since       int64
}

// part is the next records, at most size.
func (s *recordSearch) part(ctx context.Context, c *sqlite.Conn, size int) (found []query.Hit, err error) {
	if err := s.prepare(ctx, c); err != nil {
		return nil, err
	}
	b := &bodies{o: s.seeker.records.Open(c), buffers: &s.seeker.buffers, blocks: map[int64]*unpacking{}}
	defer b.end()
	look := func() error {
		h, e, err := b.next()
		if err != nil {
			return err
		}
		f, ok, err := s.record(c, h, e)
		if ok {
			found = append(found, f)
		}
		return err
	}
	want := func() int { return size - len(found) - len(b.waiting) }
	err = s.each(ctx, c, want, func(some []*heldAt) (bool, error) {
		err := b.ask(some)
		for err == nil && len(b.waiting) > 0 && (len(b.waiting) > ahead || len(found)+len(b.waiting) >= size) {
			err = look()
		}
		return len(found) < size, err
	})
	for err == nil && len(b.waiting) > 0 {
		err = look()
	}
	return found, err
}

// prepare looks whether the record looked at last has moved to make room for
// others, and which records have changed since.
func (s *recordSearch) prepare(ctx context.Context, c *sqlite.Conn) error {
	before := s.seeker.epoch.Load()
	if err := s.seeker.index.Searchable(c, s.p.q); err != nil {
		return err
	}
	if err := s.follow(c, before); err != nil {
		return err
	}
	if s.p.q.Since == 0 || s.p.since != nil {
		return nil
	}
	s.p.since = make(recordSet, 1)
	source, _ := s.seeker.catalog.Source(s.p.q.Source)
	return c.Query(selectSince, 0, []driver.Value{source, s.p.q.Since}, func(r []driver.Value) error {
		n, count := r[0].(int64), r[1].(int64)
		for i := max(s.p.q.Since+1-n, 0); i < count; i++ {
			s.p.since.set(r[2].(int64)+i, understudy.ChangeType(r[3].(int64)) != understudy.Went)
		}
		return sqlite.CheckContext(ctx)
	})
}

// follow goes on from where the record looked at last stands now, if any made room for others since then. before is
// what the seeker's epoch was before this read transaction began.
func (s *recordSearch) follow(c *sqlite.Conn, before int64) error {
	now := before
	if s.last.record != 0 || s.below != s.p.q.Below {
		var at order.Position
		// The first look into the file: what is committed from here on is not seen.
		_, err := c.One(selectPlaceOf, []driver.Value{s.last.record * records.Slots, s.last.record*records.Slots + records.Slots - 1},
			func(r []driver.Value) { at = order.ReadPosition(r[0]) })
		if now = s.seeker.epoch.Load(); err != nil || now == s.epoch {
			return err
		}
		switch {
		case s.last.record == 0: // nothing was looked at yet but places to pass
			s.below = s.p.q.Below
		case at.At != order.Nowhere:
			s.below = order.KeyOf(at.At, s.last.plan.kind.Number)
		}
	}
	if s.epoch = before; now != before || now%2 != 0 {
		s.epoch = unsettled // that may be committed, and not seen yet
	}
	return nil
}

var (
	selectPlaceOf = &sqlite.Statement{Head: "SELECT place FROM held WHERE number BETWEEN ? AND ? AND place IS NOT NULL LIMIT 1"}
	selectSince   = &sqlite.Statement{Head: "SELECT n, count, record, what FROM change WHERE source = ?1 " +
		"AND n >= coalesce((SELECT max(n) FROM change WHERE source = ?1 AND n <= ?2), 0) AND n + count > ?2 + 1 ORDER BY n"}
	selectShown = &sqlite.Statement{Head: "SELECT at, number, version, seen, state, coalesce(since, 0) FROM place CROSS " +
		"JOIN held ON number BETWEEN record * ?2 AND record * ?2 + ?2 - 1 WHERE kind = ?1 AND state & 12 = 0 AND at IN (", Tuple: "?", Tail: ")"}
)

// record is what is told of a record; ok is false when it is not meant.
func (s *recordSearch) record(c *sqlite.Conn, h *heldAt, e *codec.Entry) (f query.Hit, ok bool, err error) {
	if !h.plan.fulfils(s.p.q, e.ID, e.Parent, e.Body) {
		return f, false, nil
	}
	if h.since == 0 {
		if h.since, err = records.MadeAt(c, h.version); err != nil {
			return f, false, err
		}
	}
	k := h.plan.kind
	rec := &understudy.Record{Source: k.Source, Kind: k.Name, Shape: h.shape.Name, ID: e.ID, Number: h.record, Version: h.version,
		Since: time.Unix(0, h.since).UTC(), Seen: time.Unix(0, h.seen).UTC(), Final: h.state&records.Final != 0,
		Invalid: h.state&records.Invalid != 0}
	rec.Body = slices.Clone(e.Body)
	return query.Hit{Record: rec, Clock: e.Clock, Order: h.place}, true, nil
}

// Count says how many records Seek finds: at most most of them (0: all), as far as it comes by a time (zero: none) or
// until ctx is over. It reads no body unless the question needs one.
func (k *Seeker) Count(ctx context.Context, q query.RecordQuery, most int64, by time.Time) (n query.Count, err error) {
	leave, err := k.pool.Begin()
	if err != nil {
		return n, err
	}
	defer leave()
	s, err := k.seek(&q)
	if err != nil {
		return n, sqlite.Failed(false, err, "count in %s", q.Source)
	}
	end := most
	if limit := int64(q.Limit); limit > 0 && (end <= 0 || limit <= end) {
		end = limit
	}
	for !s.ended {
		if !by.IsZero() && !k.now().Before(by) {
			n.AtLeast = true
			return n, nil
		}
		err := k.pool.Read(ctx, func(c *sqlite.Conn) error {
			if err := s.prepare(ctx, c); err != nil {
				return err
			}
			blocks := k.records.Open(c)
			return s.each(ctx, c, func() int { return seekFew }, func(some []*heldAt) (bool, error) {
				for _, h := range some {
					ok := true
					if !s.p.exact {
						var err error
						if ok, err = s.meant(blocks, h); err != nil {
							return false, err
						}
					}
					if ok {
						n.N++
					}
				}
				return end <= 0 || n.N <= end, nil
			})
		})
		if err != nil {
			return n, sqlite.Failed(false, err, "count in %s", q.Source)
		}
		if end > 0 && n.N > end {
			n.N, n.AtLeast = end, int64(q.Limit) != end
			return n, nil
		}
	}
	return n, nil
}

// meant reports whether a record's body fulfils the terms.
func (s *recordSearch) meant(blocks *records.Blocks, h *heldAt) (bool, error) {
	e, err := blocks.Entry(h.version)
	if err != nil {
		return false, err
	}
	return h.plan.fulfils(s.p.q, e.ID, e.Parent, e.Body), nil
}
