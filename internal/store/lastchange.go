// Last change: the number given last, for who wants what comes after it.

package store

import (
	"context"
	"database/sql/driver"
	"sync/atomic"

	"understudy/internal/store/sqlite"
)

var selectLastChange = &sqlite.Statement{Head: "SELECT change FROM source WHERE number = ?"}

// LastChange is the number of the source's last change; 0 when there is none.
func (db *DB) LastChange(ctx context.Context, source string) (n int64, err error) {
	leave, err := db.pool.Begin()
	if err != nil {
		return 0, err
	}
	defer leave()
	number, ok := db.catalog.Source(source)
	if !ok {
		return 0, sqlite.CheckContext(ctx)
	}
	err = db.pool.Read(ctx, func(c *sqlite.Conn) error {
		_, err := c.One(selectLastChange, []driver.Value{number}, func(r []driver.Value) { n = r[0].(int64) })
		return err
	})
	return n, sqlite.Failed(false, err, "read the last change of %s", source)
}

// Edition says which records there are: change is the number of the source's last
// change, silent is another number after records of any source came or went
// without one (retention, a purge). What was made of records while both were the
// same is still right. silent counts since the store was opened.
func (db *DB) Edition(ctx context.Context, source string) (change, silent int64, err error) {
	silent = db.silent.Load() // before: what is committed after it is told by the next call
	change, err = db.LastChange(ctx, source)
	return change, silent, err
}

// changeSilently is called in a transaction that makes a record come or go without
// a change; db.pool.write settles it.
func (db *DB) changeSilently() {
	if db.silent.Load()%2 == 0 {
		db.silent.Add(1)
	}
}

// afterWrite ends the odd counts of a write, whether it was committed or not.
func (db *DB) afterWrite() {
	for _, n := range []*atomic.Int64{&db.epoch, &db.silent} {
		if n.Load()%2 != 0 {
			n.Add(1)
		}
	}
}
