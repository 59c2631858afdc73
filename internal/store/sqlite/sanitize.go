// Sanitizing overwrites what the file still contains of deleted or changed rows (data remanence, NIST 800-88).
//
// SQLite's secure_delete overwrites deleted cells. It does not overwrite pages that became free (FAST), old
// bytes between a page's cells after cells moved, or bytes after the end of a long value. So after an erasure
// Sanitize parses the whole file and overwrites every unused byte in place:
//
// 1. It copies the log into the file, empties the log, and begins a read transaction. While that lasts, SQLite
// writes only to its log, so the file does not change.
// 2. It visits every tree, long value and free page of the file.
// 3. It takes the writing connection, copies the log again and visits the pages that were in the log. It closes
// the connection, because its cache may still contain the old bytes.
//
// The file is opened once and closed after all connections. Closing it earlier would release SQLite's locks.

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

	"understudy/internal/store/db"
	"understudy/kit/retry"
)

const (
	emptyLogTries = 40                     // how often Sanitize tries to empty the log
	emptyLogPause = 250 * time.Millisecond // the pause between two attempts to empty the log
	emptyLogWait  = 100 * time.Millisecond // maximum wait for readers in one attempt; saves wait meanwhile
)

// Sanitize implements db.Engine. It overwrites every unused byte of the file and counts those that were not zero.
func (e *Engine) Sanitize(ctx context.Context, p *db.Pool) (overwritten int64, err error) {
	if e.file == nil {
		if e.file, err = os.OpenFile(e.path, os.O_RDWR, 0); err != nil {
			return 0, err
		}
	}
	for range emptyLogTries {
		n, err := e.sanitizeOnce(ctx, p)
		overwritten += n
		if !errors.Is(err, errLogHeld) {
			return overwritten, err
		}
		if err := retry.Wait(ctx, emptyLogPause); err != nil {
			return overwritten, err
		}
	}
	return overwritten, fmt.Errorf("%w for too long; it is tried again later", errLogHeld)
}

// ListResidue implements db.Engine. Sanitize leaves no bytes.
func (e *Engine) ListResidue(db.Conn) ([]db.Residue, error) { return nil, nil }

// errLogHeld means that the log could not be emptied because a reader still uses it.
var errLogHeld = errors.New("the log cannot be cut while a reader holds it")

// sanitizeOnce makes one pass over the file. It returns errLogHeld if a reader prevents it from emptying the
// log.
func (e *Engine) sanitizeOnce(ctx context.Context, p *db.Pool) (overwritten int64, err error) {
	err = p.UseReader(ctx, func(reader db.Conn) (bool, error) {
		overwritten, err = e.sanitizeBeside(ctx, p, reader.(*Conn))
		return false, err
	})
	return overwritten, err
}

// sanitizeBeside makes one pass while a reader keeps SQLite from writing to the file.
func (e *Engine) sanitizeBeside(ctx context.Context, p *db.Pool, reader *Conn) (overwritten int64, err error) {
	var roots []uint32
	err = p.Write(ctx, func(c db.Conn) (bool, error) {
		if err := clearLog(c.(*Conn)); err != nil {
			return false, err
		}
		if err := reader.Execute(beginRead, 0); err != nil {
			return false, err
		}
		roots, err = readRootPages(reader)
		return false, err
	})
	if err == nil {
		overwritten, err = e.sweepFile(ctx, roots, nil)
	}
	if err != nil {
		_ = reader.Execute(rollback, 0) // fails if no transaction is open, which is harmless
		return overwritten, err
	}
	err = p.Write(ctx, func(c db.Conn) (bool, error) {
		changed, err := readLogPages(e.path + "-wal")
		if rerr := reader.Execute(rollback, 0); err == nil {
			err = rerr
		}
		if err == nil {
			err = clearLog(c.(*Conn))
		}
		if err == nil {
			roots, err = readRootPages(c)
		}
		if err != nil {
			return true, err
		}
		n, err := e.sweepFile(ctx, roots, changed)
		overwritten += n
		if err == nil {
			err = e.file.Sync()
		}
		return true, err // reported as broken, so that the pool closes the connection, whose cache may contain old bytes
	})
	return overwritten, err
}

// clearLog copies the whole log into the file and empties it.
func clearLog(c *Conn) error {
	if err := c.setLockWait(emptyLogWait); err != nil {
		return err
	}
	held := false
	err := c.QueryOnce("PRAGMA wal_checkpoint(TRUNCATE)", nil, func(r []driver.Value) error { held = r[0].(int64) != 0; return nil })
	if perr := c.setLockWait(busyWait); err == nil {
		err = perr
	}
	if held || db.ClassOf(err) == db.Locked {
		return errLogHeld
	}
	return err
}

// readRootPages returns the first pages of all trees.
func readRootPages(c db.Conn) (roots []uint32, err error) {
	roots = []uint32{1}
	err = c.QueryOnce("SELECT rootpage FROM sqlite_schema WHERE rootpage > 0", nil, func(r []driver.Value) error {
		roots = append(roots, uint32(r[0].(int64)))
		return nil
	})
	return roots, err
}

// readLogPages returns the numbers of the pages in the log. It counts every complete frame of the log, committed or
// not. The log was empty before.
func readLogPages(path string) (map[uint32]bool, error) {
	pages := map[uint32]bool{}
	f, err := os.Open(path) // closing this file is safe, because SQLite puts no locks on its log
	if errors.Is(err, os.ErrNotExist) {
		return pages, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var head [32]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return pages, skipEOF(err)
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
			return pages, skipEOF(err)
		}
		pages[binary.BigEndian.Uint32(frame[:])] = true
	}
}

func skipEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
