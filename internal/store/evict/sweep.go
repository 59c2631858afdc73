// The sweep: older versions go when the limit asks for it.
//
// Of every record the newest version in each shape stays. Any other is history:
// it goes, the oldest first, when the limit is near and no page shows it. That
// it was there, and when, stays known. A block keeps the places of its versions,
// so that no number changes.

package evict

import (
	"context"
	"database/sql/driver"
	"slices"
	"sync"

	"understudy/internal/store/codec"
	"understudy/internal/store/sqlite"
)

const (
	maxCandidates = 1 << 18 // versions that may go in one walk over the pages
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

// free takes the versions of some blocks off the list and returns those that no
// page needs, by block.
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
func (e *Evictor) old(ctx context.Context, above int64) (s *candidates, err error) {
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
		err := e.pool.Read(ctx, func(c *sqlite.Conn) error {
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
func (e *Evictor) sweep(ctx context.Context) (removed int64, err error) {
	above := int64(-1)
	for {
		s, err := e.old(ctx, above)
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

// sweepSome walks over all pages once. It hears of the pages saved meanwhile, so
// that no page needs a version that goes.
func (e *Evictor) sweepSome(ctx context.Context, s *candidates) (removed int64, enough bool, err error) {
	end, err := e.o.Store.WatchVersions(ctx, s.need)
	if err != nil {
		return 0, false, err
	}
	defer end()
	if err := e.o.Store.VisitShown(ctx, s.need); err != nil {
		return 0, false, err
	}
	for len(s.versions) > 0 && !enough {
		err := e.pool.Release(ctx, func(c *sqlite.Conn) (bool, error) {
			// Taken with the writing connection held: no save is under way.
			places := s.free(sweepBlocks)
			n := int64(0)
			broken, err := c.Transaction(ctx, sqlite.BeginWrite, func() (err error) {
				if n, err = e.o.Store.Prune(c, places); err != nil || n == 0 {
					return err
				}
				return e.evicted(c, 0, n)
			})
			if err != nil {
				return broken, err
			}
			removed += n
			beyond, err := e.beyond(c, evictTo)
			enough = !beyond
			return false, err
		})
		if err != nil {
			return removed, false, err
		}
	}
	return removed, enough, nil
}
