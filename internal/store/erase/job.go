// This file runs the erasure job. It removes the listed records from every row, a few in each transaction. Then
// it overwrites the free bytes of the file and writes the receipts.

package erase

import (
	"context"
	"database/sql/driver"
	"slices"

	"understudy/internal/store/db"
)

const (
	eraseBatch   = 16384 // the maximum number of records for which the pages are scanned together
	readRecords  = 1024  // the number of records whose texts are read in one transaction
	eraseRecords = 32    // the number of records erased in one transaction; records of the same block are erased together
)

// Job is what EraseListed needs in addition to the database. All fields may be nil.
type Job struct {
	Files Contents // the store of the records' contents, such as audio and images
	// Gone is called with the kinds of the erased records. No kinds mean that records of every kind may be erased. It is
	// called before the free bytes are overwritten, so that caches in memory can drop the records.
	Gone func(ctx context.Context, source string, kinds []string) error
	// Copies is called with each source of erased records before the receipts are written. It returns when copies outside the
	// store contain none of these records. After an error no receipt is written. aged says that some were erased for their age.
	Copies func(ctx context.Context, source string, aged bool) error
	// Progress is called with the number of erased records and the total.
	Progress func(done, total int64)
}

// EraseListed erases the records that are listed when it begins. It returns the receipts of the erasures that are then
// complete, newest first. It works in small transactions and may be interrupted at any point. The next call continues
// and repeats nothing. If another call is running, EraseListed waits for it.
func (r *Eraser) EraseListed(ctx context.Context, o Job) (done []Erasure, err error) {
	select {
	case r.running <- struct{}{}:
		defer func() { <-r.running }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	done, err = (&job{eraser: r, o: o}).run(ctx)
	return done, db.WrapError(false, err, "erase what is listed")
}

// Exclude runs work while no call of EraseListed is running.
func (r *Eraser) Exclude(ctx context.Context, work func() error) error {
	select {
	case r.running <- struct{}{}:
		defer func() { <-r.running }()
		return work()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// job is one call of EraseListed.
type job struct {
	eraser      *Eraser
	o           Job
	open        []Erasure
	done, total int64
}

var (
	selectUnadopted = &db.Statement{Head: "SELECT DISTINCT source, cause FROM erasing WHERE erasure = 0 ORDER BY source, cause"}
	insertErasure   = &db.Statement{Head: "INSERT INTO erasure (source, cause, hash, begun) VALUES (?, ?, ?, ?) RETURNING number"}
	adoptErasing    = &db.Statement{Head: "UPDATE erasing SET erasure = ? WHERE erasure = 0 AND source = ? AND cause = ?"}
	selectOpen      = &db.Statement{Head: "SELECT number FROM erasure WHERE done = 0 ORDER BY number"}
	countErasing    = &db.Statement{Head: "SELECT count(*) FROM erasing WHERE erasure > 0 AND state <> 1"}
)

// run marks the records, erases them batch by batch, overwrites the free bytes and writes the receipts.
func (r *job) run(ctx context.Context) ([]Erasure, error) {
	if err := r.assignErasures(ctx); err != nil {
		return nil, err
	}
	if len(r.open) == 0 {
		return nil, nil
	}
	for _, e := range r.open {
		if err := r.eraser.store.Mark(ctx, e.Number); err != nil {
			return nil, err
		}
	}
	if err := r.notifyTaken(ctx); err != nil {
		return nil, err
	}
	for {
		b, err := r.readNext(ctx)
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
	if err := r.sanitizeIfNeeded(ctx); err != nil {
		return nil, err
	}
	if r.o.Copies != nil {
		if err := r.visitTaken(ctx, r.o.Copies); err != nil {
			return nil, err
		}
	}
	return r.finish(ctx)
}

// assignErasures creates an erasure for each source and cause of the records that saves have listed. It also reads
// which erasures are not finished.
func (r *job) assignErasures(ctx context.Context) error {
	return r.eraser.pool.ReleaseChange(ctx, func(c db.Conn) error {
		r.open = nil
		type owner struct{ source, cause int64 }
		var all []owner
		err := db.VisitRows(c, selectUnadopted, nil, func(row []driver.Value) { all = append(all, owner{row[0].(int64), row[1].(int64)}) })
		if err != nil {
			return err
		}
		for _, e := range all {
			var number int64
			if _, err := db.QueryRow(c, insertErasure, []driver.Value{e.source, e.cause, []byte{}, r.eraser.now().UnixNano()},
				func(row []driver.Value) { number = row[0].(int64) }); err != nil {
				return err
			}
			if err := c.Execute(adoptErasing, 0, number, e.source, e.cause); err != nil {
				return err
			}
		}
		if err := c.Query(selectOpen, 0, nil, func(row []driver.Value) error {
			r.open = append(r.open, Erasure{Number: row[0].(int64)})
			return nil
		}); err != nil {
			return err
		}
		_, err = db.QueryRow(c, countErasing, nil, func(row []driver.Value) { r.total = row[0].(int64) })
		return err
	})
}

var (
	countErasure = &db.Statement{Head: "UPDATE erasure SET records = records + ?, versions = versions + ?, pages = " +
		"pages + ?, files = files + ? WHERE number = ?"}
	updateErasing = &db.Statement{Head: "UPDATE erasing SET state = 1 WHERE number = ?"}
)

var (
	deleteErasing = &db.Statement{Head: "DELETE FROM erasing WHERE erasure > 0 AND state = 1"}
	closeErasures = &db.Statement{Head: "UPDATE erasure SET done = ? WHERE done = 0 AND NOT EXISTS (SELECT 1 " +
		"FROM erasing WHERE erasing.erasure = erasure.number)"}
	deleteIdle = &db.Statement{Head: "DELETE FROM erasure WHERE done > 0 AND cause = ? AND records = 0 AND pages = 0"}
)

// finish writes the receipts. By then nothing of the erased records is left.
func (r *job) finish(ctx context.Context) (done []Erasure, err error) {
	err = r.eraser.pool.ReleaseChange(ctx, func(c db.Conn) error {
		done = nil
		if err := c.Execute(deleteErasing, 0); err != nil {
			return err
		}
		if err := c.Execute(closeErasures, 0, r.eraser.now().UnixNano()); err != nil {
			return err
		}
		if err := c.Execute(deleteIdle, 0, int64(CauseRedacted)); err != nil {
			return err
		}
		for i := len(r.open) - 1; i >= 0; i-- {
			n := r.open[i].Number
			one, err := readErasures(c, n-1, n, 1)
			if err != nil {
				return err
			}
			done = append(done, one...)
		}
		return nil
	})
	return done, err
}

var selectTaken = &db.Statement{Head: "SELECT count(*) FROM erasing g JOIN erasure e ON e.number = g.erasure " +
	"WHERE g.state = 1 AND (e.records > 0 OR e.pages > 0)"}

// sanitizeIfNeeded overwrites the free bytes of the file if anything was erased from its rows.
func (r *job) sanitizeIfNeeded(ctx context.Context) error {
	var taken int64
	err := r.eraser.pool.Read(ctx, func(c db.Conn) error {
		_, err := db.QueryRow(c, selectTaken, nil, func(row []driver.Value) { taken = row[0].(int64) })
		return err
	})
	if err != nil || taken == 0 {
		return err
	}
	if err := r.eraser.store.SanitizeIndex(ctx); err != nil {
		return err
	}
	_, err = r.eraser.pool.Engine.Sanitize(ctx, r.eraser.pool)
	return err
}

var selectTakenFrom = &db.Statement{Head: "SELECT s.name, max(g.cause) FROM erasing g JOIN source s ON s.number = g.source " +
	"WHERE g.state = 1 GROUP BY s.name ORDER BY 1"}

// notifyTaken calls Gone for the records that an interrupted call has erased, because that call may have ended before
// it called Gone.
func (r *job) notifyTaken(ctx context.Context) error {
	if err := r.eraser.written.Reload(ctx); err != nil || r.o.Gone == nil {
		return err
	}
	return r.visitTaken(ctx, func(ctx context.Context, source string, _ bool) error { return r.o.Gone(ctx, source, nil) })
}

// visitTaken calls do with each source of the records that are erased and have no receipt yet. aged says that some were erased
// for their age.
func (r *job) visitTaken(ctx context.Context, do func(ctx context.Context, source string, aged bool) error) error {
	type taken struct {
		source string
		aged   bool
	}
	var all []taken
	err := r.eraser.pool.Read(ctx, func(c db.Conn) error {
		return db.VisitRows(c, selectTakenFrom, nil, func(row []driver.Value) {
			all = append(all, taken{row[0].(string), Cause(row[1].(int64)) == CauseAged})
		})
	})
	for _, one := range all {
		if err == nil {
			err = do(ctx, one.source, one.aged)
		}
	}
	return err
}

// notify calls Gone with the kinds of the erased records.
func (b *batch) notify(ctx context.Context) error {
	if err := b.eraser.written.Reload(ctx); err != nil || b.job.o.Gone == nil {
		return err
	}
	if b.records[0].cause == CauseAsked {
		return b.job.o.Gone(ctx, b.name, nil)
	}
	var kinds []string
	for i := range b.records {
		kinds = append(kinds, b.records[i].kind.Name)
	}
	slices.Sort(kinds)
	return b.job.o.Gone(ctx, b.name, slices.Compact(kinds))
}
