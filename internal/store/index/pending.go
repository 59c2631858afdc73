// Pending: what saves leave to the indexes. Writing it for several pages at once costs much less than page by page.
//
//	Save:   Leave    a row of pending, in the save's transaction; all rows are written
//	                 when they are many
//	later:  Settle   all rows are written, soon after the first was committed
//	others: Update   all rows and what is to be changed now
//	Seek:   Pending  the rows, read beside the indexes

package index

import (
	"context"
	"database/sql/driver"
	"sync/atomic"
	"time"

	"understudy/internal/store/fts5"
	"understudy/internal/store/inverted"
	"understudy/internal/store/sqlite"
	"understudy/internal/store/terms"
)

const (
	leftFor  = 100 * time.Millisecond // how long rows are left
	maxRows  = 8                      // so many saves are written together
	maxBytes = 96 << 10               // of all rows; a save that would make them more is written
	patience = 10 * time.Second       // how long settling may take
)

var (
	selectPending = &sqlite.Statement{Head: "SELECT body FROM pending ORDER BY number"}
	sumPending    = &sqlite.Statement{Head: "SELECT count(*), coalesce(sum(length(body)), 0) FROM pending"}
	insertPending = &sqlite.Statement{Head: "INSERT INTO pending (body) VALUES (?)"}
	deletePending = &sqlite.Statement{Head: "DELETE FROM pending"}
)

// Pending is what the tables of the indexes lack. It is only read.
type Pending struct {
	Terms inverted.Pending
	Words fts5.Pending
}

// PendingOf is what is pending in the moment of a transaction.
func PendingOf(c *sqlite.Conn) (Pending, error) {
	var all changes
	err := all.read(c)
	return all.pending(), err
}

// changes is what saves do to the indexes, one after the other.
type changes struct {
	out, in []inverted.Entry
	words   []fts5.Write
}

// pending is what changes come to. It uses them up.
func (a *changes) pending() Pending {
	return Pending{inverted.NewPending(a.out, a.in), fts5.NewPending(a.words)}
}

// read adds what is pending.
func (a *changes) read(c *sqlite.Conn) error {
	return c.Query(selectPending, 0, nil, func(r []driver.Value) error {
		if err := a.parse(r[0].([]byte)); err != nil {
			return sqlite.Damaged("what is pending for the indexes: %w; run understudy store rebuild", err)
		}
		return nil
	})
}

// changesOf is what edits come to.
func (x *Index) changesOf(c *sqlite.Conn, edits []Edit) (changes, error) {
	x.members = readFacts(edits, x.members[:0])
	return x.changes(c, indexed(edits, x.built.words.Load()), indexed(edits, x.built.terms.Load()))
}

// changes is what edits, whose facts are read, come to in each index.
func (x *Index) changes(c *sqlite.Conn, inWords, inTerms []Edit) (a changes, err error) {
	a.words = x.cutter.Writes(editsFor(inWords, wordsOf))
	a.out, a.in, err = terms.Entries(c, &x.Ranges, editsFor(inTerms, termsOf))
	return a, err
}

// Leave has what edits come to written by a later transaction; left reports that one is to
// come. Until then it is pending.
func (x *Index) Leave(c *sqlite.Conn, edits []Edit) (left bool, err error) {
	if len(edits) == 0 {
		return false, nil
	}
	a, err := x.changesOf(c, edits)
	if err != nil {
		return false, err
	}
	x.packed = a.appendTo(x.packed[:0])
	rows, size := int64(1), int64(len(x.packed))
	if _, err := c.One(sumPending, nil, func(r []driver.Value) { rows, size = rows+r[0].(int64), size+r[1].(int64) }); err != nil {
		return false, err
	}
	if len(x.packed) > maxBytes {
		x.packed = nil
	}
	if rows >= maxRows || size > maxBytes {
		return false, x.write(c, a)
	}
	return true, c.Exec(insertPending, 0, x.packed)
}

// Update brings the indexes up to date with some edits and with what is pending, in a transaction.
func (x *Index) Update(c *sqlite.Conn, edits []Edit) error {
	if len(edits) == 0 {
		return nil
	}
	a, err := x.changesOf(c, edits)
	if err != nil {
		return err
	}
	return x.write(c, a)
}

// write writes what is pending, and then some changes.
func (x *Index) write(c *sqlite.Conn, then changes) error {
	var all changes
	if err := all.read(c); err != nil {
		return err
	}
	if err := c.Exec(deletePending, 0); err != nil {
		return err
	}
	all.out, all.in, all.words = append(all.out, then.out...), append(all.in, then.in...), append(all.words, then.words...)
	p := all.pending()
	if err := inverted.Update(c, p.Terms); err != nil {
		return err
	}
	return fts5.Update(c, p.Words)
}

// settling is the transaction to come that writes what is pending.
type settling struct{ waits atomic.Bool }

// Settle has what is pending written a little later. Many goroutines may call it at once. What
// cannot be written then stays pending, and comes with the next save.
func (x *Index) Settle() {
	if x.settling.waits.Swap(true) {
		return
	}
	time.AfterFunc(leftFor, func() {
		x.settling.waits.Store(false)
		leave, err := x.pool.Begin()
		if err != nil {
			return
		}
		defer leave()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = x.Flush(ctx)
	})
}

// Flush writes what is pending.
func (x *Index) Flush(ctx context.Context) error {
	return x.pool.ReleaseChange(ctx, func(c *sqlite.Conn) error {
		rows := int64(0)
		_, err := c.One(sumPending, nil, func(r []driver.Value) { rows = r[0].(int64) })
		if err != nil || rows == 0 {
			return err
		}
		return x.write(c, changes{})
	})
}
