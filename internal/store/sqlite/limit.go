// This file sets the size limit of the file and explains errors at the limit.

package sqlite

import (
	"database/sql/driver"
	"fmt"

	"understudy/internal/store/db"
)

// setGrowthLimit makes SQLite itself refuse to grow the file beyond the limit less the log.
func (e *Engine) setGrowthLimit(c *Conn, size int64) error {
	if e.limit <= 0 {
		return nil
	}
	all := max((e.limit-e.log)/size, 2)
	e.reserve = min(maxReserve, all/16+1)
	e.pages = all - e.reserve
	var err error
	e.maxPages, err = c.setMaxPages(e.pages)
	return err
}

// maxReserve is the number of pages that only deleting work may use. Deleting may need a page or two before it
// frees others.
const maxReserve = 64

// setMaxPages sets how many pages the file may have. SQLite keeps the current number if that is larger.
func (c *Conn) setMaxPages(pages int64) (int64, error) {
	return c.QueryInteger(fmt.Sprintf("PRAGMA max_page_count = %d", pages))
}

// Limit implements db.Engine, in pages of the file.
func (e *Engine) Limit() int64 { return e.pages }

var (
	pragmaPages = &db.Statement{Head: "PRAGMA page_count"}
	pragmaFree  = &db.Statement{Head: "PRAGMA freelist_count"}
)

// CountUsed implements db.Engine. It counts pages, those in the log included.
func (e *Engine) CountUsed(c db.Conn) (used int64, err error) {
	_, err = db.QueryRow(c, pragmaPages, nil, func(r []driver.Value) { used = r[0].(int64) })
	if err != nil {
		return 0, err
	}
	_, err = db.QueryRow(c, pragmaFree, nil, func(r []driver.Value) { used -= r[0].(int64) })
	return used, err
}

// OpenReserve implements db.Engine.
func (e *Engine) OpenReserve(writer db.Conn, open bool) error {
	pages := e.pages
	if open {
		pages += e.reserve
	}
	_, err := writer.(*Conn).setMaxPages(pages)
	return err
}

// limitReached is the reason for refusing a save when nothing more can be evicted.
const limitReached = "store.limit reached"

// nearLimit is about how many pages one save may need.
const nearLimit = 1024

// explainFull returns a Fault that names the limit if the limit, not the disk, made a write fail. It returns
// other errors unchanged.
func (e *Engine) explainFull(c *Conn, err error) error {
	if db.ClassOf(err) != db.Full || e.maxPages == 0 {
		return err
	}
	if n, cerr := c.QueryInteger("PRAGMA page_count"); cerr != nil || n+nearLimit < e.maxPages {
		return err
	}
	return &db.Fault{Reason: limitReached, Saving: true, Err: err}
}
