// What the evictor asks of the store: which versions pages show, and taking others
// out.

package store

import (
	"context"
	"database/sql/driver"
	"fmt"

	"understudy/internal/store/codec"
	"understudy/internal/store/sqlite"
)

// evictable is the store as evict.Store.
type evictable struct{ db *DB }

// WatchVersions implements evict.Store.
func (e evictable) WatchVersions(ctx context.Context, saved func(versions []int64)) (end func(), err error) {
	return e.db.watch(ctx, func(s *saving) {
		for i := range s.rows {
			saved([]int64{s.rows[i].Version})
		}
	})
}

// EachShown implements evict.Store.
func (e evictable) EachShown(ctx context.Context, each func(versions []int64)) error {
	return e.db.scan(ctx, selectSkeletons, nil, func(_ int64, sk *codec.Skeleton) { each(sk.Versions) })
}

// Prune implements evict.Store.
func (e evictable) Prune(c *sqlite.Conn, versions map[int64]uint64) (removed int64, err error) {
	blocks := e.db.opener.Open(c)
	for number, wanted := range versions {
		for i := range int64(codec.PerBlock) {
			if wanted>>i&1 == 0 {
				continue
			}
			taken, err := blocks.TakeOut(number*codec.PerBlock + i)
			if err != nil {
				return removed, err
			}
			if taken {
				removed++
			}
		}
	}
	return removed, blocks.Write()
}

// Evict makes room now, if the limit is near, after what is under way has ended.
// The store makes room behind its saves as well; Evict is for a caller that cannot
// wait.
func (db *DB) Evict(ctx context.Context) error { return db.evictor.Evict(ctx) }

const scanPages = 64 // pages in one read transaction

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
				sk, err := pageLoader{db}.skeleton(r[2].([]byte), r[1].(int64))
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
