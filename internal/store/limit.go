// The limit of the file: what it may grow to, and what is said when it is reached.

package store

import (
	"fmt"
)

// limit makes SQLite itself refuse to grow the file past what Options.Limit
// leaves beside the log.
func (db *DB) limit(c *conn, size int64) error {
	if db.o.Limit <= 0 {
		return nil
	}
	all := max((db.o.Limit-db.o.logShare())/size, 2)
	db.room.reserve = min(maxReserve, all/16+1)
	db.room.most = all - db.room.reserve
	var err error
	db.maxPages, err = c.grow(db.room.most)
	return err
}

// maxReserve is how many pages saves leave to what makes room: taking something
// out may need a page or two before others are free.
const maxReserve = 64

// grow lets the file have so many pages, or as many as it has.
func (c *conn) grow(pages int64) (int64, error) {
	return c.number(fmt.Sprintf("PRAGMA max_page_count = %d", pages))
}

// limitReached is why nothing more is stored when nothing more may go.
const limitReached = "store.limit reached"

// nearLimit is about how many pages one save may need.
const nearLimit = 1024

// limited says that it was the limit, not the disk, that made a write fail.
func (db *DB) limited(c *conn, err error) error {
	if _, code := reasonOf(err); code != sqliteFull || db.maxPages == 0 {
		return err
	}
	if n, cerr := c.number("PRAGMA page_count"); cerr != nil || n+nearLimit < db.maxPages {
		return err
	}
	return &fault{reason: limitReached, saving: true, err: err}
}
