// Remains: what the file still holds of rows that were deleted or changed.
//
// SQLite's secure_delete overwrites cells that are deleted. It does not
// overwrite pages that became free (FAST), nor the copies that are left behind
// in the gap between a page's cells when cells are moved to another page, nor
// what follows the end of a long value. So after an erasure the file itself is
// walked, by its format, and every byte that belongs to nothing is overwritten
// in place:
//
//  1. all is written back from the log, which is cut to nothing, and a read
//     transaction is begun at that moment: while it lasts SQLite writes to its
//     log only, and the file stands still;
//  2. every tree, long value and free page of the file is walked;
//  3. with the writing connection held the log is written back again, and the
//     pages it had are walked anew; the connection, whose cache may remember
//     what they held, is closed.
//
// The file is opened once and never closed before all connections are: closing
// it would drop SQLite's locks.

package store

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"understudy/internal/store/sqlite"
)

const (
	cleanTries = 40                     // to have the log cut
	cleanWait  = 250 * time.Millisecond // between them
	cleanBusy  = 100 * time.Millisecond // how long one of them waits, with saves behind it
)

// residue is the open file, of whoever carries out.
type residue struct{ file *os.File }

func (r *residue) close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

var selectTaken = &sqlite.Statement{Head: "SELECT count(*) FROM erasing g JOIN erasure e ON e.number = g.erasure " +
	"WHERE g.state = 1 AND (e.records > 0 OR e.pages > 0)"}

// cleanIfNeeded cleans the file if anything was taken out of its rows.
func (db *DB) cleanIfNeeded(ctx context.Context) error {
	var taken int64
	err := db.pool.Read(ctx, func(c *sqlite.Conn) error {
		_, err := c.One(selectTaken, nil, func(r []driver.Value) { taken = r[0].(int64) })
		return err
	})
	if err != nil || taken == 0 {
		return err
	}
	if err := db.scrubWords(ctx); err != nil {
		return err
	}
	_, err = db.clean(ctx)
	return err
}

// clean overwrites all remains and says how many bytes those were.
func (db *DB) clean(ctx context.Context) (overwritten int64, err error) {
	if db.residue.file == nil {
		if db.residue.file, err = os.OpenFile(db.pool.Path, os.O_RDWR, 0); err != nil {
			return 0, err
		}
	}
	for range cleanTries {
		n, err := db.cleanOnce(ctx)
		overwritten += n
		if !errors.Is(err, errLogHeld) {
			return overwritten, err
		}
		t := time.NewTimer(cleanWait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return overwritten, ctx.Err()
		}
	}
	return overwritten, fmt.Errorf("%w for too long; it is tried again later", errLogHeld)
}

// errLogHeld: somebody reads what is in the log.
var errLogHeld = errors.New("the log cannot be cut while a reader holds it")

func (db *DB) cleanOnce(ctx context.Context) (overwritten int64, err error) {
	var reader *sqlite.Conn
	select {
	case reader = <-db.pool.Readers:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { db.pool.Readers <- reader }()
	if reader == nil {
		if reader, err = sqlite.Dial(ctx, db.pool.Path, sqlite.ReaderCache); err != nil {
			return 0, err
		}
	}
	var roots []uint32
	err = db.pool.Write(ctx, func(c *sqlite.Conn) (bool, error) {
		if err := cutLog(c); err != nil {
			return false, err
		}
		if err := reader.Exec(sqlite.BeginRead, 0); err != nil {
			return false, err
		}
		roots, err = rootPages(reader)
		return false, err
	})
	if err == nil {
		overwritten, err = db.sweepFile(ctx, roots, nil)
	}
	if err != nil {
		_ = reader.Exec(sqlite.Rollback, 0) // there may be none to roll back
		return overwritten, err
	}
	err = db.pool.Write(ctx, func(c *sqlite.Conn) (bool, error) {
		changed, err := pagesInLog(db.pool.Path + "-wal")
		if rerr := reader.Exec(sqlite.Rollback, 0); err == nil {
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
		n, err := db.sweepFile(ctx, roots, changed)
		overwritten += n
		if err == nil {
			err = db.residue.file.Sync()
		}
		return true, err // closed in any case: its cache remembers
	})
	return overwritten, err
}

// cutLog writes all of the log back and cuts it to nothing.
func cutLog(c *sqlite.Conn) error {
	if err := setBusyTimeout(c, cleanBusy); err != nil {
		return err
	}
	held := false
	err := c.Ask("PRAGMA wal_checkpoint(TRUNCATE)", func(r []driver.Value) error { held = r[0].(int64) != 0; return nil })
	if perr := setBusyTimeout(c, sqlite.Busy); err == nil {
		err = perr
	}
	if _, code := sqlite.ReasonOf(err); held || code == sqlite.CodeBusy || code == sqlite.CodeLocked {
		return errLogHeld
	}
	return err
}

func setBusyTimeout(c *sqlite.Conn, wait time.Duration) error {
	return c.Ask("PRAGMA busy_timeout = "+strconv.FormatInt(wait.Milliseconds(), 10), func([]driver.Value) error { return nil })
}

// rootPages are the first pages of all trees.
func rootPages(c *sqlite.Conn) (roots []uint32, err error) {
	roots = []uint32{1}
	err = c.Ask("SELECT rootpage FROM sqlite_schema WHERE rootpage > 0", func(r []driver.Value) error {
		roots = append(roots, uint32(r[0].(int64)))
		return nil
	})
	return roots, err
}

// pagesInLog are the pages that stand in the log, which was empty before. All
// that is whole is taken, whether or not it was committed.
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
