// Carrying out: what is listed is taken out of every row, a few records in one
// transaction; then the file is cleaned and the receipt is written.

package store

import (
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"

	"understudy"
)

const (
	eraseBatch   = 2048 // records that share one walk over the pages
	eraseRecords = 32   // records in one transaction; those of one block together
)

// Eraser is what erasing needs beside the database. All may be nil.
type Eraser struct {
	Files *Files // where the contents of records are
	// Gone is told the kinds of which something went (none: perhaps all),
	// before the file is cleaned, so that memory forgets it too.
	Gone func(ctx context.Context, source string, kinds []string) error
	// Progress is told how many records of how many are done.
	Progress func(done, total int64)
}

// eraser lets one goroutine at a time carry out.
type eraser struct{ turn chan struct{} }

// toErase tells whoever erases that a save has listed something.
func (db *DB) toErase(s *saving) {
	if s.erasing && db.o.ToErase != nil {
		db.o.ToErase()
	}
}

// CarryOut erases what is listed when it begins and returns the receipts that
// are done by it, the newest first. Everything is done in small transactions,
// may be broken off at any point and is finished by the next call; nothing is
// done twice. One call runs at a time, others wait.
func (db *DB) CarryOut(ctx context.Context, o Eraser) (done []Erasure, err error) {
	leave, err := db.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	select {
	case db.eraser.turn <- struct{}{}:
		defer func() { <-db.eraser.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	done, err = (&carrying{db: db, o: o}).run(ctx)
	return done, failed(false, err, "erase what is listed")
}

// carrying is one call of CarryOut.
type carrying struct {
	db          *DB
	o           Eraser
	open        []Erasure
	done, total int64
}

var (
	selectUnadopted = &statement{head: "SELECT DISTINCT source, cause FROM erasing WHERE erasure = 0 ORDER BY source, cause"}
	insertErasure   = &statement{head: "INSERT INTO erasure (source, cause, hash, begun) VALUES (?, ?, ?, ?) RETURNING number"}
	adoptErasing    = &statement{head: "UPDATE erasing SET erasure = ? WHERE erasure = 0 AND source = ? AND cause = ?"}
	selectOpen      = &statement{head: "SELECT number FROM erasure WHERE done = 0 ORDER BY number"}
	countErasing    = &statement{head: "SELECT count(*) FROM erasing WHERE erasure > 0 AND state <> 1"}
)

func (r *carrying) run(ctx context.Context) ([]Erasure, error) {
	if err := r.adopt(ctx); err != nil {
		return nil, err
	}
	if len(r.open) == 0 {
		return nil, nil
	}
	for _, e := range r.open {
		if err := r.db.markListed(ctx, e.Number); err != nil {
			return nil, err
		}
	}
	if err := r.tellTaken(ctx); err != nil {
		return nil, err
	}
	for {
		b, err := r.next(ctx)
		if err != nil {
			return nil, err
		}
		if b == nil {
			break
		}
		if err := b.run(ctx); err != nil {
			return nil, err
		}
	}
	if err := r.db.repackRetired(ctx); err != nil {
		return nil, err
	}
	if err := r.db.cleanIfNeeded(ctx); err != nil {
		return nil, err
	}
	return r.finish(ctx)
}

// adopt gives what was listed by causes an errand, one a source and cause, and
// learns which errands are open.
func (r *carrying) adopt(ctx context.Context) error {
	return r.db.release(ctx, func(c *conn) (bool, error) {
		return c.transaction(ctx, beginWrite, func() error {
			type errand struct{ source, cause int64 }
			var all []errand
			err := c.query(selectUnadopted, 0, nil, func(row []driver.Value) error {
				all = append(all, errand{row[0].(int64), row[1].(int64)})
				return nil
			})
			if err != nil {
				return err
			}
			for _, e := range all {
				var number int64
				if _, err := c.one(insertErasure, []driver.Value{e.source, e.cause, []byte{}, r.db.o.Now().UnixNano()}, func(row []driver.Value) { number = row[0].(int64) }); err != nil {
					return err
				}
				if err := c.exec(adoptErasing, 0, number, e.source, e.cause); err != nil {
					return err
				}
			}
			if err := c.query(selectOpen, 0, nil, func(row []driver.Value) error {
				r.open = append(r.open, Erasure{Number: row[0].(int64)})
				return nil
			}); err != nil {
				return err
			}
			_, err = c.one(countErasing, nil, func(row []driver.Value) { r.total = row[0].(int64) })
			return err
		})
	})
}

// batch is some records of one errand that are erased together.
type batch struct {
	*carrying
	erasure, source int64
	name            string // of the source
	records         []erasing
	traces          *traces
	wanted          map[int64]bool // versions that go
	ids             map[string]bool
	pages           []int64
	late            []int64 // pages that show a wanted version and were saved meanwhile; the writing connection's
	dictionaries    map[int64][]byte
	searched        bool // for the traces, in what is neither version nor page
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

var selectErasing = &statement{head: `SELECT g.number, g.erasure, g.source, g.kind, g.record, g.cause, g.bound, g.fields, s.name, k.name
	FROM erasing g JOIN source s ON s.number = g.source JOIN kind k ON k.number = g.kind
	WHERE g.state = 0 AND g.erasure = (SELECT min(erasure) FROM erasing WHERE state = 0 AND erasure > 0) ORDER BY g.number LIMIT ?`}

// next is the next batch, nil when nothing is left.
func (r *carrying) next(ctx context.Context) (*batch, error) {
	b := &batch{carrying: r, traces: newTraces(), wanted: map[int64]bool{}, ids: map[string]bool{}, dictionaries: map[int64][]byte{}}
	err := r.db.read(ctx, func(c *conn) error {
		err := c.query(selectErasing, 0, []driver.Value{int64(eraseBatch)}, func(row []driver.Value) error {
			b.erasure, b.source, b.name = row[1].(int64), row[2].(int64), row[8].(string)
			e := erasing{number: row[0].(int64), record: row[4].(int64), cause: Cause(row[5].(int64)), bound: row[6].(int64), kindName: row[9].(string)}
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
		return c.query(selectSourceDictionaries, 0, []driver.Value{b.source}, func(row []driver.Value) error {
			b.dictionaries[row[0].(int64)] = row[1].([]byte)
			return nil
		})
	})
	if err != nil || len(b.records) == 0 {
		return nil, err
	}
	return b, nil
}

// look finds a record's id, the versions of it that go, and what they say.
func (b *batch) look(c *conn, e *erasing) error {
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
		if entry.record != e.record {
			return damaged("version %d is not of record %d", v, e.record)
		}
		if entry.id != "" {
			e.id = entry.id
		}
		switch {
		case entry.hollow() || keep[v]:
			continue
		case e.cause == CauseRedacted && (v >= e.bound || !says(entry.body, e.fields)):
			continue
		}
		b.traces.add(e.kind.spec, entry.body, e.fields)
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
func versionsOf(c *conn, e *erasing) (keep map[int64]bool, all []int64, err error) {
	keep = map[int64]bool{}
	rows := []driver.Value{e.record * slots, e.record*slots + slots - 1}
	if e.cause == CauseDeleted {
		err = c.query(selectShapesHeld, 0, rows, func(r []driver.Value) error {
			if r[4].(int64)&stateGone == 0 {
				keep[r[1].(int64)] = true
			}
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	err = c.query(selectRecordVersions, 0, rows, func(r []driver.Value) error {
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
	err = b.db.scan(ctx, selectSourceSkeletons, []driver.Value{b.source}, func(number int64, sk *skeleton) {
		if sk.id != "" && b.ids[sk.id] || slices.ContainsFunc(sk.versions, func(v int64) bool { return b.wanted[v] }) || b.traces.inPage(sk) {
			b.pages = append(b.pages, number)
		}
	})
	if err != nil {
		return err
	}
	for part := range slices.Chunk(b.pages, most) {
		if err := b.transaction(ctx, func(c *conn) error { return b.deletePages(c, part) }); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(b.records, eraseRecords) {
		if err := b.files(part); err != nil {
			return err
		}
		if err := b.transaction(ctx, func(c *conn) error { return b.take(c, part) }); err != nil {
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
func (b *batch) transaction(ctx context.Context, work func(c *conn) error) error {
	return b.db.release(ctx, func(c *conn) (bool, error) {
		late := b.late
		broken, err := c.transaction(ctx, beginWrite, func() error {
			for part := range slices.Chunk(late, most) {
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

var (
	selectSourceSkeletons    = &statement{head: "SELECT number, dictionary, size, body FROM page WHERE number > ? AND source = ? ORDER BY number LIMIT ?"}
	selectSourceDictionaries = &statement{head: "SELECT d.number, d.body FROM dictionary d JOIN shape h ON h.number = d.shape JOIN kind k ON k.number = h.kind WHERE k.source = ?"}
	countErasure             = &statement{head: "UPDATE erasure SET records = records + ?, versions = versions + ?, pages = pages + ?, files = files + ? WHERE number = ?"}
	selectCurrentOf          = &statement{head: "SELECT number, state FROM held WHERE number BETWEEN ? AND ? AND version = ?"}
	updateErasedHeld         = &statement{head: "UPDATE held SET state = state | 8, hash = 0 WHERE number = ?"}
	updateErasing            = &statement{head: "UPDATE erasing SET state = 1 WHERE number = ?"}
)

func (b *batch) deletePages(c *conn, numbers []int64) error {
	args := make([]driver.Value, len(numbers))
	for i, n := range numbers {
		args[i] = n
	}
	var gone int64
	if err := c.query(deleteNumber, len(args), args, func([]driver.Value) error { gone++; return nil }); err != nil {
		return err
	}
	return c.exec(countErasure, 0, int64(0), int64(0), gone, int64(0), b.erasure)
}

// take takes the bodies of some records out, in a transaction.
func (b *batch) take(c *conn, part []erasing) error {
	if !b.searched {
		if err := b.retire(c); err != nil {
			return err
		}
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
		if err := c.exec(updateErasing, 0, e.number); err != nil {
			return err
		}
	}
	if err := blocks.write(); err != nil {
		return err
	}
	return c.exec(countErasure, 0, records, versions, int64(0), files, b.erasure)
}

func (b *batch) takeOne(c *conn, blocks *opened, e *erasing) (gone int64, err error) {
	rows := []driver.Value{e.record * slots, e.record*slots + slots - 1}
	slices.SortFunc(e.versions, func(a, b int64) int { return cmp.Compare(a, b) })
	for _, v := range e.versions {
		var current []int64
		again := false
		err := c.query(selectCurrentOf, 0, append(slices.Clone(rows), v), func(r []driver.Value) error {
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
			if err := c.exec(updateErasedHeld, 0, held); err != nil {
				return gone, err
			}
		}
		taken, err := blocks.erase(v, len(current) > 0)
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
	if err := c.exec(updateForgotten, 0, rows...); err != nil {
		return gone, err
	}
	return gone, c.exec(deleteRecord, 0, rows...)
}

var (
	deleteErasing = &statement{head: "DELETE FROM erasing WHERE erasure > 0 AND state = 1"}
	closeErasures = &statement{head: "UPDATE erasure SET done = ? WHERE done = 0 AND NOT EXISTS (SELECT 1 FROM erasing WHERE erasing.erasure = erasure.number)"}
	deleteIdle    = &statement{head: "DELETE FROM erasure WHERE done > 0 AND cause = ? AND records = 0 AND pages = 0"}
)

// finish writes the receipts: nothing of what they name is left.
func (r *carrying) finish(ctx context.Context) (done []Erasure, err error) {
	err = r.db.release(ctx, func(c *conn) (bool, error) {
		return c.transaction(ctx, beginWrite, func() error {
			done = nil
			if err := c.exec(deleteErasing, 0); err != nil {
				return err
			}
			if err := c.exec(closeErasures, 0, r.db.o.Now().UnixNano()); err != nil {
				return err
			}
			if err := c.exec(deleteIdle, 0, int64(CauseRedacted)); err != nil {
				return err
			}
			for i := len(r.open) - 1; i >= 0; i-- {
				n := r.open[i].Number
				one, err := c.erasures(n-1, n, 1)
				if err != nil {
					return err
				}
				done = append(done, one...)
			}
			return nil
		})
	})
	return done, err
}
