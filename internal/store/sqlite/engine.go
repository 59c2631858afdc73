// This file is the engine: one file, its connections, its size limit and its schema.

package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"

	"understudy/internal/store/db"
	"understudy/internal/store/migrations"
)

// pageSize is the page size of a new file in bytes. A packed block of about 9 KiB fits pages of 8 KiB better
// than pages of 4 KiB and saves 54 bytes per call record.
const pageSize = 8 << 10

// The page caches of connections, in KiB. The operating system also caches the file.
const (
	WriterCache = 4 << 10
	readerCache = 512
)

// applicationID marks a file as ours in the header of the database: "Unst".
const applicationID = 0x556e7374

// Engine is one SQLite file. It implements db.Engine.
type Engine struct {
	path string

	// limit is the size limit of the file and its log in bytes, or 0. log is the size in bytes from which the log
	// is copied into the file.
	limit, log int64
	// pages is the maximum number of pages of the file for saves, or 0 without a limit. reserve is how many more
	// pages work that frees space may use. maxPages is the limit last set in SQLite. Only the goroutine with the
	// writing connection uses them.
	pages, reserve, maxPages int64

	file *os.File // the file that Sanitize reads and overwrites; nil until it is needed
}

// NewEngine returns the engine of a file. limit is how many bytes the file and its log may take together, or 0
// for no limit. log is the size in bytes from which the log is copied into the file.
func NewEngine(path string, limit, log int64) *Engine {
	return &Engine{path: path, limit: limit, log: log}
}

// Name implements db.Engine.
func (e *Engine) Name() string { return e.path }

// IsDistant implements db.Engine.
func (e *Engine) IsDistant() bool { return false }

// CanLockRows implements db.Engine. One connection at a time writes.
func (e *Engine) CanLockRows() bool { return false }

// Dial implements db.Engine. For a writing connection it sets the page size, the log size and the size limit.
func (e *Engine) Dial(ctx context.Context, writing bool) (db.Conn, error) {
	cache := readerCache
	if writing {
		cache = WriterCache
	}
	c, err := Dial(ctx, e.path, cache)
	if err == nil && writing {
		if err = e.setUpWriter(c); err != nil {
			_ = c.Close()
		}
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// setUpWriter sets the page size, the log size and the size limit.
func (e *Engine) setUpWriter(c *Conn) error {
	// Only a file that is still empty takes this size.
	if err := c.ExecuteOnce(fmt.Sprintf("PRAGMA page_size = %d", pageSize)); err != nil {
		return err
	}
	size, err := c.QueryInteger("PRAGMA page_size")
	if err != nil {
		return err
	}
	// A checkpoint writes a changed page once, however often it changed. So a longer log saves writes of the
	// indexes.
	if err := c.set("wal_autocheckpoint", e.log/size); err != nil {
		return err
	}
	if err := c.set("journal_size_limit", e.log); err != nil {
		return err
	}
	return e.setGrowthLimit(c, size)
}

// Prepare implements db.Engine. The application id in the header says whether the file is ours, and the table of goose
// says which migrations it has.
func (e *Engine) Prepare(ctx context.Context, writer db.Conn) error {
	c := writer.(*Conn)
	tables, err := c.QueryInteger("SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return err
	}
	id, err := c.QueryInteger("PRAGMA application_id")
	if err != nil {
		return err
	}
	switch {
	case id == applicationID && tables > 0:
		if is, err := migrations.IsComplete(writer); is || err != nil {
			return errors.Join(err, c.setMode("journal_mode", "wal")) // a crash of Shrink may have left another mode
		}
	case id == applicationID: // an earlier start was interrupted while it created the file
	case tables > 0 || id != 0:
		return errors.New("this is a database of another program; it was left as it is, use another --data folder")
	}
	for _, pragma := range []string{"journal_mode = WAL", fmt.Sprintf("application_id = %d", applicationID)} {
		if err := c.QueryOnce("PRAGMA "+pragma, nil, func([]driver.Value) error { return nil }); err != nil {
			return err
		}
	}
	return wrapError(e.migrate(ctx))
}

// migrate runs the missing migrations, each in a transaction.
func (e *Engine) migrate(ctx context.Context) error {
	connector, err := sqlite.NewConnector(dsn(e.path))
	if err != nil {
		return err
	}
	file := sql.OpenDB(connector)
	file.SetMaxOpenConns(1)
	defer file.Close()
	steps, _, err := migrations.Read(migrations.SQLite)
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, file, nil, goose.WithDisableGlobalRegistry(true),
		goose.WithLogger(goose.NopLogger()), goose.WithGoMigrations(steps...))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

// Close implements db.Engine.
func (e *Engine) Close() error {
	if e.file == nil {
		return nil
	}
	return e.file.Close()
}

// EndWrite implements db.Engine. After a wait for a lock has failed, the next ones are shorter.
func (e *Engine) EndWrite(writer db.Conn, err error) (explained error, broken bool) {
	c := writer.(*Conn)
	err = e.explainFull(c, err)
	return err, c.setBusyTimeout(err) != nil
}

// MeasureSpace implements db.Engine.
func (e *Engine) MeasureSpace(c db.Conn) (s db.Space, err error) {
	s = db.Space{File: fileSize(e.path), Log: fileSize(e.path + "-wal")}
	size, err := c.(*Conn).QueryInteger("PRAGMA page_size")
	if err != nil {
		return s, err
	}
	s.Free, err = c.(*Conn).QueryInteger("PRAGMA freelist_count")
	s.Free *= size
	return s, err
}

// fileSize returns a file's size without opening it, or 0 if there is no such file.
func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// CheckFile implements db.Engine.
func (e *Engine) CheckFile(c db.Conn, report func(problem string)) error {
	return c.QueryOnce("PRAGMA integrity_check(20)", nil, func(r []driver.Value) error {
		text, _ := r[0].(string)
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "ok" {
				report("SQLite: " + line)
			}
		}
		return nil
	})
}

// ListTables implements db.Engine.
func (e *Engine) ListTables(c db.Conn) (names []string, err error) {
	err = c.QueryOnce("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name", nil, func(r []driver.Value) error {
		names = append(names, r[0].(string))
		return nil
	})
	return names, err
}
