// The limit of the file: what it may grow to, and what is said when it is reached.

package sqlite

import (
	"fmt"
)

// bound makes SQLite itself refuse to grow the file past what the limit leaves
// beside the log.
func (p *Pool) bound(c *Conn, size int64) error {
	if p.growth.limit <= 0 {
		return nil
	}
	all := max((p.growth.limit-p.growth.log)/size, 2)
	p.growth.reserve = min(maxReserve, all/16+1)
	p.Pages = all - p.growth.reserve
	var err error
	p.growth.maxPages, err = c.grow(p.Pages)
	return err
}

// maxReserve is how many pages saves leave to what makes room: taking something
// out may need a page or two before others are free.
const maxReserve = 64

// grow lets the file have so many pages, or as many as it has.
func (c *Conn) grow(pages int64) (int64, error) {
	return c.Integer(fmt.Sprintf("PRAGMA max_page_count = %d", pages))
}

// limitReached is why nothing more is stored when nothing more may go.
const limitReached = "store.limit reached"

// nearLimit is about how many pages one save may need.
const nearLimit = 1024

// limited says that it was the limit, not the disk, that made a write fail.
func (p *Pool) limited(c *Conn, err error) error {
	if _, code := ReasonOf(err); code != codeFull || p.growth.maxPages == 0 {
		return err
	}
	if n, cerr := c.Integer("PRAGMA page_count"); cerr != nil || n+nearLimit < p.growth.maxPages {
		return err
	}
	return &Fault{Reason: limitReached, Saving: true, Err: err}
}
