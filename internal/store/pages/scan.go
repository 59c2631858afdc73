// Scans: what every held page refers to.

package pages

import (
	"context"
	"database/sql/driver"
	"fmt"

	"understudy/internal/store/codec"
	"understudy/internal/store/sqlite"
)

var (
	selectSkeletons     = &sqlite.Statement{Head: "SELECT number, size, body FROM page WHERE number > ? ORDER BY number LIMIT ?"}
	selectKindSkeletons = &sqlite.Statement{Head: "SELECT number, size, body FROM page WHERE number > ? AND kind = ? ORDER BY number " +
		"LIMIT ?"}
	selectSourceSkeletons = &sqlite.Statement{Head: "SELECT number, size, body FROM page WHERE number > ? AND source = ? ORDER BY number " +
		"LIMIT ?"}
)

// Scope is the pages of a kind or of a source, by their numbers; the zero Scope is all.
type Scope struct{ Kind, Source int64 }

// scanned is how many pages are read in one read transaction.
const scanned = 64

// Each calls each for every page of a scope, in the order of their numbers and a few in
// one read transaction: what is saved meanwhile may be missed.
func (l *Loader) Each(ctx context.Context, pool *sqlite.Pool, of Scope, each func(number int64, sk *codec.Skeleton)) error {
	last, n := int64(-1), scanned
	for n == scanned {
		err := pool.Read(ctx, func(c *sqlite.Conn) (err error) {
			n = 0
			return l.After(c, of, last, scanned, func(number int64, sk *codec.Skeleton) error {
				n, last = n+1, number
				each(number, sk)
				return nil
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// After calls each for the pages of a scope after one, at most limit, until it returns an
// error.
func (l *Loader) After(c *sqlite.Conn, of Scope, after int64, limit int, each func(number int64, sk *codec.Skeleton) error) error {
	st, args := selectSkeletons, []driver.Value{after}
	switch {
	case of.Kind != 0:
		st, args = selectKindSkeletons, append(args, of.Kind)
	case of.Source != 0:
		st, args = selectSourceSkeletons, append(args, of.Source)
	}
	return c.Query(st, 0, append(args, int64(limit)), func(r []driver.Value) error {
		number := r[0].(int64)
		sk, err := l.Skeleton(r[2].([]byte), r[1].(int64))
		if err != nil {
			return fmt.Errorf("page %d: %w", number, err)
		}
		return each(number, sk)
	})
}
