// Expire: records past their retention are found by their clock.

package store

import (
	"context"
	"database/sql/driver"
	"maps"
	"math"
	"slices"
	"time"

	"understudy"
	"understudy/internal/store/catalog"
	"understudy/internal/store/erase"
	"understudy/internal/store/records"
	"understudy/internal/store/sqlite"
)

const expireBatch = 512 // records listed in one transaction

// Expire lists the records of a kind that are older than its retention
// (Options.Retention): whose clock is older, or, when it has none, that were
// first seen earlier. They are counted and found no more, without a change: to
// upstream nothing has happened. It says how many were listed; EraseListed does
// the rest. It looks at what is too old, at what has no clock, and at pages that were stored whole
// before the kind had a retention: those it deletes.
func (db *DB) Expire(ctx context.Context, source, kind string) (listed int, err error) {
	leave, err := db.pool.Begin()
	if err != nil {
		return 0, err
	}
	defer leave()
	listed, err = db.expire(ctx, source, kind)
	return listed, sqlite.Failed(false, err, "look for %s of %s past their retention", kind, source)
}

func (db *DB) expire(ctx context.Context, source, kind string) (listed int, err error) {
	horizon, k := db.o.horizon(source, kind), db.catalog.Kind(source, kind)
	if horizon == 0 || k == nil {
		return 0, nil
	}
	err = db.pool.ReleaseChange(ctx, func(c *sqlite.Conn) error { // stored before the kind had a retention
		return deleteWhole(c, db.pages, k.Number, func([]understudy.Row) bool { return true })
	})
	if err != nil {
		return 0, err
	}
	list := func(all []found) error {
		if err := db.mark(ctx, source, kind, 0, erase.CauseAged, all); err != nil {
			return err
		}
		listed += len(all)
		return nil
	}
	unclocked := map[int64]string{}
	for _, s := range shapesOf(db.catalog, k) {
		old := aging{db: db, kind: k, name: kind, shape: s, from: math.MinInt64, to: horizon}
		if err := old.each(ctx, list); err != nil {
			return listed, err
		}
		none := aging{db: db, kind: k, name: kind, shape: s, from: 0, to: 1, unclocked: true}
		err := none.each(ctx, func(all []found) error {
			for _, one := range all {
				unclocked[one.record] = one.id
			}
			return nil
		})
		if err != nil {
			return listed, err
		}
	}
	if len(unclocked) == 0 {
		return listed, nil
	}
	old := map[int64]string{}
	if err := firstSeen(ctx, db.pool, k, time.Unix(horizon, 0), unclocked, old); err != nil {
		return listed, err
	}
	var all []found
	for _, record := range slices.Sorted(maps.Keys(old)) {
		all = append(all, found{kind: kind, id: old[record], record: record})
	}
	for part := range slices.Chunk(all, expireBatch) {
		if err := list(part); err != nil {
			return listed, err
		}
	}
	return listed, nil
}

// shapesOf returns the numbers of a kind's shapes.
func shapesOf(x *catalog.Catalog, k *catalog.Kind) (numbers []int64) {
	for _, s := range x.Shapes() {
		if s.Kind == k {
			numbers = append(numbers, s.Number)
		}
	}
	slices.Sort(numbers)
	return numbers
}

// aging is a look at the records of one shape with clocks from..to-1.
type aging struct {
	db        *DB
	kind      *catalog.Kind
	name      string
	shape     int64
	from, to  int64
	unclocked bool
}

// each hands out records, a few at a time and each once, whose newest version
// has such a clock, whatever those of other shapes have.
func (a *aging) each(ctx context.Context, do func([]found) error) error {
	scan := records.ClockScan{Shape: a.shape, From: a.from, To: a.to, Unclocked: a.unclocked}
	below := records.ClockPosting{Clock: math.MaxInt64, Record: math.MaxInt64}
	for n := expireBatch; n == expireBatch; {
		var all []found
		err := a.db.pool.Read(ctx, func(c *sqlite.Conn) error {
			spots, err := scan.Below(c, below, expireBatch)
			if n = len(spots); n > 0 {
				below = spots[n-1]
			}
			s := &saving{db: a.db, c: c}
			for _, one := range spots {
				if err != nil {
					return err
				}
				var id string
				var clock int64
				if id, clock, err = s.newest(one.Record); err == nil && clock >= a.from && clock < a.to && (clock == 0) == a.unclocked {
					all = append(all, found{kind: a.name, id: id, record: one.Record})
				}
			}
			return err
		})
		if err == nil && len(all) > 0 {
			err = do(all)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// newest is a record's id, and the clock of its newest version in any shape
// that is not forgotten.
func (s *saving) newest(record int64) (id string, clock int64, err error) {
	version, forgotten := int64(0), int64(0)
	err = s.c.Query(selectShapesHeld, 0, rowsOf(record),
		func(r []driver.Value) error {
			if r[4].(int64)&records.Forgotten != 0 {
				forgotten = r[1].(int64)
				return nil
			}
			version = max(version, r[1].(int64))
			return nil
		})
	if err != nil {
		return "", 0, err
	}
	if version == 0 {
		version = forgotten
	}
	if version == 0 {
		return "", 0, sqlite.Damaged("record %d is not held", record)
	}
	if s.blocks == nil {
		s.blocks = s.db.opener.Open(s.c)
	}
	e, err := s.blocks.Entry(version)
	if err != nil {
		return "", 0, err
	}
	return e.ID, e.Clock, nil
}

var selectCame = &sqlite.Statement{Head: "SELECT record, count FROM change WHERE source = ? AND kind = ? AND what = 1 AND at < ?"}

// firstSeen moves those of the records without a clock that came before a time
// to old.
func firstSeen(ctx context.Context, pool *sqlite.Pool, k *catalog.Kind, before time.Time, unclocked, old map[int64]string) error {
	return pool.Read(ctx, func(c *sqlite.Conn) error {
		return c.Query(selectCame, 0, []driver.Value{k.SourceNumber, k.Number, before.UnixNano()}, func(r []driver.Value) error {
			for i := range r[1].(int64) {
				record := r[0].(int64) + i
				if id, ok := unclocked[record]; ok {
					old[record] = id
				}
			}
			return nil
		})
	})
}
