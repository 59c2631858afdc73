// Shrinking gives free space back to the disk. A copy without free pages replaces the file:
//
// 1. VACUUM INTO writes the rows to a new file, which is checked. Readers go on, and writers wait.
// 2. The reading connections are closed, which takes milliseconds. The writing connection copies the log into the file, removes
// the log, and locks the file. This fails if another process has opened the file.
// 3. The new file gets the name of the file. New connections open it.
//
// A crash leaves the file as it was or the new file, both complete and without a log.

package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"os"
	"path/filepath"
	"time"

	"understudy/internal/store/db"
)

const (
	// CopySuffix follows the name of the file in the name of the copy. After a crash the copy may still exist, and must be
	// deleted before records are erased.
	CopySuffix = "-shrink"

	lockWait = 10 * time.Millisecond // how long Shrink waits for a lock of another process, while readers wait
)

var (
	errOpened  = errors.New("another process has opened the database, such as store verify; try again when it has ended")
	errChanged = errors.New("another process has changed the database meanwhile; try again")
)

// Copy implements db.Engine. It reads a snapshot, so the log grows by what is written meanwhile.
func (e *Engine) Copy(ctx context.Context, path string) error {
	path, err := filepath.Abs(path) // Dial needs it
	if err != nil {
		return err
	}
	c, err := Dial(ctx, e.path, readerCache)
	if err != nil {
		return err
	}
	return errors.Join(writeCopy(ctx, c, path), c.Close())
}

// Shrink implements db.Engine. The copy needs as much space as the rows.
func (e *Engine) Shrink(ctx context.Context, p *db.Pool) error {
	return p.Write(ctx, func(c db.Conn) (broken bool, err error) {
		copied := e.path + CopySuffix
		broken, err = e.shrink(ctx, p, c.(*Conn), copied)
		if rerr := os.Remove(copied); rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
		return broken, err
	})
}

// shrink replaces the file while c is the only connection that may write. broken reports that c must be closed.
func (e *Engine) shrink(ctx context.Context, p *db.Pool, c *Conn, copied string) (broken bool, err error) {
	if err := clearLog(c); err != nil && !errors.Is(err, errLogHeld) {
		return false, err
	}
	version, err := c.QueryInteger("PRAGMA data_version")
	if err != nil {
		return false, err
	}
	if err := writeCopy(ctx, c, copied); err != nil {
		return false, err
	}
	if err := clearLog(c); err != nil && !errors.Is(err, errLogHeld) { // otherwise readers wait for this
		return false, err
	}
	reopen, err := p.CloseReaders(ctx)
	if err != nil {
		return false, err
	}
	defer reopen()
	if err := e.replace(c, version, copied); err != nil {
		return true, errors.Join(err, c.setMode("locking_mode", "normal"), c.setMode("journal_mode", "wal"))
	}
	if e.file != nil { // of the former file, whose locks nobody needs any more
		err, e.file = e.file.Close(), nil
	}
	return true, err
}

// writeCopy writes all rows to a new file and checks it.
func writeCopy(ctx context.Context, c *Conn, path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := MakeFile(path); err != nil {
		return err
	}
	stmt, err := c.raw.Prepare("VACUUM INTO ?")
	if err != nil {
		return wrapError(err)
	}
	_, err = stmt.(driver.StmtExecContext).ExecContext(ctx, []driver.NamedValue{{Ordinal: 1, Value: path}})
	if err = errors.Join(err, stmt.Close()); err != nil {
		return wrapError(err)
	}
	copied, err := Dial(ctx, path, readerCache)
	if err != nil {
		return err
	}
	err = copied.setMode("journal_mode", "wal")
	if err == nil {
		err = copied.QueryOnce("PRAGMA quick_check(1)", nil, func(r []driver.Value) error {
			if text, _ := r[0].(string); text != "ok" {
				return db.NewDamageError("the copy is damaged: %s", text)
			}
			return nil
		})
	}
	if err = errors.Join(err, copied.Close()); err != nil {
		return err
	}
	return syncFile(path)
}

// replace checks that nobody has changed the file since version, locks the file, and gives its name to the copy.
func (e *Engine) replace(c *Conn, version int64, copied string) error {
	if err := c.setLockWait(lockWait); err != nil {
		return err
	}
	// A process that commits after this query still has the file open below, so that the mode cannot change.
	now, err := c.QueryInteger("PRAGMA data_version")
	if err != nil {
		return err
	}
	if now != version {
		return errChanged
	}
	if err := c.setMode("locking_mode", "exclusive"); err != nil {
		return err
	}
	if err := c.setMode("journal_mode", "delete"); err != nil {
		return errors.Join(errOpened, err)
	}
	if err := os.Rename(copied, e.path); err != nil {
		return err
	}
	return syncFile(filepath.Dir(e.path))
}

// setMode sets a pragma that returns the mode that then applies. It returns an error if that is another one.
func (c *Conn) setMode(pragma, mode string) error {
	return c.QueryOnce("PRAGMA "+pragma+" = "+mode, nil, func(r []driver.Value) error {
		if got, _ := r[0].(string); got != mode {
			return errors.New(pragma + " stays " + got)
		}
		return nil
	})
}

// syncFile writes a file or a folder to the disk.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
