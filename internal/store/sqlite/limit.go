// This file sets the size limit of the file, and explains errors at the limit.

package sqlite

import (
	"fmt"
)

// setGrowthLimit makes SQLite refuse to grow the file beyond the limit less the size of the log.
func (p *Pool) setGrowthLimit(c *Conn, size int64) error {
	if p.growth.limit <= 0 {
		return nil
	}
	all := max((p.growth.limit-p.growth.log)/size, 2)
	p.growth.reserve = min(maxReserve, all/16+1)
	p.Pages = all - p.growth.reserve
	var err error
	p.growth.maxPages, err = c.setMaxPages(p.Pages)
	return err
}

// maxReserve is the number of pages that only work that deletes may use. It may need a page or two before it frees
// others.
const maxReserve = 64

// setMaxPages sets the maximum number of pages of the file. If the file already has more pages, SQLite uses their
// number instead. setMaxPages returns the maximum in effect.
func (c *Conn) setMaxPages(pages int64) (int64, error) {
	return c.QueryInteger(fmt.Sprintf("PRAGMA max_page_count = %d", pages))
}

// limitReached is the reason for refusing a save when nothing more can be evicted.
const limitReached = "store.limit reached"

// nearLimit is about how many pages one save may need.
const nearLimit = 1024

// explainFull returns a Fault that names the limit if the limit, not the disk, made a write fail. It returns
// other errors unchanged.
func (p *Pool) explainFull(c *Conn, err error) error {
	if _, code := ReasonOf(err); code != codeFull || p.growth.maxPages == 0 {
		return err
	}
	if n, cerr := c.QueryInteger("PRAGMA page_count"); cerr != nil || n+nearLimit < p.growth.maxPages {
		return err
	}
	return &Fault{Reason: limitReached, Saving: true, Err: err}
}
