// This file visits the skeletons of stored pages.

package pages

import (
	"context"
	"database/sql/driver"
	"fmt"

	"understudy/internal/store/codec"
	"understudy/internal/store/db"
)

var (
	selectSkeletons     = &db.Statement{Head: "SELECT number, size, body FROM page WHERE number > ? ORDER BY number LIMIT ?"}
	selectKindSkeletons = &db.Statement{Head: "SELECT number, size, body FROM page WHERE number > ? AND kind = ? ORDER BY number " +
		"LIMIT ?"}
	selectSourceSkeletons = &db.Statement{Head: "SELECT number, size, body FROM page WHERE number > ? AND source = ? ORDER BY number " +
		"LIMIT ?"}
)

// Scope selects the pages of one kind or of one source, by its number. The zero Scope selects all pages.
type Scope struct{ Kind, Source int64 }

// pagesPerRead is the number of pages that one read transaction visits.
const pagesPerRead = 64

// VisitPages calls each for every page of a scope, in the order of their numbers. It uses several read
// transactions, so it may miss pages that are saved meanwhile.
func (l *Loader) VisitPages(ctx context.Context, pool *db.Pool, of Scope, each func(number int64, sk *codec.Skeleton)) error {
	last, n := int64(-1), pagesPerRead
	for n == pagesPerRead {
		err := pool.Read(ctx, func(c db.Conn) (err error) {
			n = 0
			return l.VisitAfter(c, of, last, pagesPerRead, func(number int64, sk *codec.Skeleton) error {
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

// VisitAfter calls each for at most limit pages of a scope whose numbers are above after. It stops when each
// returns an error.
func (l *Loader) VisitAfter(c db.Conn, of Scope, after int64, limit int, each func(number int64, sk *codec.Skeleton) error) error {
	st, args := selectSkeletons, []driver.Value{after}
	switch {
	case of.Kind != 0:
		st, args = selectKindSkeletons, append(args, of.Kind)
	case of.Source != 0:
		st, args = selectSourceSkeletons, append(args, of.Source)
	}
	return c.Query(st, 0, append(args, int64(limit)), func(r []driver.Value) error {
		number := r[0].(int64)
		sk, err := l.UnpackSkeleton(r[2].([]byte), r[1].(int64))
		if err != nil {
			return fmt.Errorf("page %d: %w", number, err)
		}
		return each(number, sk)
	})
}
