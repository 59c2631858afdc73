// Sanitizing: what the file still holds of rows that were deleted or changed is
// overwritten (data remanence, NIST 800-88).
//
// SQLite's secure_delete overwrites cells that are deleted. It does not
// overwrite pages that became free (FAST). Nor does it overwrite what lies in
// the gap between a page's cells after cells moved to another page, nor what
// follows the end of a long value. So after an erasure the file is walked by its
// format, and every byte that belongs to nothing is overwritten in place:
//
//  1. the log is written back and cut to nothing, and a read transaction begins
//     at that moment: while it lasts SQLite writes to its log only, and the file
//     stands still;
//  2. every tree, long value and free page of the file is walked;
//  3. with the writing connection held the log is written back again, and the
//     pages it had are walked anew. The connection is closed, because its cache
//     may remember what they held.
//
// The file is opened once and closed after all connections: closing it earlier
// would drop SQLite's locks.

package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"understudy/kit/retry"
)

const (
	cutTries = 40                     // attempts to cut the log
	cutPause = 250 * time.Millisecond // between two attempts
	cutBusy  = 100 * time.Millisecond // the longest wait of one attempt; saves wait behind it
)

// Sanitize overwrites every byte of the file that belongs to nothing, and returns
// how many of them were not zero. One goroutine at a time may call it.
func (p *Pool) Sanitize(ctx context.Context) (overwritten int64, err error) {
	if p.file == nil {
		if p.file, err = os.OpenFile(p.Path, os.O_RDWR, 0); err != nil {
			return 0, err
		}
	}
	for range cutTries {
		n, err := p.sanitizeOnce(ctx)
		overwritten += n
		if !errors.Is(err, errLogHeld) {
			return overwritten, err
		}
		if err := retry.Sleep(ctx, cutPause); err != nil {
			return overwritten, err
		}
	}
	return overwritten, fmt.Errorf("%w for too long; it is tried again later", errLogHeld)
}

// errLogHeld means that a reader still uses the log.
var errLogHeld = errors.New("the log cannot be cut while a reader holds it")

func (p *Pool) sanitizeOnce(ctx context.Context) (overwritten int64, err error) {
	var reader *Conn
	select {
	case reader = <-p.readers:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { p.readers <- reader }()
	if reader == nil {
		if reader, err = Dial(ctx, p.Path, readerCache); err != nil {
			return 0, err
		}
	}
	var roots []uint32
	err = p.Write(ctx, func(c *Conn) (bool, error) {
		if err := cutLog(c); err != nil {
			return false, err
		}
		if err := reader.Exec(beginRead, 0); err != nil {
			return false, err
		}
		roots, err = rootPages(reader)
		return false, err
	})
	if err == nil {
		overwritten, err = p.sweepFile(ctx, roots, nil)
	}
	if err != nil {
		_ = reader.Exec(rollback, 0) // there may be none to roll back
		return overwritten, err
	}
	err = p.Write(ctx, func(c *Conn) (bool, error) {
		changed, err := pagesInLog(p.Path + "-wal")
		if rerr := reader.Exec(rollback, 0); err == nil {
			err = rerr
		}
		if err == nil {
			err = cutLog(c)
		}
		if err == nil {
			roots, err = rootPages(c)
		}
		if err != nil {
			return true, err
		}
		n, err := p.sweepFile(ctx, roots, changed)
		overwritten += n
		if err == nil {
			err = p.file.Sync()
		}
		return true, err // closed in any case: its cache remembers
	})
	return overwritten, err
}

// cutLog writes all of the log back and cuts it to nothing.
func cutLog(c *Conn) error {
	if err := c.waitForLock(cutBusy); err != nil {
		return err
	}
	held := false
	err := c.Ask("PRAGMA wal_checkpoint(TRUNCATE)", func(r []driver.Value) error { held = r[0].(int64) != 0; return nil })
	if perr := c.waitForLock(busyWait); err == nil {
		err = perr
	}
	if _, code := ReasonOf(err); held || code == codeBusy || code == codeLocked {
		return errLogHeld
	}
	return err
}

// rootPages are the first pages of all trees.
func rootPages(c *Conn) (roots []uint32, err error) {
	roots = []uint32{1}
	err = c.Ask("SELECT rootpage FROM sqlite_schema WHERE rootpage > 0", func(r []driver.Value) error {
		roots = append(roots, uint32(r[0].(int64)))
		return nil
	})
	return roots, err
}

// pagesInLog are the pages that stand in the log, which was empty before. Every
// whole frame counts, committed or not.
func pagesInLog(path string) (map[uint32]bool, error) {
	pages := map[uint32]bool{}
	f, err := os.Open(path) // SQLite's locks are not on this file
	if errors.Is(err, os.ErrNotExist) {
		return pages, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var head [32]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return pages, notEOF(err)
	}
	size := int64(binary.BigEndian.Uint32(head[8:]))
	if size == 1 {
		size = 1 << 16
	}
	if size < 512 {
		return nil, fmt.Errorf("the log has pages of %d bytes", size)
	}
	for at := int64(32); ; at += 24 + size {
		var frame [24]byte
		if _, err := f.ReadAt(frame[:], at); err != nil {
			return pages, notEOF(err)
		}
		pages[binary.BigEndian.Uint32(frame[:])] = true
	}
}

func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
