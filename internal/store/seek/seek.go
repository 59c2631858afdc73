// Package seek answers queries from stored records in short read transactions. A plan combines the postings of the
// indexes, a walk finds the rows of these postings, and bodies are unpacked in advance.
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
	"understudy/internal/store/db"
	"understudy/internal/store/index"
	"understudy/internal/store/order"
	"understudy/internal/store/records"
	"understudy/internal/store/words"
)

const (
	// Limits of one read transaction. defaultPartSize is how many records the first transaction of a Seek returns if the query
	// does not say how many it wants. maxPartSize is the maximum for any transaction. maxVisitedPlaces is how many places one
	// transaction visits, and placesPerStatement how many of them one statement reads.
	defaultPartSize    = 64
	maxPartSize        = 512
	maxVisitedPlaces   = 2048
	placesPerStatement = 16
)

// Seeker answers queries from stored records. It is safe for concurrent use.
type Seeker struct {
	pool    *db.Pool
	catalog *catalog.Catalog
	records *records.Opener
	index   *index.Index
	epoch   *atomic.Int64
	now     func() time.Time
	buffers sync.Pool // a pool of buffers (*[]byte) for unpacked blocks
}

// New returns a Seeker. epoch is twice the number of writes that moved records to make room. It is odd until such a
// write is finished.
func New(pool *db.Pool, catalog *catalog.Catalog, records *records.Opener, index *index.Index, epoch *atomic.Int64,
	now func() time.Time) *Seeker {
	return &Seeker{pool: pool, catalog: catalog, records: records, index: index, epoch: epoch, now: now}
}

