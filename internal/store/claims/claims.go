// Claims: a row for each action that was begun; its key is what makes an action happen once.

// Package claims keeps which actions of people were begun, and how they ended.
package claims

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"time"

	"understudy"
	"understudy/internal/store/sqlite"
)

// Lasts is how long a claim is kept, and so how long a form may be sent again.
const Lasts = 24 * time.Hour

// maxResult bounds what is kept of how an action ended, in bytes.
const maxResult = 4 << 10

var (
	insertClaim = &sqlite.Statement{Head: "INSERT INTO claim (name, at) VALUES (?, ?) ON CONFLICT (name) DO NOTHING RETURNING 1"}
	selectClaim = &sqlite.Statement{Head: "SELECT at, result FROM claim WHERE name = ?"}
	updateClaim = &sqlite.Statement{Head: "UPDATE claim SET result = ? WHERE name = ?"}
	expireClaim = &sqlite.Statement{Head: "DELETE FROM claim WHERE at < ?"}
)

// Table keeps claims. It is safe for concurrent use, by several processes, too.
type Table struct{ pool *sqlite.Pool }

// New returns the claims of a database.
func New(pool *sqlite.Pool) *Table { return &Table{pool} }

// ClaimAction writes that an action is begun at now, unless it was before: then first is
// false, at is when that was, to a second, and result how it ended, nil when that was not
// written. The primary key of the row decides. When first is true the row is on the disk.
// A claim older than Lasts is forgotten. Errors: ErrNotStored.
func (t *Table) ClaimAction(ctx context.Context, name string, now time.Time) (first bool, at time.Time, result []byte, err error) {
	leave, err := t.pool.Begin()
	if err != nil {
		return false, at, nil, err
	}
	defer leave()
	key := keyOf(name)
	err = t.pool.ChangeDurably(ctx, func(c *sqlite.Conn) error {
		if err := c.Exec(expireClaim, 0, now.Add(-Lasts).Unix()); err != nil {
			return err
		}
		if first, err = c.One(insertClaim, []driver.Value{key, now.Unix()}, func([]driver.Value) {}); err != nil || first {
			return err
		}
		_, err := c.One(selectClaim, []driver.Value{key}, func(r []driver.Value) {
			at = time.Unix(r[0].(int64), 0)
			if b, _ := r[1].([]byte); len(b) > 0 {
				result = append([]byte{}, b...)
			}
		})
		return err
	})
	return first && err == nil, at, result, sqlite.Failed(true, err, "claim an action")
}

// SettleAction writes how an action ended; when it returns that is on the disk. Errors:
// ErrInvalid for no result or more than 4 KiB, ErrNotStored.
func (t *Table) SettleAction(ctx context.Context, name string, result []byte) error {
	leave, err := t.pool.Begin()
	if err != nil {
		return err
	}
	defer leave()
	if len(result) == 0 || len(result) > maxResult {
		return sqlite.Failed(true, understudy.ErrInvalid, "settle an action")
	}
	err = t.pool.ReleaseDurably(ctx, func(c *sqlite.Conn) error { return c.Exec(updateClaim, 0, result, keyOf(name)) })
	return sqlite.Failed(true, err, "settle an action")
}

// keyOf is what is kept of a name: its length is bounded, and it tells nothing.
func keyOf(name string) []byte {
	sum := sha256.Sum256([]byte(name))
	return sum[:]
}
