// This file gives the eraser access to the store: it reads and deletes bodies and pages.

package store

import (
	"cmp"
	"context"
	"database/sql/driver"
	"slices"

	"understudy/internal/store/catalog"
	"understudy/internal/store/codec"
	"understudy/internal/store/db"
	"understudy/internal/store/erase"
	"understudy/internal/store/pages"
	"understudy/internal/store/records"
)

// erasable adapts the store to erase.Store.
type erasable struct{ db *DB }

func (e erasable) FindSource(ctx context.Context, name string) (number int64, ok bool, err error) {
	return e.db.catalog.FindSource(ctx, name)
}

func (e erasable) Kind(source, kind string) (k erase.Kind, ok bool) {
	row := e.db.catalog.Kind(source, kind)
	if row == nil {
		return erase.Kind{Name: kind}, false
	}
	return eraseKind(row), true
}

func eraseKind(k *catalog.Kind) erase.Kind {
	return erase.Kind{Number: k.Number, Prefix: k.Prefix, Name: k.Name, Spec: k.Spec}
}

var selectSourceBlocks = &db.Statement{Head: `SELECT b.number, h.kind FROM block b JOIN shape h ON h.number = b.shape
	JOIN kind k ON k.number = h.kind
	WHERE b.number > ? AND k.source = ? ORDER BY b.number LIMIT ?`}

const blocksAtOnce = 64 // the number of blocks read in one read transaction

// VisitBodies reads at most blocksAtOnce blocks in one read transaction.
func (e erasable) VisitBodies(ctx context.Context, source int64, each func(k erase.Kind, one *codec.Entry)) error {
	last, more := int64(-1), true
	for more {
		n := 0
		err := e.db.pool.Read(ctx, func(c db.Conn) error {
			type place struct{ block, kind int64 }
			var places []place
			err := db.VisitRows(c, selectSourceBlocks, []driver.Value{last, source, int64(blocksAtOnce)}, func(r []driver.Value) {
				places = append(places, place{r[0].(int64), r[1].(int64)})
			})
			kinds := map[int64]*catalog.Kind{} // read here, because another process may have saved a new kind
			for _, k := range e.db.catalog.Kinds() {
				kinds[k.Number] = k
			}
			blocks := e.db.opener.Open(c)
			for _, p := range places {
				if err != nil {
					return err
				}
				n, last = n+1, p.block
				b, err := blocks.ReadBlock(p.block)
				if err != nil {
					return err
				}
				for i := range b.Entries {
					one, err := blocks.ReadEntry(p.block*codec.PerBlock + int64(i))
					if err != nil {
						return err
					}
					if k := kinds[p.kind]; k != nil && !one.IsPruned() {
						each(eraseKind(k), one)
					}
				}
			}
			return err
		})
		if err != nil {
			return err
		}
		more = n == blocksAtOnce
	}
	return nil
}

func (e erasable) VisitPages(ctx context.Context, source int64, each func(page int64, sk *codec.Skeleton)) error {
	return e.db.pages.VisitPages(ctx, e.db.pool, pages.Scope{Source: source}, each)
}

func (e erasable) WatchPages(ctx context.Context, saved func(page int64, versions []int64)) (end func(), err error) {
	return e.db.counts.watchers.add(ctx, func(s *saving) {
		versions := make([]int64, len(s.content.rows))
		for i := range s.content.rows {
			versions[i] = s.content.rows[i].Version
		}
		saved(s.outcome.pageRow, versions)
	})
}

func (e erasable) DeletePages(c db.Conn, pages []int64) (gone int64, err error) {
	e.db.pool.MarkChanged(db.Pages)
	return deletePagesOf(c, pages)
}

// deletePagesOf deletes pages by their numbers and returns how many of them existed.
func deletePagesOf(c db.Conn, pages []int64) (gone int64, err error) {
	args := make([]driver.Value, len(pages))
	for i, n := range pages {
		args[i] = n
	}
	err = c.Query(deleteNumber, len(args), args, func([]driver.Value) error { gone++; return nil })
	return gone, err
}

