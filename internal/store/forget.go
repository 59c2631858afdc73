// This file forgets pages and records, as if the store had never seen them.

package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"understudy"
	"understudy/internal/store/catalog"
	"understudy/internal/store/codec"
	"understudy/internal/store/db"
	"understudy/internal/store/names"
	"understudy/internal/store/pages"
	"understudy/internal/store/records"
)

var (
	deletePage   = &db.Statement{Head: "DELETE FROM page WHERE number = ? RETURNING 1"}
	deleteNumber = &db.Statement{Head: "DELETE FROM page WHERE number IN (", Tuple: "?", Tail: ") RETURNING 1"}
)

// ForgetPage deletes the page of a key and reports whether the page was stored. The records that it shows are
// kept. The deletion is durable: the page does not return after a crash of the machine.
func (d *DB) ForgetPage(ctx context.Context, key understudy.Key) (held bool, err error) {
	err = d.pool.ReleaseDurably(ctx, func(c db.Conn) error {
		source, _ := d.catalog.Source(key.Source)
		row, _, err := d.pages.Find(c, source, key)
		if err != nil {
			return err
		}
		d.pool.MarkChanged(db.Pages)
		held, err = db.QueryRow(c, deletePage, []driver.Value{row.Number}, func([]driver.Value) {})
		return err
	})
	if errors.Is(err, understudy.ErrNotFound) {
		return false, nil
	}
	return held, db.WrapError(true, err, "forget page %s", key)
}

// ForgetRecord deletes a record's bodies in every shape and the pages that show it. The record's id, its number
// and a hash of its newest body are kept, so that its next observation is no change. It returns how many pages
// and bodies it deleted. No save of the kind should be running in this process, because a save that began before
// may store the record again. Pages that other processes save meanwhile are deleted. The deletion survives a crash of the machine.
func (d *DB) ForgetRecord(ctx context.Context, source, kind, id string) (pages, versions int, err error) {
	k, err := d.catalog.FindKind(ctx, source, kind)
	if err != nil || k == nil {
		return 0, 0, err
	}
	f := &forgetting{db: d, kind: k, source: source, id: id}
	err = f.run(ctx)
	return f.deleted.pages, f.deleted.versions, db.WrapError(true, err, "forget record %s %s %s", source, kind, id)
}

// forgetting is the state of one ForgetRecord call.
type forgetting struct {
	db      *DB
	kind    *catalog.Kind
	source  string
	id      string
	record  int64 // the number of the record, or 0 if it was never seen
	page    int64 // the last version of a page of the source, before the search
	deleted struct{ pages, versions int }

	versions  map[int64]bool // all versions of the record
	latePages []int64        // pages saved during the search that show the record; only the writing goroutine uses this
}

