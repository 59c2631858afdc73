// This file stores each begun action as one row, called a claim. The key of the row ensures that an action happens only
// once.

// Package claims stores which actions of people were begun, and how they ended.
package claims

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"time"

	"understudy"
	"understudy/internal/store/db"
)

// MaxAge is how long a claim is kept. During this time the same form may be sent again without causing a second action.
const MaxAge = 24 * time.Hour

// maxResult is the maximum size in bytes of the stored result of an action.
const maxResult = 4 << 10

var (
	insertClaim = &db.Statement{Head: "INSERT INTO claim (name, at) VALUES (?, ?) ON CONFLICT (name) DO NOTHING RETURNING 1"}
	selectClaim = &db.Statement{Head: "SELECT at, result FROM claim WHERE name = ?"}
	updateClaim = &db.Statement{Head: "UPDATE claim SET result = ? WHERE name = ?"}
	expireClaim = &db.Statement{Head: "DELETE FROM claim WHERE at < ?"}
)

// Table stores claims. It is safe for concurrent use, also by several processes.
type Table struct{ pool *db.Pool }

// New returns the table of claims of a database.
func New(pool *db.Pool) *Table { return &Table{pool} }

// ClaimAction stores that an action begins at now and returns first = true, unless the action was begun before. In that
// case it returns when the action was begun, to the second, and how it ended. result is nil if its end was not stored.
// If first is true, the row is on the disk. ClaimAction deletes claims that are older than MaxAge. Errors: ErrNotStored.
func (t *Table) ClaimAction(ctx context.Context, name string, now time.Time) (first bool, at time.Time, result []byte, err error) {
	key := keyOf(name)
	err = t.pool.ChangeDurably(ctx, func(c db.Conn) error {
		if err := c.Execute(expireClaim, 0, now.Add(-MaxAge).Unix()); err != nil {
			return err
		}
		if first, err = db.QueryRow(c, insertClaim, []driver.Value{key, now.Unix()}, func([]driver.Value) {}); err != nil || first {
			return err
		}
		_, err := db.QueryRow(c, selectClaim, []driver.Value{key}, func(r []driver.Value) {
			at = time.Unix(r[0].(int64), 0)
			if b, _ := r[1].([]byte); len(b) > 0 {
				result = append([]byte{}, b...)
			}
		})
		return err
	})
	return first && err == nil, at, result, db.WrapError(true, err, "claim an action")
}

// SettleAction stores how an action ended. When it returns the result is on the disk. Errors: ErrInvalid for no
// result or more than 4 KiB, ErrNotStored.
func (t *Table) SettleAction(ctx context.Context, name string, result []byte) error {
	if len(result) == 0 || len(result) > maxResult {
		return db.WrapError(true, understudy.ErrInvalid, "settle an action")
	}
	err := t.pool.ReleaseDurably(ctx, func(c db.Conn) error { return c.Execute(updateClaim, 0, result, keyOf(name)) })
	return db.WrapError(true, err, "settle an action")
}

// keyOf returns the stored form of an action's name: a hash, which has a fixed length and does not reveal the name.
func keyOf(name string) []byte {
	sum := sha256.Sum256([]byte(name))
	return sum[:]
}
