// This file evicts older versions when the file is near its limit.
//
// The newest version of every record in each shape is kept. The other versions are evicted, oldest first, unless a page
// shows them. The record's history still knows that an evicted version existed, and when. A block keeps the positions
// of its versions, so no version changes its number.

package evict

import (
	"context"
	"database/sql/driver"
	"slices"
	"sync"

	"understudy/internal/store/codec"
	"understudy/internal/store/db"
)

const (
	maxCandidates = 1 << 18 // maximum number of versions considered in one scan of the pages
	sweepBlocks   = 16      // the number of blocks in one write transaction
)

// candidates are versions that are not the newest of their record. Versions that a page needs are marked.
type candidates struct {
	sync.Mutex
	versions []int64 // the numbers of the versions in ascending order
	needed   []bool
}

// markNeeded marks the given versions as needed by a page.
func (s *candidates) markNeeded(versions []int64) {
	s.Lock()
	defer s.Unlock()
	for _, v := range versions {
		if i, ok := slices.BinarySearch(s.versions, v); ok {
			s.needed[i] = true
		}
	}
}

// takeFree removes the versions of the first blocks from the list. It returns those of them that no page needs, as bit
// sets by block number.
func (s *candidates) takeFree(blocks int) map[int64]uint64 {
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

var selectOld = &db.Statement{Head: `SELECT p.held, p.number, coalesce(p.version, p.number) FROM past p LEFT
	JOIN held h ON h.number = p.held
	WHERE (p.held, p.number) > (?, ?) AND p.tag IS NOT NULL AND h.version IS DISTINCT FROM coalesce(p.version, p.number)
	ORDER BY p.held, p.number LIMIT ?`}

// findOld returns the oldest versions with numbers greater than above, in ascending order. They have a body and are not
// the newest of their record.
func (e *Evictor) findOld(ctx context.Context, above int64) (s *candidates, err error) {
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
		err := e.pool.Read(ctx, func(c db.Conn) error {
			return db.VisitRows(c, selectOld, []driver.Value{held, number, int64(chunk)}, func(r []driver.Value) {
				held, number = r[0].(int64), r[1].(int64)
				n++
				if v := r[2].(int64); v > above {
					s.versions = append(s.versions, v)
				}
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

// sweep deletes older versions that no page shows, oldest first, until there is enough space. It returns how
// many it deleted. One goroutine at a time may call it, concurrently with reads and saves.
func (e *Evictor) sweep(ctx context.Context) (removed int64, err error) {
	above := int64(-1)
	for {
		s, err := e.findOld(ctx, above)
		if err != nil || len(s.versions) == 0 {
			return removed, err
		}
		above = s.versions[len(s.versions)-1]
		n, enough, err := e.sweepSome(ctx, s)
		removed += n
		if err != nil || enough {
			return removed, err
		}
	}
}

// sweepSome scans all pages once and deletes the candidates that no page shows. It also watches the pages that are
// saved meanwhile, so that it deletes no version that a page needs.
func (e *Evictor) sweepSome(ctx context.Context, s *candidates) (removed int64, enough bool, err error) {
	end, err := e.o.Store.WatchVersions(ctx, s.markNeeded)
	if err != nil {
		return 0, false, err
	}
	defer end()
	if err := e.o.Store.VisitShown(ctx, s.markNeeded); err != nil {
		return 0, false, err
	}
	for len(s.versions) > 0 && !enough {
		err := e.pool.Release(ctx, func(c db.Conn) (bool, error) {
			// The writing connection is in use here, so no save can run.
			places := s.takeFree(sweepBlocks)
			n := int64(0)
			broken, err := c.RunTransaction(ctx, func() (err error) {
				if n, err = e.o.Store.Prune(c, places); err != nil || n == 0 {
					return err
				}
				return e.countEvicted(c, 0, n)
			})
			if err != nil {
				return broken, err
			}
			removed += n
			beyond, err := e.checkUse(c, evictToPercent)
			enough = !beyond
			return false, err
		})
		if err != nil {
			return removed, false, err
		}
	}
	return removed, enough, nil
}