func (e erasable) SanitizeIndex(ctx context.Context) error {
	if err := e.db.Index.Flush(ctx); err != nil {
		return err
	}
	return e.db.Index.Words.Sanitize(ctx, e.db.pool)
}

func (e erasable) Versions(c db.Conn) erase.Versions {
	return erasableVersions{db: e.db, c: c, blocks: e.db.opener.Open(c)}
}

// erasableVersions implements erase.Versions on one connection.
type erasableVersions struct {
	db     *DB
	c      db.Conn
	blocks *records.Blocks
}

var (
	selectCurrentOf  = &db.Statement{Head: "SELECT number, state FROM held WHERE number BETWEEN ? AND ? AND version = ?"}
	updateErasedHeld = &db.Statement{Head: "UPDATE held SET state = state | 8, hash = 0 WHERE number = ?"}
)

// rowsOf returns the first and the last number that the rows of a record in table held can have.
func rowsOf(record int64) []driver.Value {
	return []driver.Value{record * records.Slots, record*records.Slots + records.Slots - 1}
}

func (v erasableVersions) ListVersions(record int64) (present map[int64]bool, all []int64, err error) {
	present = map[int64]bool{}
	err = db.VisitRows(v.c, selectShapesHeld, rowsOf(record), func(r []driver.Value) {
		if r[4].(int64)&records.Gone == 0 {
			present[r[1].(int64)] = true
		}
	})
	if err != nil {
		return nil, nil, err
	}
	all, err = v.listBodies(record)
	return present, all, err
}

// listBodies returns the versions of a record whose bodies are stored.
func (v erasableVersions) listBodies(record int64) (all []int64, err error) {
	return db.ListNumbers(v.c, selectRecordVersions, rowsOf(record)...)
}

func (v erasableVersions) ReadEntry(version int64) (*codec.Entry, error) {
	return v.blocks.ReadEntry(version)
}

// Erase implements erase.Versions.
func (v erasableVersions) Erase(source, kind string, record, version int64, sparePresent bool) (taken bool, err error) {
	var current []int64
	again := false
	err = db.VisitRows(v.c, selectCurrentOf, append(rowsOf(record), version), func(r []driver.Value) {
		current = append(current, r[0].(int64))
		again = again || sparePresent && r[1].(int64)&records.Gone == 0
	})
	if err != nil || again { // sparePresent spares a record that is present again since it was listed
		return false, err
	}
	k := v.db.catalog.Kind(source, kind)
	s := &saving{db: v.db, c: v.c, kind: k, blocks: v.blocks}
	if err := s.removeFromIndexes(record, func(held int64) bool { return slices.Contains(current, held) }); err != nil {
		return false, err
	}
	for _, held := range current {
		if err := v.c.Execute(updateErasedHeld, 0, held); err != nil {
			return false, err
		}
	}
	taken, err = v.blocks.Erase(version, len(current) > 0)
	if records.IsMissing(err) {
		err = v.checkMissing(record, version, err)
	}
	return taken, err
}

// checkMissing decides whether a missing block is damage. It returns nil if the version no longer belongs to the
// record: the version was deleted through another row since the batch was read, or the record was forgotten.
// Otherwise it returns err.
func (v erasableVersions) checkMissing(record, version int64, err error) error {
	all, rerr := v.listBodies(record)
	if rerr != nil || slices.Contains(all, version) {
		return cmp.Or(rerr, err)
	}
	return nil
}

func (v erasableVersions) Forget(record int64) error {
	if err := v.c.Execute(updateForgotten, 0, rowsOf(record)...); err != nil {
		return err
	}
	return v.c.Execute(deleteRecord, 0, rowsOf(record)...)
}

func (v erasableVersions) Write() error { return v.blocks.Write() }
