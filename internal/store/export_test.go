// Doors for the tests.

package store

import (
	"context"
	"database/sql/driver"
	"strconv"

	"understudy/internal/store/db"
	"understudy/internal/store/erase"
	"understudy/internal/store/sqlite"
)

// LimitPages lets the file grow to n pages, as a full disk would.
func LimitPages(d *DB, n int) error {
	return d.pool.Write(context.Background(), func(c db.Conn) (bool, error) {
		return false, c.QueryOnce("PRAGMA max_page_count = "+strconv.Itoa(n), nil, func([]driver.Value) error { return nil })
	})
}

// HoldWriter takes the writing connection until release is called.
func HoldWriter(d *DB) (release func()) {
	held, done := make(chan struct{}), make(chan struct{})
	go func() {
		_ = d.pool.Write(context.Background(), func(db.Conn) (bool, error) {
			close(held)
			<-done
			return false, nil
		})
	}()
	<-held
	return func() { close(done) }
}

// Clean overwrites remains, and says how many bytes.
func Clean(db *DB) (int64, error) { return db.pool.Engine.Sanitize(context.Background(), db.pool) }

// Pool returns the connections of the store.
func Pool(d *DB) *db.Pool { return d.pool }

// Epoch returns twice how often records made room for others.
func Epoch(db *DB) int64 { return db.counts.epoch.Load() }

// List is EraseNumber up to where a crash may end it.
func List(ctx context.Context, db *DB, source, what string) (erase.Erasure, error) {
	o := erase.Options{Pool: db.pool, Store: unmarked{erasable{db}}, Values: db.KV, Now: db.o.Now}
	e, _, err := erase.New(o).EraseNumber(ctx, source, what)
	return e, err
}

// unmarked crashes before a record is marked.
type unmarked struct{ erasable }

func (unmarked) Mark(context.Context, int64) error { return nil }

// WatchSync makes the writing connection note how each row that is written to a table,
// or taken out of it, is committed (PRAGMA synchronous: 1 NORMAL, 2 FULL). seen is what it has noted since
// it was asked last.
func WatchSync(d *DB, table string) (seen func() ([]int64, error), err error) {
	ctx := context.Background()
	err = d.pool.Write(ctx, func(conn db.Conn) (bool, error) {
		c := conn.(*sqlite.Conn)
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
		err = d.pool.Write(ctx, func(c db.Conn) (bool, error) {
			err := c.QueryOnce("SELECT how FROM seen", nil, func(r []driver.Value) error { all = append(all, r[0].(int64)); return nil })
			if err == nil {
				err = c.(*sqlite.Conn).ExecuteOnce("DELETE FROM seen")
			}
			return false, err
		})
		return all, err
	}, err
}
