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
)

const (
	cleanTries = 40                     // to have the log cut
	cleanWait  = 250 * time.Millisecond // between them
	cleanBusy  = 100 * time.Millisecond // how long one of them waits, with saves behind it
)

// remains is the open file, of whoever carries out.
type remains struct{ file *os.File }

func (r *remains) close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

var selectTaken = &statement{head: "SELECT count(*) FROM erasing g JOIN erasure e ON e.number = g.erasure WHERE g.state = 1 AND (e.records > 0 OR e.pages > 0)"}

// cleanIfNeeded cleans the file if anything was taken out of its rows.
func (db *DB) cleanIfNeeded(ctx context.Context) error {
	var taken int64
	err := db.read(ctx, func(c *conn) error {
		_, err := c.one(selectTaken, nil, func(r []driver.Value) { taken = r[0].(int64) })
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
	if db.remains.file == nil {
		if db.remains.file, err = os.OpenFile(db.path, os.O_RDWR, 0); err != nil {
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
	var reader *conn
	select {
	case reader = <-db.readers:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { db.readers <- reader }()
	if reader == nil {
		if reader, err = dial(ctx, db.path, readerCache); err != nil {
			return 0, err
		}
	}
	var roots []uint32
	err = db.write(ctx, func(c *conn) (bool, error) {
		if err := c.cutLog(); err != nil {
			return false, err
		}
		if err := reader.exec(beginRead, 0); err != nil {
			return false, err
		}
		roots, err = reader.roots()
		return false, err
	})
	if err == nil {
		overwritten, err = db.sweepFile(ctx, roots, nil)
	}
	if err != nil {
		_ = reader.exec(rollback, 0) // there may be none to roll back
		return overwritten, err
	}
	err = db.write(ctx, func(c *conn) (bool, error) {
		changed, err := pagesInLog(db.path + "-wal")
		if rerr := reader.exec(rollback, 0); err == nil {
			err = rerr
		}
		if err == nil {
			err = c.cutLog()
		}
		if err == nil {
			roots, err = c.roots()
		}
		if err != nil {
			return true, err
		}
		n, err := db.sweepFile(ctx, roots, changed)
		overwritten += n
		if err == nil {
			err = db.remains.file.Sync()
		}
		return true, err // closed in any case: its cache remembers
	})
	return overwritten, err
}

// cutLog writes all of the log back and cuts it to nothing.
func (c *conn) cutLog() error {
	if err := c.patience(cleanBusy); err != nil {
		return err
	}
	held := false
	err := c.ask("PRAGMA wal_checkpoint(TRUNCATE)", func(r []driver.Value) error { held = r[0].(int64) != 0; return nil })
	if perr := c.patience(busy); err == nil {
		err = perr
	}
	if _, code := reasonOf(err); held || code == sqliteBusy || code == sqliteLocked {
		return errLogHeld
	}
	return err
}

func (c *conn) patience(wait time.Duration) error {
	return c.ask("PRAGMA busy_timeout = "+strconv.FormatInt(wait.Milliseconds(), 10), func([]driver.Value) error { return nil })
}

// roots are the first pages of all trees.
func (c *conn) roots() (roots []uint32, err error) {
	roots = []uint32{1}
	err = c.ask("SELECT rootpage FROM sqlite_schema WHERE rootpage > 0", func(r []driver.Value) error {
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

// cleaning is one walk over the file.
type cleaning struct {
	layout
	ctx         context.Context
	file        *os.File
	only        map[uint32]bool // pages to look at; nil: all
	page        []byte
	overwritten int64
}

// sweepFile overwrites what belongs to nothing, in those pages or in all. The
// file must stand still.
func (db *DB) sweepFile(ctx context.Context, roots []uint32, only map[uint32]bool) (overwritten int64, err error) {
	if only != nil && len(only) == 0 {
		return 0, nil
	}
	w := &cleaning{ctx: ctx, file: db.remains.file, only: only}
	var header [100]byte
	if _, err := w.file.ReadAt(header[:], 0); err != nil {
		return 0, err
	}
	if w.layout, err = layoutOf(header[:]); err != nil {
		return 0, err
	}
	w.page = make([]byte, w.size)
	for _, root := range roots {
		depth, err := w.depth(root)
		if err == nil {
			err = w.tree(root, depth)
		}
		if err != nil {
			return w.overwritten, damaged("the file cannot be cleaned: %w", err)
		}
	}
	if err := w.free(binary.BigEndian.Uint32(header[32:])); err != nil {
		return w.overwritten, damaged("the file cannot be cleaned: %w", err)
	}
	return w.overwritten, nil
}

// wanted reports whether a page is to be looked at.
func (w *cleaning) wanted(number uint32) bool { return w.only == nil || w.only[number] }

// read reads a page into the one buffer there is.
func (w *cleaning) read(number uint32) ([]byte, error) {
	if err := checkContext(w.ctx); err != nil {
		return nil, err
	}
	if number < 1 || number > w.pages {
		return nil, fmt.Errorf("page %d of %d", number, w.pages)
	}
	_, err := w.file.ReadAt(w.page, int64(number-1)*int64(w.size))
	return w.page, err
}

// depth is how many levels lie below a page; all leaves of a tree lie on one.
func (w *cleaning) depth(number uint32) (depth int, err error) {
	const deepest = 64
	for depth = range deepest {
		data, err := w.read(number)
		if err != nil {
			return 0, err
		}
		t, err := w.parse(number, data)
		if err != nil || t.leaf() {
			return depth, err
		}
		number = t.children[0]
	}
	return 0, fmt.Errorf("a tree is deeper than %d", deepest)
}

// tree walks a page and what is below it.
func (w *cleaning) tree(number uint32, depth int) error {
	if depth == 0 && !w.wanted(number) {
		return nil
	}
	data, err := w.read(number)
	if err != nil {
		return err
	}
	t, err := w.parse(number, data)
	if err != nil {
		return err
	}
	if t.leaf() != (depth == 0) {
		return fmt.Errorf("page %d is on the wrong level", number)
	}
	if w.wanted(number) {
		if err := w.overwrite(number, data, t.used); err != nil {
			return err
		}
		for _, c := range t.chains {
			if err := w.chain(c); err != nil {
				return fmt.Errorf("page %d: %w", number, err)
			}
		}
	}
	for _, child := range t.children {
		if err := w.tree(child, depth-1); err != nil {
			return err
		}
	}
	return nil
}

// chain walks a long value to its last page and overwrites what follows it.
func (w *cleaning) chain(c chain) error {
	number, left := c.first, c.bytes
	room := int64(w.usable - 4)
	for {
		data, err := w.read(number)
		if err != nil {
			return err
		}
		next := binary.BigEndian.Uint32(data)
		if left <= room {
			if next != 0 {
				return fmt.Errorf("a value goes on after its end, in page %d", next)
			}
			used := make([]bool, w.size)
			for i := range used {
				used[i] = i < 4+int(left) || i >= w.usable
			}
			return w.overwrite(number, data, used)
		}
		number, left = next, left-room
	}
}

// free walks the list of free pages: those that list others, and the others.
func (w *cleaning) free(trunk uint32) error {
	for steps := uint32(0); trunk != 0; steps++ {
		if steps > w.pages {
			return errors.New("the list of free pages has no end")
		}
		data, err := w.read(trunk)
		if err != nil {
			return err
		}
		next, count := binary.BigEndian.Uint32(data), int(binary.BigEndian.Uint32(data[4:]))
		if count > w.usable/4-2 {
			return fmt.Errorf("page %d lists %d free ones", trunk, count)
		}
		leaves := make([]uint32, count)
		used := make([]bool, w.size)
		for i := range leaves {
			leaves[i] = binary.BigEndian.Uint32(data[8+4*i:])
		}
		for i := range used {
			used[i] = i < 8+4*count
		}
		if err := w.overwrite(trunk, data, used); err != nil {
			return err
		}
		for _, leaf := range leaves {
			if data, err = w.read(leaf); err == nil {
				err = w.overwrite(leaf, data, make([]bool, w.size))
			}
			if err != nil {
				return err
			}
		}
		trunk = next
	}
	return nil
}

// overwrite writes zeros over bytes of a page that are not used and not zero.
func (w *cleaning) overwrite(number uint32, data []byte, used []bool) error {
	base := int64(number-1) * int64(w.size)
	for i := 0; i < len(data); i++ {
		if used[i] || data[i] == 0 {
			continue
		}
		end := i + 1
		for end < len(data) && !used[end] {
			end++
		}
		if _, err := w.file.WriteAt(make([]byte, end-i), base+int64(i)); err != nil {
			return err
		}
		w.overwritten += int64(end - i)
		i = end
	}
	return nil
}
