// What the eraser asks of the store: bodies and pages, read and taken out.

package store

import (
	"context"
	"database/sql/driver"

	"understudy/internal/store/catalog"
	"understudy/internal/store/codec"
	"understudy/internal/store/erase"
	"understudy/internal/store/fts5"
	"understudy/internal/store/sqlite"
)

// erasable is the store as erase.Store.
type erasable struct{ db *DB }

// Source implements erase.Catalog.
func (e erasable) Source(name string) (number int64, ok bool) { return e.db.catalog.Source(name) }

// Kind implements erase.Catalog.
func (e erasable) Kind(source, kind string) (k erase.Kind, ok bool) {
	row := e.db.catalog.Kind(source, kind)
	if row == nil {
		return erase.Kind{Name: kind}, false
	}
	return eraseKind(row), true
}

func eraseKind(k *catalog.Kind) erase.Kind {
	return erase.Kind{Number: k.Number, Prefix: k.Prefix, Name: k.Name, Spec: k.Spec}
}

var selectSourceBlocks = &sqlite.Statement{Head: `SELECT b.number, h.kind FROM block b JOIN shape h ON h.number = b.shape
	JOIN kind k ON k.number = h.kind
	WHERE b.number > ? AND k.source = ? ORDER BY b.number LIMIT ?`}

// EachBody implements erase.Rows. It reads a few blocks in one read transaction.
func (e erasable) EachBody(ctx context.Context, source int64, each func(k erase.Kind, one *codec.Entry)) error {
	kinds := map[int64]*catalog.Kind{}
	for _, k := range e.db.catalog.Kinds() {
		kinds[k.Number] = k
	}
	last, more := int64(-1), true
	for more {
		n := 0
		err := e.db.pool.Read(ctx, func(c *sqlite.Conn) error {
			type place struct{ block, kind int64 }
			var places []place
			err := c.Query(selectSourceBlocks, 0, []driver.Value{last, source, int64(scanPages)}, func(r []driver.Value) error {
				places = append(places, place{r[0].(int64), r[1].(int64)})
				return nil
			})
			blocks := e.db.opener.Open(c)
			for _, p := range places {
				if err != nil {
					return err
				}
				n, last = n+1, p.block
				b, err := blocks.Block(p.block)
				if err != nil {
					return err
				}
				for i := range b.Entries {
					one, err := blocks.Entry(p.block*codec.PerBlock + int64(i))
					if err != nil {
						return err
					}
					if k := kinds[p.kind]; k != nil && !one.Pruned() {
						each(eraseKind(k), one)
					}
				}
			}
			return err
		})
		if err != nil {
			return err
		}
		more = n == scanPages
	}
	return nil
}

var selectSourceSkeletons = &sqlite.Statement{Head: "SELECT number, size, body FROM page WHERE number > ? AND source = ? " +
	"ORDER BY number LIMIT ?"}

// EachPage implements erase.Rows.
func (e erasable) EachPage(ctx context.Context, source int64, each func(page int64, sk *codec.Skeleton)) error {
	return e.db.scan(ctx, selectSourceSkeletons, []driver.Value{source}, each)
}

// WatchPages implements erase.Rows.
func (e erasable) WatchPages(ctx context.Context, saved func(page int64, versions []int64)) (end func(), err error) {
	return e.db.watch(ctx, func(s *saving) {
		versions := make([]int64, len(s.rows))
		for i := range s.rows {
			versions[i] = s.rows[i].Version
		}
		saved(s.number, versions)
	})
}

// DeletePages implements erase.Rows.
func (e erasable) DeletePages(c *sqlite.Conn, pages []int64) (gone int64, err error) {
	return deletePagesOf(c, pages)
}

// deletePagesOf deletes pages by their numbers and returns how many there were.
func deletePagesOf(c *sqlite.Conn, pages []int64) (gone int64, err error) {
	args := make([]driver.Value, len(pages))
	for i, n := range pages {
		args[i] = n
	}
	err = c.Query(deleteNumber, len(args), args, func([]driver.Value) error { gone++; return nil })
	return gone, err
}

// SanitizeIndex implements erase.Index.
func (e erasable) SanitizeIndex(ctx context.Context) error { return fts5.Sanitize(ctx, e.db.pool) }
