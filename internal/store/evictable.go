// This file gives the evictor access to the store: it lists the versions that pages show and prunes others.

package store

import (
	"context"

	"understudy/internal/store/codec"
	"understudy/internal/store/db"
	"understudy/internal/store/pages"
)

// evictable adapts the store to evict.Store.
type evictable struct{ db *DB }

func (e evictable) WatchVersions(ctx context.Context, saved func(versions []int64)) (end func(), err error) {
	return e.db.counts.watchers.add(ctx, func(s *saving) {
		for i := range s.content.rows {
			saved([]int64{s.content.rows[i].Version})
		}
	})
}

func (e evictable) VisitShown(ctx context.Context, each func(versions []int64)) error {
	return e.db.pages.VisitPages(ctx, e.db.pool, pages.Scope{}, func(_ int64, sk *codec.Skeleton) { each(sk.Versions) })
}

// Prune implements evict.Store.
func (e evictable) Prune(c db.Conn, versions map[int64]uint64) (removed int64, err error) {
	blocks := e.db.opener.Open(c)
	for number, wanted := range versions {
		for i := range int64(codec.PerBlock) {
			if wanted>>i&1 == 0 {
				continue
			}
			taken, err := blocks.DeleteOlder(number*codec.PerBlock + i)
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
