// This file finds records past their retention by their clock.

package store

import (
	"cmp"
	"context"
	"database/sql/driver"
	"maps"
	"math"
	"slices"
	"time"

	"understudy"
	"understudy/internal/store/catalog"
	"understudy/internal/store/db"
	"understudy/internal/store/records"
)

const expireBatch = 512 // the number of records listed for erasing in one transaction

// Expire lists for erasing the records of a kind that are older than its retention (Options.Retention). A record is too
// old if its clock is, or, without a clock, if it was first seen too long ago. Listed records no longer count and no
// read finds them. There is no change, because nothing happened upstream. EraseListed deletes them later. Expire
// returns how many records it listed. It also deletes pages that were stored whole before the kind had a retention.
func (d *DB) Expire(ctx context.Context, source, kind string) (listed int, err error) {
	defer func() { err = db.WrapError(false, err, "look for %s of %s past their retention", kind, source) }()
	horizon := d.o.horizon(source, kind)
	if horizon == 0 {
		return 0, nil
	}
	k, err := d.catalog.FindKind(ctx, source, kind)
	if err != nil || k == nil {
		return 0, err
	}
	// Delete the pages that were stored whole before the kind had a retention.
	err = d.pool.ReleaseChange(ctx, func(c db.Conn) error {
		return deleteWhole(c, d.pages, k.Number, func([]understudy.Row) bool { return true })
	})
	if err != nil {
		return 0, err
	}
	list := func(all []eraseTarget) error {
		if err := d.listAndMark(ctx, source, kind, all); err != nil {
			return err
		}
		listed += len(all)
		return nil
	}
	unclocked := map[int64]string{}
	for _, s := range shapesOf(d.catalog, k) {
		old := agedScan{db: d, name: kind, shape: s, from: math.MinInt64, to: horizon}
		if err := old.visitRecords(ctx, list); err != nil {
			return listed, err
		}
		none := agedScan{db: d, name: kind, shape: s, from: 0, to: 1, unclocked: true}
		err := none.visitRecords(ctx, func(all []eraseTarget) error {
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
	if err := selectSeenBefore(ctx, d.pool, k, time.Unix(horizon, 0), unclocked, old); err != nil {
		return listed, err
	}
	var all []eraseTarget
	for _, record := range slices.Sorted(maps.Keys(old)) {
		all = append(all, eraseTarget{kind: kind, id: old[record], record: record})
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

// agedScan reads the records of one shape whose clock is at least from and less than to.
type agedScan struct {
	db        *DB
	name      string
	shape     int64
	from, to  int64
	unclocked bool
}

// visitRecords calls do with batches of records, each record once. It passes records whose newest version in
// any shape has a clock in the range.
func (a *agedScan) visitRecords(ctx context.Context, do func([]eraseTarget) error) error {
	scan := records.ClockScan{Shape: a.shape, From: a.from, To: a.to, Unclocked: a.unclocked}
	below := records.ClockPosting{Clock: math.MaxInt64, Record: math.MaxInt64}
	for n := expireBatch; n == expireBatch; {
		var all []eraseTarget
		err := a.db.pool.Read(ctx, func(c db.Conn) error {
			spots, err := scan.ReadBelow(c, below, expireBatch)
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
				if id, clock, err = s.readNewest(one.Record); err == nil && clock >= a.from && clock < a.to && (clock == 0) == a.unclocked {
					all = append(all, eraseTarget{kind: a.name, id: id, record: one.Record})
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

// readNewest returns a record's id, and the clock of its newest version in any shape. It uses a forgotten
// version only if there is no other.
func (s *saving) readNewest(record int64) (id string, clock int64, err error) {
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
	version = cmp.Or(version, forgotten)
	if version == 0 {
		return "", 0, db.NewDamageError("record %d is not stored", record)
	}
	if s.blocks == nil {
		s.blocks = s.db.opener.Open(s.c)
	}
	e, err := s.blocks.ReadEntry(version)
	if err != nil {
		return "", 0, err
	}
	return e.ID, e.Clock, nil
}

var selectCameChanges = &db.Statement{Head: "SELECT record, count FROM change WHERE source = ? AND kind = ? AND what = 1 AND at < ?"}

// selectSeenBefore copies the records of unclocked that were first seen before a given time to old.
func selectSeenBefore(ctx context.Context, pool *db.Pool, k *catalog.Kind, before time.Time, unclocked, old map[int64]string) error {
	return pool.Read(ctx, func(c db.Conn) error {
		return db.VisitRows(c, selectCameChanges, []driver.Value{k.SourceNumber, k.Number, before.UnixNano()}, func(r []driver.Value) {
			for i := range r[1].(int64) {
				record := r[0].(int64) + i
				if id, ok := unclocked[record]; ok {
					old[record] = id
				}
			}
		})
	})
}
