// Sweep: older versions go when the limit asks for it.
//
// Of every record the newest version in each shape stays. Any other is history:
// it goes, the oldest first, when the limit is near and no page shows it; that
// it was there, and when, stays known. A block keeps the places of its
// versions, so that no number changes.

package store

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"sync"

	"understudy/internal/store/codec"
	"understudy/internal/store/sqlite"
)

const (
	maxCandidates = 1 << 18 // versions that may go in one walk over the pages
	scanPages     = 64      // pages in one read transaction
	sweepBlocks   = 16      // blocks in one write transaction
)

// candidates are versions that are not the newest of their record, and which
// of them a page was found to need.
type candidates struct {
	sync.Mutex
	versions []int64 // in order
	needed   []bool
}

// need marks versions as needed.
func (s *candidates) need(versions []int64) {
	s.Lock()
	defer s.Unlock()
	for _, v := range versions {
		if i, ok := slices.BinarySearch(s.versions, v); ok {
			s.needed[i] = true
		}
	}
}

// free takes some that nobody needs, whole blocks each, off the list.
func (s *candidates) free(blocks int) map[int64]uint64 {
	s.Lock()
	defer s.Unlock()
	places := map[int64]uint64{}
	for len(s.versions) > 0 {
		block := s.versions[0] / codec.PerBlock
		if _, known := places[block]; !known && len(places) == blocks {
			break
		}
		if !s.needed[0] {
			places[block] |= 1 << (s.versions[0] % codec.PerBlock)
		}
		s.versions, s.needed = s.versions[1:], s.needed[1:]
	}
	return places
}

var selectOld = &sqlite.Statement{Head: `SELECT p.held, p.number, coalesce(p.version, p.number) FROM past p LEFT
	JOIN held h ON h.number = p.held
	WHERE (p.held, p.number) > (?, ?) AND p.tag IS NOT NULL AND h.version IS NOT coalesce(p.version, p.number)
	ORDER BY p.held, p.number LIMIT ?`}

// old lists the oldest versions above one that are not the newest of their
// record and have a body, in order.
func (db *DB) old(ctx context.Context, above int64) (s *candidates, err error) {
	s = &candidates{}
	shorten := func() {
		slices.Sort(s.versions)
		s.versions = slices.Compact(s.versions)
		s.versions = s.versions[:min(maxCandidates, len(s.versions))]
	}
	const chunk = 4096
	held, number, n := int64(-1), int64(0), chunk
	for n == chunk {
		n = 0
		err := db.pool.Read(ctx, func(c *sqlite.Conn) error {
			return c.Query(selectOld, 0, []driver.Value{held, number, int64(chunk)}, func(r []driver.Value) error {
				held, number = r[0].(int64), r[1].(int64)
				n++
				if v := r[2].(int64); v > above {
					s.versions = append(s.versions, v)
				}
				return nil
			})
		})
		if err != nil {
			return nil, err
		}
		if len(s.versions) >= 2*maxCandidates {
			shorten()
		}
	}
	shorten()
	s.needed = make([]bool, len(s.versions))
	return s, nil
}

// sweep removes older versions that no page shows, the oldest first, until
// there is room, and says how many that were. It may be called beside reads
// and saves, by one goroutine at a time.
func (db *DB) sweep(ctx context.Context) (removed int64, err error) {
	above := int64(-1)
	for {
		s, err := db.old(ctx, above)
		if err != nil || len(s.versions) == 0 {
			return removed, err
		}
		above = s.versions[len(s.versions)-1]
		n, enough, err := db.sweepSome(ctx, s)
		removed += n
		if err != nil || enough {
			return removed, err
		}
	}
}

