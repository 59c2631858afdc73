// Carrying out: what is listed is taken out of every row, a few records in one
// transaction; then the file is cleaned and the receipt is written.

package store

import (
	"context"
	"database/sql/driver"

	"understudy/internal/store/contents"
	"understudy/internal/store/sqlite"
)

const (
	eraseBatch   = 2048 // records that share one walk over the pages
	eraseRecords = 32   // records in one transaction; those of one block together
)

// Eraser is what erasing needs beside the database. All may be nil.
type Eraser struct {
	Files *contents.Files // where the contents of records are
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
	leave, err := db.pool.Begin()
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
	return done, sqlite.Failed(false, err, "erase what is listed")
}

// carrying is one call of CarryOut.
type carrying struct {
	db          *DB
	o           Eraser
	open        []Erasure
	done, total int64
}

var (
	selectUnadopted = &sqlite.Statement{Head: "SELECT DISTINCT source, cause FROM erasing WHERE erasure = 0 ORDER BY source, cause"}
	insertErasure   = &sqlite.Statement{Head: "INSERT INTO erasure (source, cause, hash, begun) VALUES (?, ?, ?, ?) RETURNING number"}
	adoptErasing    = &sqlite.Statement{Head: "UPDATE erasing SET erasure = ? WHERE erasure = 0 AND source = ? AND cause = ?"}
	selectOpen      = &sqlite.Statement{Head: "SELECT number FROM erasure WHERE done = 0 ORDER BY number"}
	countErasing    = &sqlite.Statement{Head: "SELECT count(*) FROM erasing WHERE erasure > 0 AND state <> 1"}
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
	if err := r.db.sanitizeIfNeeded(ctx); err != nil {
		return nil, err
	}
	return r.finish(ctx)
}

// adopt gives what was listed by causes an errand, one a source and cause, and
// learns which errands are open.
func (r *carrying) adopt(ctx context.Context) error {
	return r.db.pool.Release(ctx, func(c *sqlite.Conn) (bool, error) {
		return c.Transaction(ctx, sqlite.BeginWrite, func() error {
			type errand struct{ source, cause int64 }
			var all []errand
			err := c.Query(selectUnadopted, 0, nil, func(row []driver.Value) error {
				all = append(all, errand{row[0].(int64), row[1].(int64)})
				return nil
			})
			if err != nil {
				return err
			}
			for _, e := range all {
				var number int64
				if _, err := c.One(insertErasure, []driver.Value{e.source, e.cause, []byte{}, r.db.o.Now().UnixNano()},
					func(row []driver.Value) { number = row[0].(int64) }); err != nil {
					return err
				}
				if err := c.Exec(adoptErasing, 0, number, e.source, e.cause); err != nil {
					return err
				}
			}
			if err := c.Query(selectOpen, 0, nil, func(row []driver.Value) error {
				r.open = append(r.open, Erasure{Number: row[0].(int64)})
				return nil
			}); err != nil {
				return err
			}
			_, err = c.One(countErasing, nil, func(row []driver.Value) { r.total = row[0].(int64) })
			return err
		})
	})
}

var (
	selectSourceSkeletons = &sqlite.Statement{Head: "SELECT number, size, body FROM page WHERE number > ? AND source = ? " +
		"ORDER BY number LIMIT ?"}
	countErasure = &sqlite.Statement{Head: "UPDATE erasure SET records = records + ?, versions = versions + ?, pages = " +
		"pages + ?, files = files + ? WHERE number = ?"}
	selectCurrentOf  = &sqlite.Statement{Head: "SELECT number, state FROM held WHERE number BETWEEN ? AND ? AND version = ?"}
	updateErasedHeld = &sqlite.Statement{Head: "UPDATE held SET state = state | 8, hash = 0 WHERE number = ?"}
	updateErasing    = &sqlite.Statement{Head: "UPDATE erasing SET state = 1 WHERE number = ?"}
)

var (
	deleteErasing = &sqlite.Statement{Head: "DELETE FROM erasing WHERE erasure > 0 AND state = 1"}
	closeErasures = &sqlite.Statement{Head: "UPDATE erasure SET done = ? WHERE done = 0 AND NOT EXISTS (SELECT 1 " +
		"FROM erasing WHERE erasing.erasure = erasure.number)"}
	deleteIdle = &sqlite.Statement{Head: "DELETE FROM erasure WHERE done > 0 AND cause = ? AND records = 0 AND pages = 0"}
)

// finish writes the receipts: nothing of what they name is left.
func (r *carrying) finish(ctx context.Context) (done []Erasure, err error) {
	err = r.db.pool.Release(ctx, func(c *sqlite.Conn) (bool, error) {
		return c.Transaction(ctx, sqlite.BeginWrite, func() error {
			done = nil
			if err := c.Exec(deleteErasing, 0); err != nil {
				return err
			}
			if err := c.Exec(closeErasures, 0, r.db.o.Now().UnixNano()); err != nil {
				return err
			}
			if err := c.Exec(deleteIdle, 0, int64(CauseRedacted)); err != nil {
				return err
			}
			for i := len(r.open) - 1; i >= 0; i-- {
				n := r.open[i].Number
				one, err := erasuresBetween(c, n-1, n, 1)
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

var selectTaken = &sqlite.Statement{Head: "SELECT count(*) FROM erasing g JOIN erasure e ON e.number = g.erasure " +
	"WHERE g.state = 1 AND (e.records > 0 OR e.pages > 0)"}

// sanitizeIfNeeded overwrites the free bytes of the file if anything was taken
// out of its rows.
func (db *DB) sanitizeIfNeeded(ctx context.Context) error {
	var taken int64
	err := db.pool.Read(ctx, func(c *sqlite.Conn) error {
		_, err := c.One(selectTaken, nil, func(r []driver.Value) { taken = r[0].(int64) })
		return err
	})
	if err != nil || taken == 0 {
		return err
	}
	if err := db.scrubWords(ctx); err != nil {
		return err
	}
	_, err = db.pool.Sanitize(ctx)
	return err
}