// run deletes the pages that show the record, then its older versions, then its newest ones.
func (f *forgetting) run(ctx context.Context) error {
	end, err := f.db.counts.watchers.add(ctx, func(s *saving) {
		shows := hasID(s.p.Rows, f.id)
		if s.kind == f.kind && s.outcome.pageRow != 0 && (shows || s.p.ID == f.id) {
			f.latePages = append(f.latePages, s.outcome.pageRow)
		}
	})
	if err != nil {
		return err
	}
	defer end()
	if err := f.db.pool.Read(ctx, f.findVersions); err != nil {
		return err
	}
	var showing []int64
	err = f.db.pages.VisitPages(ctx, f.db.pool, pages.Scope{Kind: f.kind.Number}, func(number int64, sk *codec.Skeleton) {
		if f.isShownOn(sk) {
			showing = append(showing, number)
		}
	})
	if err != nil {
		return err
	}
	for part := range slices.Chunk(showing, db.MaxTuples) {
		if err := f.runTransaction(ctx, func(c db.Conn) error { return f.deletePages(c, part) }); err != nil {
			return err
		}
	}
	for done := false; !done; {
		err := f.runTransaction(ctx, func(c db.Conn) (err error) {
			if err = f.deletePagesOfOthers(c); err == nil {
				done, err = f.deleteVersions(c)
			}
			if err == nil && done {
				err = f.deleteNewest(c)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// isShownOn reports whether a page shows the record.
func (f *forgetting) isShownOn(sk *codec.Skeleton) bool {
	whole, _ := understudy.OutageRows(sk.Kept)
	return sk.ID == f.id || hasID(whole, f.id) || slices.ContainsFunc(sk.Versions, func(v int64) bool { return f.versions[v] })
}

func hasID(rows []understudy.Row, id string) bool {
	return slices.ContainsFunc(rows, func(r understudy.Row) bool { return r.ID == id })
}

// runTransaction runs work in a durable transaction. It first deletes the pages that were saved meanwhile and
// show the record.
func (f *forgetting) runTransaction(ctx context.Context, work func(c db.Conn) error) error {
	before := f.deleted
	err := f.db.pool.ReleaseDurably(ctx, func(c db.Conn) error {
		f.deleted = before
		f.db.pool.MarkChanged(db.Pages)
		f.db.pool.CallAfterCommit(func() { f.latePages = nil })
		for part := range slices.Chunk(f.latePages, db.MaxTuples) {
			if err := f.deletePages(c, part); err != nil {
				return err
			}
		}
		return work(c)
	})
	if err != nil {
		f.deleted = before
	}
	return err
}

func (f *forgetting) deletePages(c db.Conn, numbers []int64) error {
	gone, err := deletePagesOf(c, numbers)
	f.deleted.pages += int(gone)
	return err
}

var (
	selectLastPage   = &db.Statement{Head: "SELECT page FROM source WHERE number = ?"}
	selectLaterPages = &db.Statement{Head: "SELECT number, size, body FROM page WHERE source = ? AND kind = ? AND version > ?"}
)

// deletePagesOfOthers deletes the pages that other processes have saved since the search and that show the record.
func (f *forgetting) deletePagesOfOthers(c db.Conn) error {
	if !f.db.pool.Engine.IsDistant() {
		return nil // there is no other process
	}
	before := f.page
	if err := f.findVersions(c); err != nil || f.page == before {
		return err
	}
	source, _ := f.db.catalog.Source(f.source)
	var late []int64
	err := c.Query(selectLaterPages, 0, []driver.Value{source, f.kind.Number, before}, func(r []driver.Value) error {
		sk, err := f.db.pages.UnpackSkeleton(r[2].([]byte), r[1].(int64))
		if err == nil && f.isShownOn(sk) {
			late = append(late, r[0].(int64))
		}
		return records.SkipDamaged(err)
	})
	for part := range slices.Chunk(late, db.MaxTuples) {
		if err == nil {
			err = f.deletePages(c, part)
		}
	}
	return err
}

var selectRecordVersions = &db.Statement{Head: `SELECT version FROM held WHERE number BETWEEN ?1 AND ?2
	UNION SELECT coalesce(version, number) FROM past WHERE held BETWEEN ?1 AND ?2 AND tag IS NOT NULL`}

// findVersions looks up the record's number and its versions, and the last version of a page.
func (f *forgetting) findVersions(c db.Conn) (err error) {
	f.versions = map[int64]bool{}
	source, _ := f.db.catalog.Source(f.source)
	if _, err := db.QueryRow(c, selectLastPage, []driver.Value{source}, func(r []driver.Value) { f.page = r[0].(int64) }); err != nil {
		return err
	}
	if f.record, err = names.FindRecord(c, f.kind.Number, db.AppendID(nil, f.kind.Prefix(), f.id)); err != nil || f.record == 0 {
		return err
	}
	return db.VisitRows(c, selectRecordVersions, rowsOf(f.record), func(r []driver.Value) { f.versions[r[0].(int64)] = true })
}

var (
	selectSomeOld = &db.Statement{Head: `SELECT DISTINCT coalesce(p.version, p.number) FROM past p LEFT JOIN held h ON h.number = p.held
		WHERE p.held BETWEEN ? AND ? AND p.tag IS NOT NULL AND h.version IS DISTINCT FROM coalesce(p.version, p.number) LIMIT ?`}
	deleteVersion   = &db.Statement{Head: "DELETE FROM past WHERE held BETWEEN ? AND ? AND coalesce(version, number) = ?"}
	deleteRecord    = &db.Statement{Head: "DELETE FROM past WHERE held BETWEEN ? AND ?"}
	selectNewest    = &db.Statement{Head: "SELECT version FROM held WHERE number BETWEEN ? AND ? AND state & 8 = 0"}
	updateForgotten = &db.Statement{Head: "UPDATE held SET state = state | 8, stretch = NULL, since = -1 WHERE number BETWEEN ? AND ?"}
)

// forgetBatch is the number of versions that one transaction erases.
const forgetBatch = 16

// deleteVersions erases up to forgetBatch versions that are not the newest and that no page shows any more.
// done reports that no such version is left.
func (f *forgetting) deleteVersions(c db.Conn) (done bool, err error) {
	old, err := db.ListNumbers(c, selectSomeOld, append(rowsOf(f.record), int64(forgetBatch))...)
	if err != nil {
		return false, err
	}
	blocks := f.db.opener.Open(c)
	for _, v := range old {
		if err := f.eraseVersion(blocks, v, false); err != nil {
			return false, err
		}
		if err := c.Execute(deleteVersion, 0, append(rowsOf(f.record), v)...); err != nil {
			return false, err
		}
	}
	return len(old) < forgetBatch, blocks.Write()
}

// deleteNewest erases the newest versions. Their entries in the blocks keep the id.
func (f *forgetting) deleteNewest(c db.Conn) error {
	newest, err := db.ListNumbers(c, selectNewest, rowsOf(f.record)...)
	if err != nil {
		return err
	}
	blocks := f.db.opener.Open(c)
	s := &saving{db: f.db, c: c, kind: f.kind, blocks: blocks}
	if err := s.removeFromIndexes(f.record, func(int64) bool { return true }); err != nil {
		return err
	}
	if err := c.Execute(updateForgotten, 0, rowsOf(f.record)...); err != nil {
		return err
	}
	for _, v := range newest {
		if err := f.eraseVersion(blocks, v, true); err != nil {
			return err
		}
	}
	if err := c.Execute(deleteRecord, 0, rowsOf(f.record)...); err != nil {
		return err
	}
	return blocks.Write()
}

// eraseVersion erases one body and the values by which it can be found.
func (f *forgetting) eraseVersion(blocks *records.Blocks, version int64, named bool) error {
	e, err := blocks.ReadEntry(version)
	if err != nil {
		return err
	}
	if e.Record != f.record {
		return fmt.Errorf("version %d is not of record %d", version, f.record)
	}
	taken, err := blocks.Erase(version, named)
	if taken {
		f.deleted.versions++
	}
	return err
}