// Seek calls yield for each result in the order of the query, until yield returns false. It reads a few results at a
// time and holds no connection while yield runs, so it may return the results of later saves. A record that changes
// meanwhile is neither missed nor returned twice, unless a page moves it to another position. Seek compares the bodies
// of results with the predicates. It returns ErrInvalid for a query that makes no sense.
func (k *Seeker) Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error {
	s, err := k.prepareSearch(&q)
	if err != nil {
		return db.WrapError(false, err, "seek in %s", q.Source)
	}
	given, doubled := 0, defaultPartSize
	for !s.ended {
		size := min(q.ExpectedRows-given, maxPartSize)
		if size <= 0 {
			size, doubled = doubled, min(2*doubled, maxPartSize)
		}
		if q.Limit > 0 {
			size = min(size, q.Limit-given)
		}
		var found []query.Hit
		before := k.epoch.Load()
		err := k.pool.Read(ctx, func(c db.Conn) (err error) {
			found, err = s.readPart(ctx, c, before, size)
			return err
		})
		if err != nil {
			return db.WrapError(false, err, "seek in %s", q.Source)
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

// prepareSearch checks a query. The first part plans it, with what other processes have saved.
func (k *Seeker) prepareSearch(q *query.RecordQuery) (*recordSearch, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	s := &recordSearch{seeker: k, q: q, below: q.Below, epoch: k.epoch.Load()}
	if q.Text == nil {
		return s, nil
	}
	var err error
	s.text, err = words.NewPlan(q.Text)
	return s, err
}

// recordSearch is the state of one query.
type recordSearch struct {
	seeker *Seeker
	q      *query.RecordQuery
	text   *words.Plan
	p      *seekPlan      // nil before the first part
	below  query.OrderKey // the order key of the last record that was compared with the query
	last   heldAt
	epoch  int64 // the seeker's epoch when below was still right
	ended  bool
}

// heldAt is a stored record at its position.
type heldAt struct {
	plan        *kindPlan
	record      int64
	place       query.OrderKey
	shape       *catalog.Shape
	version     int64
	seen, state int64
	since       int64
}

// readPart returns the next results, at most size. before is the seeker's epoch before the transaction began.
func (s *recordSearch) readPart(ctx context.Context, c db.Conn, before int64, size int) (found []query.Hit, err error) {
	if err := s.prepare(ctx, c, before); err != nil {
		return nil, err
	}
	b := &bodies{o: s.seeker.records.Open(c), buffers: &s.seeker.buffers, blocks: map[int64]*unpacking{}}
	defer b.end()
	look := func() error {
		h, e, err := b.takeNext()
		if err != nil {
			return err
		}
		f, ok, err := s.buildHit(c, h, e)
		if ok {
			found = append(found, f)
		}
		return err
	}
	want := func() int { return size - len(found) - len(b.waiting) }
	err = s.walkRecords(ctx, c, want, func(some []*heldAt) (bool, error) {
		err := b.request(some)
		for err == nil && len(b.waiting) > 0 && (len(b.waiting) > readAhead || len(found)+len(b.waiting) >= size) {
			err = look()
		}
		return len(found) < size, err
	})
	for err == nil && len(b.waiting) > 0 {
		err = look()
	}
	return found, err
}

// prepare plans the query, checks that the indexes are ready, updates the current position if records have moved,
// and reads which records have changed since q.Since. before is the seeker's epoch before the transaction began.
func (s *recordSearch) prepare(ctx context.Context, c db.Conn, before int64) error {
	if s.p == nil {
		s.p = s.seeker.plan(s.q)
		s.p.text = s.text
	}
	if err := s.seeker.index.CheckSearchable(c, s.q); err != nil {
		return err
	}
	if err := s.updatePosition(c, before); err != nil {
		return err
	}
	if s.q.Since == 0 || s.p.since != nil {
		return nil
	}
	s.p.since = make(recordSet, 1)
	source, _ := s.seeker.catalog.Source(s.q.Source)
	return c.Query(selectSince, 0, []driver.Value{source, s.q.Since}, func(r []driver.Value) error {
		n, count := r[0].(int64), r[1].(int64)
		for i := max(s.q.Since+1-n, 0); i < count; i++ {
			s.p.since.set(r[2].(int64)+i, understudy.ChangeType(r[3].(int64)) != understudy.Deleted)
		}
		return db.CheckContext(ctx)
	})
}

// updatePosition updates below if any records have moved to make room since the last read transaction. before is the seeker's
// epoch before this read transaction began.
func (s *recordSearch) updatePosition(c db.Conn, before int64) error {
	now := before
	if s.last.record != 0 || s.below != s.q.Below {
		var at order.Position
		// This is the first read of the transaction, so the transaction does not see later commits.
		_, err := db.QueryRow(c, selectPlace, []driver.Value{s.last.record * records.Slots, s.last.record*records.Slots + records.Slots - 1},
			func(r []driver.Value) { at = order.ReadPosition(r[0]) })
		if now = s.seeker.epoch.Load(); err != nil || now == s.epoch {
			return err
		}
		switch {
		case s.last.record == 0: // no record was visited yet, only empty places
			s.below = s.q.Below
		case at.At != order.Nowhere:
			s.below = order.KeyOf(at.At, s.last.plan.kind.Number)
		}
	}
	if s.epoch = before; now != before || now%2 != 0 {
		s.epoch = unknownEpoch // a write that moved records may be committed but is not visible in this transaction
	}
	return nil
}

const (
	selectPosition = "SELECT at, number, version, seen, state, coalesce(since, 0) "
	shownRows      = " WHERE kind = ?1 AND state & 12 = 0 AND at IN ("
)

var (
	selectPlace = &db.Statement{Head: "SELECT place FROM held WHERE number BETWEEN ? AND ? AND place IS NOT NULL LIMIT 1"}
	selectSince = &db.Statement{Head: "SELECT n, count, record, what FROM change WHERE source = ?1 " +
		"AND n >= coalesce((SELECT max(n) FROM change WHERE source = ?1 AND n <= ?2), 0) AND n + count > ?2 + 1 ORDER BY n"}
	// CROSS makes SQLite read place first. LIMIT tells PostgreSQL that a record has few rows, so that it does not read the whole table.
	selectShown = &db.Statement{Head: selectPosition + "FROM place CROSS JOIN held ON number BETWEEN record * ?2 AND record * ?2 + ?2 - 1" +
		shownRows, Standard: selectPosition + "FROM place CROSS JOIN LATERAL (SELECT * FROM held WHERE number BETWEEN record * ?2 AND " +
		"record * ?2 + ?2 - 1 LIMIT 64) held" + shownRows, Tuple: "?", Tail: ")"}
)

// buildHit returns a record as a result. ok is false if the record does not match the query.
func (s *recordSearch) buildHit(c db.Conn, h *heldAt, e *codec.Entry) (f query.Hit, ok bool, err error) {
	if !h.plan.match(s.q, e.ID, e.Parent, e.Body) {
		return f, false, nil
	}
	if h.since == 0 {
		if h.since, err = records.ReadCreation(c, h.version); err != nil {
			return f, false, err
		}
	}
	k := h.plan.kind
	rec := &understudy.Record{Source: k.Source, Kind: k.Name, Shape: h.shape.Name, ID: e.ID, Number: h.record, Version: h.version,
		Since: time.Unix(0, h.since).UTC(), Seen: time.Unix(0, h.seen).UTC(), Final: h.state&records.Final != 0,
		Invalidated: h.state&records.Invalid != 0}
	rec.Body = slices.Clone(e.Body)
	return query.Hit{Record: rec, Clock: e.Clock, Order: h.place}, true, nil
}

// Count returns how many records Seek would find, up to the limit most; 0 means no limit. It stops at the time by (the
// zero time means never) or when ctx is done, and then returns a lower bound. It reads bodies only if the query needs
// them.
func (k *Seeker) Count(ctx context.Context, q query.RecordQuery, most int64, by time.Time) (n query.Count, err error) {
	s, err := k.prepareSearch(&q)
	if err != nil {
		return n, db.WrapError(false, err, "count in %s", q.Source)
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
		before := k.epoch.Load()
		err := k.pool.Read(ctx, func(c db.Conn) error {
			if err := s.prepare(ctx, c, before); err != nil {
				return err
			}
			blocks := k.records.Open(c)
			return s.walkRecords(ctx, c, func() int { return placesPerStatement }, func(some []*heldAt) (bool, error) {
				for _, h := range some {
					ok := true
					if !s.p.exact {
						var err error
						if ok, err = s.matchBody(blocks, h); err != nil {
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
			return n, db.WrapError(false, err, "count in %s", q.Source)
		}
		if end > 0 && n.N > end {
			n.N, n.AtLeast = end, int64(q.Limit) != end
			return n, nil
		}
	}
	return n, nil
}

// matchBody reports whether the body of a record matches the predicates of the query.
func (s *recordSearch) matchBody(blocks *records.Blocks, h *heldAt) (bool, error) {
	e, err := blocks.ReadEntry(h.version)
	if err != nil {
		return false, err
	}
	return h.plan.match(s.q, e.ID, e.Parent, e.Body), nil
}
