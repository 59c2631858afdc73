// Sweep: versions that neither a page nor history needs are removed.
//
// History is, of every record, the newest version in each shape. Any other
// version is needed only by the pages that show it; when none does, its body
// goes. A block keeps the places of its versions, so that no number changes.

package store

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"sync"
)

const (
	maxCandidates = 1 << 18 // versions looked at in one walk over the pages
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
		block := s.versions[0] / perBlock
		if _, known := places[block]; !known && len(places) == blocks {
			break
		}
		if !s.needed[0] {
			places[block] |= 1 << (s.versions[0] % perBlock)
		}
		s.versions, s.needed = s.versions[1:], s.needed[1:]
	}
	return places
}

// versionRow is a place in the table of versions.
type versionRow struct{ held, hash, version int64 }

var selectOld = &statement{head: `SELECT v.held, v.hash, v.version FROM version v LEFT JOIN held h ON h.number = v.held
	WHERE (v.held, v.hash, v.version) > (?, ?, ?) AND (h.version IS NULL OR h.version <> v.version)
	ORDER BY v.held, v.hash, v.version LIMIT ?`}

// old lists versions that are not the newest of their record, from a place on.
func (db *DB) old(ctx context.Context, from versionRow) (s *candidates, last versionRow, err error) {
	s, last = &candidates{}, from
	for len(s.versions) < maxCandidates {
		n := 0
		err = db.read(ctx, func(c *conn) error {
			return c.query(selectOld, 0, []driver.Value{last.held, last.hash, last.version, int64(4096)}, func(r []driver.Value) error {
				last = versionRow{r[0].(int64), r[1].(int64), r[2].(int64)}
				s.versions = append(s.versions, last.version)
				n++
				return nil
			})
		})
		if err != nil || n == 0 {
			break
		}
	}
	slices.Sort(s.versions)
	s.needed = make([]bool, len(s.versions))
	return s, last, err
}

// sweep removes what nobody needs and says how many versions that were. It
// may be called beside reads and saves, by one goroutine at a time.
func (db *DB) sweep(ctx context.Context) (removed int64, err error) {
	from := versionRow{held: -1}
	for {
		s, last, err := db.old(ctx, from)
		if err != nil {
			return removed, err
		}
		if len(s.versions) == 0 {
			db.room.clean(db.o.Now())
			return removed, nil
		}
		n, err := db.sweepSome(ctx, s)
		removed += n
		if err != nil {
			return removed, err
		}
		from = last
	}
}

// sweepSome walks over all pages once. A page saved meanwhile is told of by
// its save, so that no page needs a version that goes.
func (db *DB) sweepSome(ctx context.Context, s *candidates) (removed int64, err error) {
	end, err := db.watch(ctx, func(one *saving) {
		for i := range one.rows {
			s.need([]int64{one.rows[i].Version})
		}
	})
	if err != nil {
		return 0, err
	}
	defer end()
	err = db.scan(ctx, selectSkeletons, nil, func(_ int64, sk *skeleton) { s.need(sk.versions) })
	if err != nil {
		return 0, err
	}
	for len(s.versions) > 0 {
		err := db.release(ctx, func(c *conn) (bool, error) {
			// Taken with the writing connection held: no save is under way.
			places := s.free(sweepBlocks)
			return c.transaction(ctx, beginWrite, func() error {
				n, err := db.sweepBlocks(c, places)
				removed += n
				return err
			})
		})
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

var (
	selectSkeletons     = &statement{head: "SELECT number, dictionary, size, body FROM page WHERE number > ? ORDER BY number LIMIT ?"}
	selectKindSkeletons = &statement{head: "SELECT number, dictionary, size, body FROM page WHERE number > ? AND kind = ? ORDER BY number LIMIT ?"}
)

// scan calls each for every page, a few in one read transaction.
func (db *DB) scan(ctx context.Context, st *statement, more []driver.Value, each func(number int64, sk *skeleton)) error {
	last, n := int64(-1), scanPages
	for n == scanPages {
		n = 0
		args := append(append([]driver.Value{last}, more...), int64(scanPages))
		err := db.read(ctx, func(c *conn) error {
			return c.query(st, 0, args, func(r []driver.Value) error {
				n++
				last = r[0].(int64)
				sk, err := db.skeleton(c, r[3].([]byte), r[1].(int64), r[2].(int64))
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

// deleteOld deletes a version's row unless it is its record's newest.
var deleteOld = &statement{head: `DELETE FROM version WHERE held = ?1 AND hash = ?2 AND version = ?3
	AND NOT EXISTS (SELECT 1 FROM held WHERE number = ?1 AND version = ?3) RETURNING 1`}

// sweepBlocks removes versions at places of blocks.
func (db *DB) sweepBlocks(c *conn, places map[int64]uint64) (removed int64, err error) {
	for number, wanted := range places {
		if wanted == 0 {
			continue
		}
		b, err := db.openBlock(c, number)
		if err != nil {
			return removed, err
		}
		for i := range b.entries {
			e := &b.entries[i]
			if wanted>>i&1 == 0 || e.hollow() {
				continue
			}
			args := []driver.Value{e.record*slots + b.slot, bodyHash(e.body), number*perBlock + int64(i)}
			found, err := c.one(deleteOld, args, func([]driver.Value) {})
			if err != nil {
				return removed, err
			}
			if found {
				b.empty(i, false)
				removed++
			}
		}
		if err := db.putBlock(c, b); err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// block is a block taken apart to be changed.
type block struct {
	number, slot, dictionary int64
	entries                  []entry
	changed                  bool
}

var (
	selectWholeBlock = &statement{head: "SELECT b.dictionary, b.size, b.body, h.slot FROM block b JOIN shape h ON h.number = b.shape WHERE b.number = ?"}
	updateBlock      = &statement{head: "UPDATE block SET dictionary = ?, size = ?, body = ? WHERE number = ?"}
	deleteBlock      = &statement{head: "DELETE FROM block WHERE number = ?"}
)

func (db *DB) openBlock(c *conn, number int64) (*block, error) {
	b := &block{number: number}
	var packed []byte
	var size int64
	found, err := c.one(selectWholeBlock, []driver.Value{number}, func(r []driver.Value) {
		b.dictionary, size, packed, b.slot = r[0].(int64), r[1].(int64), r[2].([]byte), r[3].(int64)
	})
	if err == nil && !found {
		err = damaged("block %d is missing", number)
	}
	if err != nil {
		return nil, err
	}
	raw, err := db.unpack(c, packed, b.dictionary, size)
	if err == nil {
		b.entries, err = parseBlock(raw)
	}
	if err != nil {
		return nil, damaged("block %d: %w", number, err)
	}
	return b, nil
}

// empty takes a body out. Its record's id stays when named.
func (b *block) empty(place int, named bool) {
	e := &b.entries[place]
	b.changed = true
	if named {
		*e = entry{record: e.record, id: e.id}
		return
	}
	*e = entry{}
}

// putBlock writes a block back, or deletes it when nothing is left in it.
func (db *DB) putBlock(c *conn, b *block) error {
	if !b.changed {
		return nil
	}
	if !slices.ContainsFunc(b.entries, func(e entry) bool { return !e.hollow() || e.id != "" }) {
		return c.exec(deleteBlock, 0, b.number)
	}
	x := &db.scratch
	x.raw = appendBlock(x.raw[:0], b.entries)
	var dictionary int64
	x.packed, dictionary = db.packer.pack(x.packed[:0], x.raw, b.dictionary)
	return c.exec(updateBlock, 0, dictionary, int64(len(x.raw)), x.packed, b.number)
}
