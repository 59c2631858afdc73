// Package kv stores small values under names, for other packages that must remember something across restarts.
package kv

import (
	"context"
	"database/sql/driver"
	"fmt"
	"log/slog"

	"understudy"
	"understudy/internal/store/db"
)

// Limits: the bytes of a name, the bytes of a value, and the number of values that ReadValues returns.
const (
	maxValue  = 64 << 10
	maxName   = 512
	maxValues = 10_000
)

var (
	selectValue  = &db.Statement{Head: "SELECT value FROM kv WHERE name = ?"}
	selectPrefix = &db.Statement{Head: "SELECT name, value FROM kv WHERE name >= ?1 " +
		"AND substr(name, 1, length(?1)) = ?1 ORDER BY name LIMIT ?2"}
	putValue = &db.Statement{Head: "INSERT INTO kv (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE " +
		"SET value = excluded.value"}
	deleteValue = &db.Statement{Head: "DELETE FROM kv WHERE name = ? RETURNING name"}
)

// Table stores small values under names. It is safe for concurrent use.
type Table struct {
	pool    *db.Pool
	log     *slog.Logger
	watched [len(watchable)]watched
}

// New returns the table of named values of a database. Call it before the pool starts.
func New(pool *db.Pool, log *slog.Logger) *Table {
	understudy.SetDefaults(&log, nil)
	k := &Table{pool: pool, log: log}
	for _, w := range watchable {
		pool.SetLoader(w.topic, func(_ context.Context, c db.Conn) error { return k.reload(c, w.topic) })
	}
	return k
}

// Value returns the value under a name, or ErrNotFound if there is none.
func (k *Table) Value(ctx context.Context, name string) (value []byte, err error) {
	err = k.pool.Read(ctx, func(c db.Conn) error {
		found, err := db.QueryRow(c, selectValue, []driver.Value{name}, func(r []driver.Value) { value = cloneBytes(r[0]) })
		if err == nil && !found {
			err = understudy.ErrNotFound
		}
		return err
	})
	return value, db.WrapError(false, err, "value %s", understudy.Clip(name))
}

func cloneBytes(v driver.Value) []byte {
	b, _ := v.([]byte)
	return append([]byte{}, b...)
}

// SetValue stores a value under a name and replaces the former value. A nil value deletes the former value. The
// deletion, for example of a session at sign-out, survives a crash of the machine. Errors: ErrInvalid for a name that
// is empty or longer than 512 bytes or a value above 64 KiB, ErrNotStored.
func (k *Table) SetValue(ctx context.Context, name string, value []byte) error {
	if value == nil {
		_, err := k.Delete(ctx, name)
		return err
	}
	return k.run(ctx, name, value, k.pool.Change, func(c db.Conn) error {
		k.noteChange(name, value)
		return c.Execute(putValue, 0, name, value)
	})
}

// Delete deletes a value and reports whether it existed. The deletion survives a crash of the machine. It may use the
// reserved pages of the file. Errors: ErrInvalid for a bad name, ErrNotStored.
func (k *Table) Delete(ctx context.Context, name string) (found bool, err error) {
	err = k.run(ctx, name, nil, k.pool.ReleaseDurably, func(c db.Conn) error {
		found, err = k.DeleteValue(c, name)
		return err
	})
	return found && err == nil, err
}

// run checks a name and a value, and runs work in a transaction with the function change.
func (k *Table) run(ctx context.Context, name string, value []byte, change func(context.Context, func(db.Conn) error) error,
	work func(c db.Conn) error) error {
	if err := check(name, value); err != nil {
		return db.WrapError(true, err, "value %s", understudy.Clip(name))
	}
	return db.WrapError(true, change(ctx, work), "value %s", name)
}

// DeleteValue deletes a value in a transaction and reports whether it existed.
func (k *Table) DeleteValue(c db.Conn, name string) (found bool, err error) {
	found, err = db.QueryRow(c, deleteValue, []driver.Value{name}, func([]driver.Value) {})
	if found {
		k.noteChange(name, nil)
	}
	return found, err
}

func check(name string, value []byte) error {
	if name == "" || len(name) > maxName || len(value) > maxValue {
		return fmt.Errorf("%w: a value has a name of at most %d bytes and itself at most %d", understudy.ErrInvalid, maxName, maxValue)
	}
	return nil
}

// ReadValues returns the values whose names begin with prefix, at most 10,000. If there are more, it returns those with
// the lowest names.
func (k *Table) ReadValues(ctx context.Context, prefix string) (map[string][]byte, error) {
	var all map[string][]byte
	err := k.pool.Read(ctx, func(c db.Conn) (err error) {
		all, err = readValues(c, prefix, maxValues)
		return err
	})
	return all, db.WrapError(false, err, "values %s", understudy.Clip(prefix))
}

func readValues(c db.Conn, prefix string, limit int64) (map[string][]byte, error) {
	all := map[string][]byte{}
	return all, db.VisitRows(c, selectPrefix, []driver.Value{prefix, limit}, func(r []driver.Value) {
		all[r[0].(string)] = cloneBytes(r[1])
	})
}
