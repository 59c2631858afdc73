// This file erases a batch of listed records, a few in each transaction.

package erase

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/store/codec"
	"understudy/internal/store/db"
)

// batch is a group of records of one erasure that are erased together.
type batch struct {
	job             *job
	eraser          *Eraser
	erasure, source int64
	name            string // the name of the source
	records         []erasing
	matches         *matchers
	toErase         map[int64]bool // the versions to erase
	ids             map[string]bool
	pages           []int64
	late            []int64 // pages saved meanwhile that show a version to erase; only the writing goroutine uses this
	searched        bool    // versions and pages outside the records were already searched for the erased texts
}

// erasing is one listed record.
type erasing struct {
	number, record int64
	kind           Kind
	id             string
	cause          Cause
	bound          int64
	fields         []string
	versions       []int64
	present        bool // the record is stored and not deleted
	files          int
}

var selectErasing = &db.Statement{Head: `SELECT g.number, g.erasure, g.source, g.kind, g.record, g.cause, g.bound, g.fields,
	s.name, k.name
	FROM erasing g JOIN source s ON s.number = g.source JOIN kind k ON k.number = g.kind
	WHERE g.number > ? AND g.state = 0 AND g.erasure = (SELECT min(erasure) FROM erasing WHERE state = 0 AND erasure > 0)
	ORDER BY g.number LIMIT ?`}

// readNext returns the next batch, or nil when no listed record is left.
func (r *job) readNext(ctx context.Context) (*batch, error) {
	m := &matchers{texts: map[string]bool{}, numbers: map[string]bool{}, longTexts: map[[longText]byte][]string{}}
	b := &batch{job: r, eraser: r.eraser, matches: m, toErase: map[int64]bool{}, ids: map[string]bool{}}
	for more := true; more && len(b.records) < eraseBatch; {
		before := len(b.records)
		if err := r.eraser.pool.Read(ctx, b.readMore); err != nil {
			return nil, err
		}
		more = len(b.records) == before+readRecords
	}
	if len(b.records) == 0 {
		return nil, nil
	}
	return b, nil
}

// readMore reads further records of the batch.
func (b *batch) readMore(c db.Conn) error {
	before, last := len(b.records), int64(0)
	if before > 0 {
		last = b.records[before-1].number
	}
	err := db.VisitRows(c, selectErasing, []driver.Value{last, int64(readRecords)}, func(row []driver.Value) {
		b.erasure, b.source, b.name = row[1].(int64), row[2].(int64), row[8].(string)
		e := erasing{number: row[0].(int64), record: row[4].(int64), cause: Cause(row[5].(int64)), bound: row[6].(int64)}
		e.kind, _ = b.eraser.store.Kind(b.name, row[9].(string))
		if fields := row[7].(string); fields != "" {
			e.fields = strings.Split(fields, "\n")
		}
		b.records = append(b.records, e)
	})
	for i := before; i < len(b.records) && err == nil; i++ {
		err = b.readTexts(c, &b.records[i])
	}
	return err
}

// readTexts reads the id of a record to erase, its versions to erase, and the texts in them.
func (b *batch) readTexts(c db.Conn, e *erasing) error {
	versions := b.eraser.store.Versions(c)
	present, all, err := versions.ListVersions(e.record)
	if err != nil {
		return err
	}
	e.present = len(present) > 0
	for _, v := range all {
		entry, err := versions.ReadEntry(v)
		if err != nil {
			return err
		}
		if entry.Record != e.record {
			return db.NewDamageError("version %d is not of record %d", v, e.record)
		}
		if entry.ID != "" {
			e.id = entry.ID
		}
		switch {
		case entry.IsPruned() || e.cause == CauseDeleted && present[v]:
			continue
		case e.cause == CauseRedacted && (v >= e.bound || !hasAny(entry.Body, e.fields)):
			continue
		}
		b.matches.add(e.kind.Spec, entry.Body, e.fields)
		b.toErase[v] = true
		e.versions = append(e.versions, v)
	}
	if e.cause != CauseRedacted && e.id != "" {
		b.ids[e.id] = true
	}
	return nil
}

