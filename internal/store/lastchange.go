// Last change: the number given last, for who wants what comes after it.

package store

import (
	"context"
	"database/sql/driver"
)

var selectLastChange = &statement{head: "SELECT change FROM source WHERE number = ?"}

// LastChange is the number of the source's last change; 0 when there is none.
func (db *DB) LastChange(ctx context.Context, source string) (n int64, err error) {
	leave, err := db.enter()
	if err != nil {
		return 0, err
	}
	defer leave()
	number, ok := db.source(source)
	if !ok {
		return 0, checkContext(ctx)
	}
	err = db.read(ctx, func(c *conn) error {
		_, err := c.one(selectLastChange, []driver.Value{number}, func(r []driver.Value) { n = r[0].(int64) })
		return err
	})
	return n, failed(false, err, "read the last change of %s", source)
}

// LastChange is as DB.LastChange.
func (m *Memory) LastChange(ctx context.Context, source string) (int64, error) {
	if err := m.enter(ctx); err != nil {
		return 0, failed(false, err, "read the last change of %s", source)
	}
	defer m.mu.Unlock()
	s := m.sources[source]
	if s == nil || len(s.changes) == 0 {
		return 0, nil
	}
	return s.changes[len(s.changes)-1].N, nil
}
