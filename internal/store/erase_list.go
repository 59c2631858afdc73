// List: what was found for a person is listed, whole or not at all; then each
// record goes.

package store

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"

	"understudy/internal/store/sqlite"
)

// markBatch is how many records are marked in one transaction.
const markBatch = 256

var (
	insertListed = &sqlite.Statement{Head: "INSERT INTO erasing (erasure, source, kind, record, cause, at, state) " +
		"VALUES ", Tuple: "(?, ?, ?, ?, ?, ?, ?)"}
	selectUnmarked = &sqlite.Statement{Head: "SELECT g.number, g.record, k.name, s.name FROM erasing g " +
		"JOIN kind k ON k.number = g.kind JOIN source s ON s.number = g.source WHERE g.state = 2 AND g.erasure = ? ORDER BY g.number LIMIT ?"}
	updateMarked = &sqlite.Statement{Head: "UPDATE erasing SET state = 0 WHERE number = ?"}
)

// EraseNumber finds what belongs to a number (see Find) and lists it for
// erasing, in one transaction: after a crash it is listed whole or not at all.
// Then, a few in one transaction, each record that is there goes, which is a
// change, and lets itself not be stored again; what a crash leaves of that
// CarryOut does first. With nothing found nothing is listed and there is no
// receipt. While it looks, what is saved may escape it; who waits for the
// receipt calls it until nothing more is found. An error that comes with a
// receipt's number came after it was listed: it will be erased.
func (db *DB) EraseNumber(ctx context.Context, source, what string) (Erasure, Found, error) {
	leave, err := db.pool.Begin()
	if err != nil {
		return Erasure{}, Found{}, err
	}
	defer leave()
	f, err := db.find(ctx, source, what)
	if err != nil || len(f.all) == 0 {
		return Erasure{}, f, sqlite.Failed(false, err, "erase in %s", source)
	}
	e, err := db.list(ctx, source, what, f.all)
	if err == nil {
		err = db.markListed(ctx, e.Number)
	}
	return e, f, sqlite.Failed(false, err, "erase in %s", source)
}

// list lists all of an errand. Rows are all it writes: a million of them take
// seconds, their marks would take minutes.
func (db *DB) list(ctx context.Context, source, what string, all []found) (e Erasure, err error) {
	number, _ := db.source(source)
	slices.SortFunc(all, func(a, b found) int { // one kind after the other, bodies that lie together
		if a.kind != b.kind {
			return strings.Compare(a.kind, b.kind)
		}
		return int(a.record - b.record)
	})
	err = db.pool.Release(ctx, func(c *sqlite.Conn) (bool, error) {
		return c.Transaction(ctx, sqlite.BeginWrite, func() error {
			seal, err := sealKey(c)
			if err != nil {
				return err
			}
			now := db.o.Now().UnixNano()
			if _, err := c.One(insertErasure, []driver.Value{number, int64(CauseAsked), sealed(seal, source, what), now},
				func(r []driver.Value) { e.Number = r[0].(int64) }); err != nil {
				return err
			}
			var args []driver.Value
			for part := range slices.Chunk(all, sqlite.MaxTuples) {
				args = args[:0]
				for _, one := range part {
					args = append(args, e.Number, number, db.kind(source, one.kind).number, one.record, int64(CauseAsked), now, int64(stateListed))
				}
				if err := c.ExecMany(insertListed, 7, args); err != nil {
					return err
				}
			}
			all, err := erasuresBetween(c, e.Number-1, e.Number, 1)
			if err == nil && len(all) == 1 {
				e = all[0]
			}
			return err
		})
	})
	return e, err
}

// The states of a row of erasing.
const (
	stateMarked = 0 // it is to be erased, and is not stored again
	stateTaken  = 1 // its texts are out of every row
	stateListed = 2 // it is to be erased
)

// markListed marks what is listed of an errand, and makes it go.
func (db *DB) markListed(ctx context.Context, erasure int64) error {
	for n := markBatch; n == markBatch; {
		err := db.pool.Release(ctx, func(c *sqlite.Conn) (bool, error) {
			var marked int64
			broken, err := c.Transaction(ctx, sqlite.BeginWrite, func() (err error) {
				n, marked, err = db.markSome(c, erasure)
				return err
			})
			if err == nil {
				db.erased.Add(marked) // before the next save
			}
			return broken, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// markSome marks a few records and says how many those were, and how many of
// them had not been marked before.
func (db *DB) markSome(c *sqlite.Conn, erasure int64) (n int, marked int64, err error) {
	type row struct {
		number, record int64
		kind, source   string
	}
	var rows []row
	err = c.Query(selectUnmarked, 0, []driver.Value{erasure, int64(markBatch)}, func(r []driver.Value) error {
		rows = append(rows, row{r[0].(int64), r[1].(int64), r[2].(string), r[3].(string)})
		return nil
	})
	var m *marking
	kind := ""
	for _, one := range rows {
		if err == nil && (m == nil || one.kind != kind) {
			if m != nil {
				marked += m.marked
				err = m.finish()
			}
			if err == nil {
				m, err = db.newMarking(c, one.source, one.kind, erasure, CauseAsked)
				kind = one.kind
			}
		}
		var id string
		if err == nil {
			id, _, err = m.newest(one.record)
		}
		if err == nil {
			err = m.one(id, one.record)
		}
		if err == nil {
			err = c.Exec(updateMarked, 0, one.number)
		}
		if err != nil {
			return 0, 0, err
		}
	}
	if m != nil && err == nil {
		marked += m.marked
		err = m.finish()
	}
	return len(rows), marked, err
}
