// Doors for the tests.

package store

import (
	"context"
	"database/sql/driver"
	"strconv"

	"understudy/internal/store/erase"
	"understudy/internal/store/sqlite"
)

// LimitPages lets the file grow to n pages, as a full disk would.
func LimitPages(db *DB, n int) error {
	return db.pool.Write(context.Background(), func(c *sqlite.Conn) (bool, error) {
		return false, c.QueryOnce("PRAGMA max_page_count = "+strconv.Itoa(n), func([]driver.Value) error { return nil })
	})
}

// HoldWriter takes the writing connection until release is called.
func HoldWriter(db *DB) (release func()) {
	c := <-db.pool.Writer
	return func() { db.pool.Writer <- c }
}

// Clean overwrites remains, and says how many bytes.
func Clean(db *DB) (int64, error) { return db.pool.Sanitize(context.Background()) }

// Pool returns the connections of the store.
func Pool(db *DB) *sqlite.Pool { return db.pool }

// Epoch returns twice how often records made room for others.
func Epoch(db *DB) int64 { return db.counts.epoch.Load() }

// List is EraseNumber up to where a crash may end it.
func List(ctx context.Context, db *DB, source, what string) (erase.Erasure, error) {
	e, _, err := erase.New(erase.Options{Pool: db.pool, Store: unmarked{erasable{db}}, Now: db.o.Now}).EraseNumber(ctx, source, what)
	return e, err
}

// unmarked crashes before a record is marked.
type unmarked struct{ erasable }

func (unmarked) Mark(context.Context, int64) error { return nil }

// WatchSync makes the writing connection note how each row that is written to a table,
// or taken out of it, is committed (PRAGMA synchronous: 1 NORMAL, 2 FULL). seen is what it has noted since
// it was asked last.
func WatchSync(db *DB, table string) (seen func() ([]int64, error), err error) {
	ctx := context.Background()
	err = db.pool.Write(ctx, func(c *sqlite.Conn) (bool, error) {
		if err := c.ExecuteOnce("CREATE TEMP TABLE seen (how INTEGER)"); err != nil {
			return false, err
		}
		for _, what := range []string{"INSERT", "UPDATE", "DELETE"} {
			err := c.ExecuteOnce("CREATE TEMP TRIGGER on_" + what + " AFTER " + what + " ON main." + table +
				" BEGIN INSERT INTO seen SELECT synchronous FROM pragma_synchronous; END")
			if err != nil {
				return false, err
			}
		}
		return false, nil
	})
	return func() (all []int64, err error) {
		err = db.pool.Write(ctx, func(c *sqlite.Conn) (bool, error) {
			err := c.QueryOnce("SELECT how FROM seen", func(r []driver.Value) error { all = append(all, r[0].(int64)); return nil })
			if err == nil {
				err = c.ExecuteOnce("DELETE FROM seen")
			}
			return false, err
		})
		return all, err
	}, err
}
