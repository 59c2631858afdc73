// Package kv keeps small values under names, for packages that have something to
// remember.
package kv

import (
	"context"
	"database/sql/driver"
	"fmt"

	"understudy"
	"understudy/internal/store/sqlite"
)

// Bounds of a note, in bytes, and how many Notes returns.
const (
	maxNote     = 64 << 10
	maxNoteName = 512
	maxNotes    = 10_000
)

var (
	selectNote  = &sqlite.Statement{Head: "SELECT value FROM note WHERE name = ?"}
	selectNotes = &sqlite.Statement{Head: "SELECT name, value FROM note WHERE name >= ?1 " +
		"AND substr(name, 1, length(?1)) = ?1 ORDER BY name LIMIT ?2"}
	putNote = &sqlite.Statement{Head: "INSERT INTO note (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE " +
		"SET value = excluded.value"}
	deleteNote = &sqlite.Statement{Head: "DELETE FROM note WHERE name = ? RETURNING name"}
)

// Table keeps small values under names. It is safe for concurrent use.
type Table struct{ pool *sqlite.Pool }

// New returns the values of a database.
func New(pool *sqlite.Pool) *Table { return &Table{pool} }

// Note returns the value under a name; ErrNotFound when there is none.
func (k *Table) Note(ctx context.Context, name string) (value []byte, err error) {
	leave, err := k.pool.Begin()
	if err != nil {
		return nil, err
	}
	defer leave()
	err = k.pool.Read(ctx, func(c *sqlite.Conn) error {
		found, err := c.One(selectNote, []driver.Value{name}, func(r []driver.Value) { value = noteOf(r[0]) })
		if err == nil && !found {
			err = understudy.ErrNotFound
		}
		return err
	})
	return value, sqlite.Failed(false, err, "note %s", understudy.Clip(name))
}

func noteOf(v driver.Value) []byte {
	b, _ := v.([]byte)
	return append([]byte{}, b...)
}

// SetNote keeps a value under a name, in place of the former; nil removes it.
// Errors: ErrInvalid for a name that is empty or above 512 bytes or a value
// above 64 KiB, ErrNotStored.
func (k *Table) SetNote(ctx context.Context, name string, value []byte) error {
	leave, err := k.pool.Begin()
	if err != nil {
		return err
	}
	defer leave()
	if err := checkNote(name, value); err != nil {
		return sqlite.Failed(true, err, "note %s", understudy.Clip(name))
	}
	if value == nil {
		err = k.pool.ReleaseChange(ctx, func(c *sqlite.Conn) error {
			_, err := Delete(c, name)
			return err
		})
	} else {
		err = k.pool.Change(ctx, func(c *sqlite.Conn) error { return c.Exec(putNote, 0, name, value) })
	}
	return sqlite.Failed(true, err, "note %s", name)
}

// Delete removes a note in a transaction and reports whether there was one.
func Delete(c *sqlite.Conn, name string) (found bool, err error) {
	return c.One(deleteNote, []driver.Value{name}, func([]driver.Value) {})
}

func checkNote(name string, value []byte) error {
	if name == "" || len(name) > maxNoteName || len(value) > maxNote {
		return fmt.Errorf("%w: a note has a name of at most %d bytes and a value of at most %d", understudy.ErrInvalid, maxNoteName, maxNote)
	}
	return nil
}

// Notes returns the notes whose names begin with prefix, at most 10,000 of
// them, the first by name.
func (k *Table) Notes(ctx context.Context, prefix string) (map[string][]byte, error) {
	leave, err := k.pool.Begin()
	if err != nil {
		return nil, err
	}
	defer leave()
	all := map[string][]byte{}
	err = k.pool.Read(ctx, func(c *sqlite.Conn) error {
		return c.Query(selectNotes, 0, []driver.Value{prefix, int64(maxNotes)}, func(r []driver.Value) error {
			all[r[0].(string)] = noteOf(r[1])
			return nil
		})
	})
	return all, sqlite.Failed(false, err, "notes %s", understudy.Clip(prefix))
}
