// Batch: what is listed to be erased is taken out, a few records in one transaction.

package store

import (
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/store/codec"
	"understudy/internal/store/sqlite"
)

// batch is some records of one errand that are erased together.
type batch struct {
	*carrying
	erasure, source int64
	name            string // of the source
	records         []erasing
	traces          *matchers
	wanted          map[int64]bool // versions that go
	ids             map[string]bool
	pages           []int64
	late            []int64 // pages that show a wanted version and were saved meanwhile; the writing connection's
	searched        bool    // for the traces, in what is neither version nor page
}

// erasing is one listed record.
type erasing struct {
	number, record int64
	kind           *kindRow
	kindName, id   string
	cause          Cause
	bound          int64
	fields         []string
	versions       []int64
	files          int
}

var selectErasing = &sqlite.Statement{Head: `SELECT g.number, g.erasure, g.source, g.kind, g.record, g.cause, g.bound, g.fields,
	s.name, k.name
	FROM erasing g JOIN source s ON s.number = g.source JOIN kind k ON k.number = g.kind
	WHERE g.state = 0 AND g.erasure = (SELECT min(erasure) FROM erasing WHERE state = 0 AND erasure > 0) ORDER BY g.number LIMIT ?`}

// next is the next batch, nil when nothing is left.
func (r *carrying) next(ctx context.Context) (*batch, error) {
	b := &batch{carrying: r, traces: newTraces(), wanted: map[int64]bool{}, ids: map[string]bool{}}
	err := r.db.pool.Read(ctx, func(c *sqlite.Conn) error {
		err := c.Query(selectErasing, 0, []driver.Value{int64(eraseBatch)}, func(row []driver.Value) error {
			b.erasure, b.source, b.name = row[1].(int64), row[2].(int64), row[8].(string)
			e := erasing{number: row[0].(int64), record: row[4].(int64), cause: Cause(row[5].(int64)), bound: row[6].(int64),
				kindName: row[9].(string)}
			e.kind = r.db.kind(b.name, e.kindName)
			if fields := row[7].(string); fields != "" {
				e.fields = strings.Split(fields, "\n")
			}
			b.records = append(b.records, e)
			return nil
		})
		if err != nil || len(b.records) == 0 {
			return err
		}
		for i := range b.records {
			if err := b.look(c, &b.records[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || len(b.records) == 0 {
		return nil, err
	}
	return b, nil
}

// look finds a record's id, the versions of it that go, and what they say.
func (b *batch) look(c *sqlite.Conn, e *erasing) error {
	keep, all, err := versionsOf(c, e)
	if err != nil {
		return err
	}
	blocks := b.db.blocks(c)
	for _, v := range all {
		entry, err := blocks.entry(v)
		if err != nil {
			return err
		}
		if entry.Record != e.record {
			return sqlite.Damaged("version %d is not of record %d", v, e.record)
		}
		if entry.ID != "" {
			e.id = entry.ID
		}
		switch {
		case entry.Pruned() || keep[v]:
			continue
		case e.cause == CauseRedacted && (v >= e.bound || !says(entry.Body, e.fields)):
			continue
		}
		b.traces.add(e.kind.spec, entry.Body, e.fields)
		b.wanted[v] = true
		e.versions = append(e.versions, v)
	}
	if e.cause != CauseRedacted && e.id != "" {
		b.ids[e.id] = true
	}
	return nil
}

// versionsOf are the versions of a record, and those of them that stay because
// it is there again.
func versionsOf(c *sqlite.Conn, e *erasing) (keep map[int64]bool, all []int64, err error) {
	keep = map[int64]bool{}
	rows := []driver.Value{e.record * slots, e.record*slots + slots - 1}
	if e.cause == CauseDeleted {
		err = c.Query(selectShapesHeld, 0, rows, func(r []driver.Value) error {
			if r[4].(int64)&stateGone == 0 {
				keep[r[1].(int64)] = true
			}
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	err = c.Query(selectRecordVersions, 0, rows, func(r []driver.Value) error {
		all = append(all, r[0].(int64))
		return nil
	})
	return keep, all, err
}

// run erases the batch: pages first, so that none is ever half there.
func (b *batch) run(ctx context.Context) error {
	end, err := b.db.watch(ctx, func(s *saving) {
		if s.number != 0 && slices.ContainsFunc(s.rows, func(r understudy.Row) bool { return b.wanted[r.Version] }) {
			b.late = append(b.late, s.number)
		}
	})
	if err != nil {
		return err
	}
	defer end()
	err = b.db.scan(ctx, selectSourceSkeletons, []driver.Value{b.source}, func(number int64, sk *codec.Skeleton) {
		if sk.ID != "" && b.ids[sk.ID] || slices.ContainsFunc(sk.Versions, func(v int64) bool { return b.wanted[v] }) || b.traces.inPage(sk) {
			b.pages = append(b.pages, number)
		}
	})
	if err != nil {
		return err
	}
	for part := range slices.Chunk(b.pages, sqlite.MaxTuples) {
		if err := b.transaction(ctx, func(c *sqlite.Conn) error { return b.deletePages(c, part) }); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(b.records, eraseRecords) {
		if err := b.files(part); err != nil {
			return err
		}
		if err := b.transaction(ctx, func(c *sqlite.Conn) error { return b.take(c, part) }); err != nil {
			return err
		}
		b.searched = true
		b.done += int64(len(part))
		if b.o.Progress != nil {
			b.o.Progress(b.done, max(b.total, b.done))
		}
	}
	return b.tell(ctx)
}

// files forgets the contents of records.
func (b *batch) files(part []erasing) error {
	for i := range part {
		e := &part[i]
		if b.o.Files == nil || e.cause == CauseRedacted || e.id == "" {
			continue
		}
		gone, err := b.o.Files.Forget(b.name, e.kindName, e.id)
		if err == nil {
			err = b.o.Files.Left()
		}
		if err != nil {
			return err
		}
		e.files = gone
	}
	return nil
}

// transaction runs work in one, after the pages saved meanwhile have gone.
func (b *batch) transaction(ctx context.Context, work func(c *sqlite.Conn) error) error {
	return b.db.pool.Release(ctx, func(c *sqlite.Conn) (bool, error) {
		late := b.late
		broken, err := c.Transaction(ctx, sqlite.BeginWrite, func() error {
			for part := range slices.Chunk(late, sqlite.MaxTuples) {
				if err := b.deletePages(c, part); err != nil {
					return err
				}
			}
			return work(c)
		})
		if err == nil {
			b.late = nil
		}
		return broken, err
	})
}

func (b *batch) deletePages(c *sqlite.Conn, numbers []int64) error {
	args := make([]driver.Value, len(numbers))
	for i, n := range numbers {
		args[i] = n
	}
	var gone int64
	if err := c.Query(deleteNumber, len(args), args, func([]driver.Value) error { gone++; return nil }); err != nil {
		return err
	}
	return c.Exec(countErasure, 0, int64(0), int64(0), gone, int64(0), b.erasure)
}

// take takes the bodies of some records out, in a transaction.
func (b *batch) take(c *sqlite.Conn, part []erasing) error {
	if !b.searched {
		if err := b.beside(c); err != nil {
			return err
		}
	}
	var records, versions, files int64
	blocks := b.db.blocks(c) // each is packed anew once
	for i := range part {
		e := &part[i]
		gone, err := b.takeOne(c, blocks, e)
		if err != nil {
			return fmt.Errorf("record %d: %w", e.record, err)
		}
		versions += gone
		files += int64(e.files)
		if gone > 0 || e.cause != CauseRedacted {
			records++
		}
		if err := c.Exec(updateErasing, 0, e.number); err != nil {
			return err
		}
	}
	if err := blocks.write(); err != nil {
		return err
	}
	return c.Exec(countErasure, 0, records, versions, int64(0), files, b.erasure)
}

func (b *batch) takeOne(c *sqlite.Conn, blocks *opened, e *erasing) (gone int64, err error) {
	rows := []driver.Value{e.record * slots, e.record*slots + slots - 1}
	slices.SortFunc(e.versions, func(a, b int64) int { return cmp.Compare(a, b) })
	for _, v := range e.versions {
		var current []int64
		again := false
		err := c.Query(selectCurrentOf, 0, append(slices.Clone(rows), v), func(r []driver.Value) error {
			current = append(current, r[0].(int64))
			again = again || e.cause == CauseDeleted && r[1].(int64)&stateGone == 0
			return nil
		})
		if err != nil {
			return gone, err
		}
		if again {
			continue // it came back meanwhile
		}
		if err := b.db.hide(c, blocks, e.kind, e.record, func(held int64) bool { return slices.Contains(current, held) }); err != nil {
			return gone, err
		}
		for _, held := range current {
			if err := c.Exec(updateErasedHeld, 0, held); err != nil {
				return gone, err
			}
		}
		taken, err := blocks.erase(v, len(current) > 0)
		if isMissing(err) {
			err = wentMeanwhile(c, e, v, err)
		}
		if err != nil {
			return gone, err
		}
		if taken {
			gone++
		}
	}
	if e.cause != CauseAsked && e.cause != CauseAged {
		return gone, nil
	}
	if err := c.Exec(updateForgotten, 0, rows...); err != nil {
		return gone, err
	}
	return gone, c.Exec(deleteRecord, 0, rows...)
}

// wentMeanwhile is nil when a version whose block is missing is not its record's
// any more: a row of the same record in an earlier transaction took it out, or
// somebody forgot the record, since the batch was read. Else err: it is damage.
func wentMeanwhile(c *sqlite.Conn, e *erasing, version int64, err error) error {
	_, all, rerr := versionsOf(c, e)
	if rerr != nil || slices.Contains(all, version) {
		return cmp.Or(rerr, err)
	}
	return nil
}