// sweepSome walks over all pages once. A page saved meanwhile is told of by
// its save, so that no page needs a version that goes.
func (db *DB) sweepSome(ctx context.Context, s *candidates) (removed int64, enough bool, err error) {
	end, err := db.watch(ctx, func(one *saving) {
		for i := range one.rows {
			s.need([]int64{one.rows[i].Version})
		}
	})
	if err != nil {
		return 0, false, err
	}
	defer end()
	err = db.scan(ctx, selectSkeletons, nil, func(_ int64, sk *codec.Skeleton) { s.need(sk.Versions) })
	if err != nil {
		return 0, false, err
	}
	for len(s.versions) > 0 && !enough {
		err := db.pool.Release(ctx, func(c *sqlite.Conn) (bool, error) {
			// Taken with the writing connection held: no save is under way.
			places := s.free(sweepBlocks)
			n := int64(0)
			broken, err := c.Transaction(ctx, sqlite.BeginWrite, func() (err error) {
				if n, err = db.sweepBlocks(c, places); err != nil || n == 0 {
					return err
				}
				return db.evicted(c, 0, n)
			})
			if err != nil {
				return broken, err
			}
			removed += n
			beyond, err := db.beyond(c, evictTo)
			enough = !beyond
			return false, err
		})
		if err != nil {
			return removed, false, err
		}
	}
	return removed, enough, nil
}

var (
	selectSkeletons     = &sqlite.Statement{Head: "SELECT number, size, body FROM page WHERE number > ? ORDER BY number LIMIT ?"}
	selectKindSkeletons = &sqlite.Statement{Head: "SELECT number, size, body FROM page WHERE number > ? AND kind = ? ORDER BY number LIMIT ?"}
)

// scan calls each for every page, a few in one read transaction.
func (db *DB) scan(ctx context.Context, st *sqlite.Statement, more []driver.Value, each func(number int64, sk *codec.Skeleton)) error {
	last, n := int64(-1), scanPages
	for n == scanPages {
		n = 0
		args := append(append([]driver.Value{last}, more...), int64(scanPages))
		err := db.pool.Read(ctx, func(c *sqlite.Conn) error {
			return c.Query(st, 0, args, func(r []driver.Value) error {
				n++
				last = r[0].(int64)
				sk, err := db.skeleton(r[2].([]byte), r[1].(int64))
				if err != nil {
					return fmt.Errorf("page %d: %w", last, err)
				}
				each(last, sk)
				return nil
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

var (
	// selectNewer answers when a version is its record's newest.
	selectNewer = &sqlite.Statement{Head: "SELECT 1 FROM held WHERE number = ? AND version = ?"}
	deleteLate  = &sqlite.Statement{Head: "DELETE FROM past WHERE held = ? AND number = ? AND since = -1"}
	updateTaken = &sqlite.Statement{Head: "UPDATE past SET tag = NULL WHERE held = ? AND coalesce(version, number) = ?"}
	selectKept  = &sqlite.Statement{Head: `SELECT version FROM held WHERE number = ?1 AND state & 8 = 0
		UNION SELECT coalesce(version, number) FROM past WHERE held = ?1 AND tag IS NOT NULL`}
	selectIsOld = &sqlite.Statement{Head: "SELECT 1 FROM clock WHERE shape = ? AND parent = ? AND old = 1 AND clock = ? AND record = ?"}
	takeBlock   = &sqlite.Statement{Head: "DELETE FROM block WHERE number = ? RETURNING shape, count"}
	deleteBlock = &sqlite.Statement{Head: "DELETE FROM block WHERE number = ?"}
)

// sweepBlocks removes versions at places of blocks, unless they are their
// record's newest.
func (db *DB) sweepBlocks(c *sqlite.Conn, places map[int64]uint64) (removed int64, err error) {
	blocks := db.blocks(c)
	for number, wanted := range places {
		for i := range int64(codec.PerBlock) {
			if wanted>>i&1 == 0 {
				continue
			}
			taken, err := blocks.takeOut(number*codec.PerBlock + i)
			if err != nil {
				return removed, err
			}
			if taken {
				removed++
			}
		}
	}
	return removed, blocks.write()
}
