// This file defers changes of the indexes. Writing them for several pages at once costs much less than page by
// page.
//
//	Save:          Defer          adds a row to table pending in the save's transaction;
//	                              writes all rows if there are many
//	later:         ScheduleFlush  writes all rows soon after the first commit
//	other changes: Update         writes all rows and the given edits
//	queries:       ReadPending    reads the rows, used beside the indexes

package index

import (
	"context"
	"database/sql/driver"
	"sync/atomic"
	"time"

	"understudy/internal/store/db"
	"understudy/internal/store/inverted"
	"understudy/internal/store/terms"
	"understudy/internal/store/wordrows"
)

const (
	flushDelay = 100 * time.Millisecond // how long rows of table pending wait until they are written to the indexes
	maxRows    = 8                      // maximum number of saves whose rows are pending; the next save writes all rows
	maxBytes   = 96 << 10               // maximum bytes of all pending rows; a save that would exceed it writes all rows
	// distantFactor is how many times as many rows and bytes may be pending if each query costs a round trip. Then a save
	// leaves writing them to the flush, which makes many queries.
	distantFactor = 8
	flushTimeout  = 10 * time.Second // maximum time of a scheduled flush
)

var (
	selectPending = &db.Statement{Head: "SELECT body FROM pending ORDER BY number"}
	sumPending    = &db.Statement{Head: "SELECT count(*), coalesce(sum(length(body)), 0) FROM pending"}
	insertPending = &db.Statement{Head: "INSERT INTO pending (body) VALUES (?)"}
	deletePending = &db.Statement{Head: "DELETE FROM pending"}
)

// Pending are the changes that are not yet written to the tables of the indexes. It is read-only.
type Pending struct {
	Terms inverted.Pending
	Words wordrows.Pending
}

// ReadPending returns the changes that are pending in the snapshot of a transaction.
func ReadPending(c db.Conn) (Pending, error) {
	var all changes
	err := all.read(c)
	return all.pending(), err
}

// changes are the index changes of consecutive saves.
type changes struct {
	out, in []inverted.Entry
	words   []wordrows.Write
}

// pending returns the combined effect of the changes. It reuses the memory of a.
func (a *changes) pending() Pending {
	return Pending{inverted.NewPending(a.out, a.in), wordrows.NewPending(a.words)}
}

// read reads the pending changes from the file and appends them to a.
func (a *changes) read(c db.Conn) error {
	return c.Query(selectPending, 0, nil, func(r []driver.Value) error {
		if err := a.parse(r[0].([]byte)); err != nil {
			return db.NewDamageError("the changes that wait for the indexes: %w; run understudy store rebuild", err)
		}
		return nil
	})
}

// buildChanges returns the changes that edits make to the indexes.
func (x *Index) buildChanges(c db.Conn, edits []Edit) (changes, error) {
	x.members = readFacts(edits, x.members[:0])
	return x.computeChanges(c, coveredEdits(edits, x.built.words.Load()), coveredEdits(edits, x.built.terms.Load()))
}

// computeChanges returns the changes that edits make to each index. readFacts must have been called for the edits.
func (x *Index) computeChanges(c db.Conn, inWords, inTerms []Edit) (a changes, err error) {
	if a.words = x.cutter.Writes(editsFor(inWords, wordsOf)); len(a.words) > 0 {
		x.pool.MarkChanged(db.Words)
	}
	var newTimes bool
	if a.out, a.in, newTimes, err = terms.BuildEntries(c, &x.Ranges, editsFor(inTerms, termsOf)); newTimes {
		x.pool.MarkChanged(db.Indexes)
	}
	return a, err
}

// Expect announces what AddPending will read for edits of records in a shape.
func (x *Index) Expect(c db.Conn, shape int64) error {
	if err := terms.Expect(c, shape); err != nil {
		return err
	}
	return c.Expect(sumPending, 0)
}

// AddPending stores the changes of edits as pending and returns true. If there are too many pending rows, it writes all
// of them and the new changes to the indexes and returns false.
func (x *Index) AddPending(c db.Conn, edits []Edit) (left bool, err error) {
	if len(edits) == 0 {
		return false, nil
	}
	a, err := x.buildChanges(c, edits)
	if err != nil {
		return false, err
	}
	if cap(x.packed) > maxBytes {
		x.packed = nil
	}
	x.packed = a.appendTo(x.packed[:0])
	rows, size := int64(1), int64(len(x.packed))
	if _, err := db.QueryRow(c, sumPending, nil, func(r []driver.Value) { rows, size = rows+r[0].(int64), size+r[1].(int64) }); err != nil {
		return false, err
	}
	more := int64(1)
	if x.pool.Engine.IsDistant() {
		more = distantFactor
	}
	if rows >= maxRows*more || size > maxBytes*more {
		return false, x.write(c, a)
	}
	return true, c.Execute(insertPending, 0, x.packed)
}

// Update writes the changes of edits and all pending changes, in a transaction.
func (x *Index) Update(c db.Conn, edits []Edit) error {
	if len(edits) == 0 {
		return nil
	}
	a, err := x.buildChanges(c, edits)
	if err != nil {
		return err
	}
	return x.write(c, a)
}

// write writes the pending changes to the indexes, and then the changes in then.
func (x *Index) write(c db.Conn, then changes) error {
	var all changes
	if err := all.read(c); err != nil {
		return err
	}
	if err := c.Execute(deletePending, 0); err != nil {
		return err
	}
	all.out, all.in, all.words = append(all.out, then.out...), append(all.in, then.in...), append(all.words, then.words...)
	p := all.pending()
	if err := inverted.Update(c, p.Terms); err != nil {
		return err
	}
	return x.Words.Update(c, p.Words)
}

// flushTimer says whether a transaction that writes the pending changes is scheduled.
type flushTimer struct{ scheduled atomic.Bool }

// ScheduleFlush writes the pending changes to the indexes a little later. It is safe for concurrent use. If writing
// fails, the changes stay pending until the next save.
func (x *Index) ScheduleFlush() {
	if x.flushTimer.scheduled.Swap(true) {
		return
	}
	time.AfterFunc(flushDelay, func() {
		x.flushTimer.scheduled.Store(false)
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		defer cancel()
		_ = x.Flush(ctx)
	})
}

// Flush writes the pending changes to the indexes now.
func (x *Index) Flush(ctx context.Context) error {
	return x.pool.ReleaseChange(ctx, func(c db.Conn) error {
		rows := int64(0)
		_, err := db.QueryRow(c, sumPending, nil, func(r []driver.Value) { rows = r[0].(int64) })
		if err != nil || rows == 0 {
			return err
		}
		return x.write(c, changes{})
	})
}