// run erases the batch. It begins with the pages, so that no page is ever left with missing records.
func (b *batch) run(ctx context.Context) error {
	end, err := b.eraser.store.WatchPages(ctx, func(page int64, versions []int64) {
		if page != 0 && slices.ContainsFunc(versions, func(v int64) bool { return b.toErase[v] }) {
			b.late = append(b.late, page)
		}
	})
	if err != nil {
		return err
	}
	defer end()
	err = b.eraser.store.VisitPages(ctx, b.source, func(number int64, sk *codec.Skeleton) {
		whole, _ := understudy.OutageRows(sk.Kept)
		named := sk.ID != "" && b.ids[sk.ID] || slices.ContainsFunc(whole, func(r understudy.Row) bool { return r.ID != "" && b.ids[r.ID] })
		if named || slices.ContainsFunc(sk.Versions, func(v int64) bool { return b.toErase[v] }) || b.matches.matchPage(sk) {
			b.pages = append(b.pages, number)
		}
	})
	if err != nil {
		return err
	}
	for part := range slices.Chunk(b.pages, db.MaxTuples) {
		if err := b.runTransaction(ctx, func(c db.Conn) error { return b.deletePages(c, part) }); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(b.records, eraseRecords) {
		if err := b.forgetFiles(part); err != nil {
			return err
		}
		if err := b.runTransaction(ctx, func(c db.Conn) error { return b.take(c, part) }); err != nil {
			return err
		}
		b.searched = true
		b.job.done += int64(len(part))
		if b.job.o.Progress != nil {
			b.job.o.Progress(b.job.done, max(b.job.total, b.job.done))
		}
	}
	return b.notify(ctx)
}

// forgetFiles deletes the contents, such as audio and images, of records.
func (b *batch) forgetFiles(part []erasing) error {
	for i := range part {
		e := &part[i]
		if b.job.o.Files == nil || e.cause == CauseRedacted || e.id == "" {
			continue
		}
		gone, err := b.job.o.Files.Forget(b.name, e.kind.Name, e.id)
		if err == nil {
			err = b.job.o.Files.RetryRemovals()
		}
		if err != nil {
			return err
		}
		e.files = gone
	}
	return nil
}

// runTransaction runs work in a transaction. It first deletes the pages that were saved meanwhile and show a version to
// erase.
func (b *batch) runTransaction(ctx context.Context, work func(c db.Conn) error) error {
	return b.eraser.pool.ReleaseChange(ctx, func(c db.Conn) error {
		b.eraser.pool.CallAfterCommit(func() { b.late = nil })
		for part := range slices.Chunk(b.late, db.MaxTuples) {
			if err := b.deletePages(c, part); err != nil {
				return err
			}
		}
		return work(c)
	})
}

func (b *batch) deletePages(c db.Conn, numbers []int64) error {
	gone, err := b.eraser.store.DeletePages(c, numbers)
	if err != nil {
		return err
	}
	return c.Execute(countErasure, 0, int64(0), int64(0), gone, int64(0), b.erasure)
}

// take erases the bodies of some records, in a transaction.
func (b *batch) take(c db.Conn, part []erasing) error {
	if !b.searched {
		if err := b.takeMentions(c); err != nil {
			return err
		}
	}
	var records, versions, files int64
	bodies := b.eraser.store.Versions(c) // the blocks of this transaction, so that each block is written only once
	for i := range part {
		e := &part[i]
		gone, err := b.takeRecord(c, bodies, e)
		if err != nil {
			return fmt.Errorf("record %d: %w", e.record, err)
		}
		versions += gone
		files += int64(e.files)
		if gone > 0 || e.cause != CauseRedacted {
			records++
		}
		if err := c.Execute(updateErasing, 0, e.number); err != nil {
			return err
		}
	}
	if err := bodies.Write(); err != nil {
		return err
	}
	return c.Execute(countErasure, 0, records, versions, int64(0), files, b.erasure)
}

// takeRecord erases one record and returns how many bodies it erased.
func (b *batch) takeRecord(c db.Conn, bodies Versions, e *erasing) (gone int64, err error) {
	slices.Sort(e.versions)
	for _, v := range e.versions {
		taken, err := bodies.Erase(b.name, e.kind.Name, e.record, v, e.cause == CauseDeleted)
		if err != nil {
			return gone, err
		}
		if taken {
			gone++
		}
	}
	if e.cause == CauseRedacted || e.cause == CauseDeleted && e.present {
		return gone, nil
	}
	if err := b.eraser.written.Erase(c, e.record); err != nil || e.cause == CauseDeleted {
		return gone, err
	}
	return gone, bodies.Forget(e.record)
}
