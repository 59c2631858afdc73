// This file has the methods of one connection to SQLite. A connection keeps prepared statements, and one statement can
// write many rows.

// Package sqlite is the engine for one SQLite file. It opens connections and words SQLite's errors so that a
// person can act on them.
package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite"

	"understudy/internal/store/db"
)

const (
	// busyWait is how long a statement waits for a lock of another process.
	busyWait = 2 * time.Second
	// busyRetryWait is how long a statement waits for a lock of another process after such a wait has failed before.
	busyRetryWait = 50 * time.Millisecond
)

// Conn is one connection. It implements db.Conn. It does not use database/sql, whose pooling, argument checks and
// context watchers cost as much as a statement.
type Conn struct {
	raw       driver.Conn
	prepared  map[prepared]driver.Stmt
	args      []driver.NamedValue
	row       []driver.Value
	impatient bool            // the last wait for a lock of another process failed
	reads     db.Reads        // rows read since the pool last collected the counters
	limit     context.Context // the context that limits the time of the current work, or nil
	hooks     db.Hooks
	version   int64 // the version of the file when hooks.Begin was last called
}

type prepared struct {
	st *db.Statement
	n  int
}

// dsn returns the file's name in the form that the SQLite driver needs, whatever characters its path contains.
func dsn(path string) string { return (&url.URL{Scheme: "file", Path: path}).String() }

// Dial opens a connection and sets it up. cache is the size of its page cache in KiB.
func Dial(ctx context.Context, path string, cache int) (*Conn, error) {
	connector, err := sqlite.NewConnector(dsn(path))
	if err != nil {
		return nil, wrapError(err)
	}
	raw, err := connector.Connect(ctx)
	if err != nil {
		return nil, wrapError(err)
	}
	c := &Conn{raw: raw, prepared: map[prepared]driver.Stmt{}}
	for _, pragma := range []string{
		"busy_timeout = " + strconv.FormatInt(busyWait.Milliseconds(), 10),
		"cache_size = -" + strconv.Itoa(cache),
		"synchronous = NORMAL", // a crash of the machine may lose the last commits, but never a part of a commit
		"foreign_keys = ON",
		"secure_delete = FAST",
		"temp_store = MEMORY",
	} {
		if err := c.ExecuteOnce("PRAGMA " + pragma); err != nil {
			_ = c.Close()
			return nil, err
		}
	}
	return c, nil
}

// ExecuteOnce executes an SQL text once. It does not keep the prepared statement.
func (c *Conn) ExecuteOnce(text string) error {
	stmt, err := c.raw.Prepare(text)
	if err != nil {
		return wrapError(err)
	}
	_, err = stmt.(driver.StmtExecContext).ExecContext(context.Background(), nil)
	if cerr := stmt.Close(); err == nil {
		err = cerr
	}
	return wrapError(err)
}

// set sets a pragma that answers with its new value.
func (c *Conn) set(pragma string, value int64) error {
	return c.QueryOnce(fmt.Sprintf("PRAGMA %s = %d", pragma, value), nil, func([]driver.Value) error { return nil })
}

// QueryInteger executes an SQL text that returns one integer, such as a pragma.
func (c *Conn) QueryInteger(text string) (n int64, err error) {
	err = c.QueryOnce(text, nil, func(row []driver.Value) error {
		v, ok := row[0].(int64)
		if !ok {
			return fmt.Errorf("%s: answered %T", text, row[0])
		}
		n = v
		return nil
	})
	return n, err
}

// QueryOnce implements db.Conn.
func (c *Conn) QueryOnce(text string, args []driver.Value, each func(row []driver.Value) error) error {
	stmt, err := c.raw.Prepare(text)
	if err != nil {
		return wrapError(err)
	}
	defer stmt.Close()
	return c.queryPrepared(stmt, args, each)
}

// Execute runs a statement with n tuples. It passes no context to the driver, because the driver would start a
// goroutine per call to watch it. Every statement is short or limited by busy_timeout. Contexts are checked
// between statements.
func (c *Conn) Execute(st *db.Statement, n int, args ...driver.Value) error {
	if err := c.checkLimit(); err != nil {
		return err
	}
	stmt, err := c.prepare(st, n)
	if err != nil {
		return err
	}
	_, err = stmt.(driver.StmtExecContext).ExecContext(context.Background(), c.namedArgs(args))
	clear(c.args)
	return wrapError(err)
}

// Query implements db.Conn.
func (c *Conn) Query(st *db.Statement, n int, args []driver.Value, each func(row []driver.Value) error) error {
	if err := c.checkLimit(); err != nil {
		return err
	}
	stmt, err := c.prepare(st, n)
	if err != nil {
		return err
	}
	return c.queryPrepared(stmt, args, func(row []driver.Value) error {
		c.reads[st.Reads]++
		return each(row)
	})
}

// Expect implements db.Conn. A query costs no round trip, so nothing is read ahead.
func (c *Conn) Expect(*db.Statement, int, ...driver.Value) error { return nil }

// queryPrepared executes a prepared statement and calls each for every row of the result.
func (c *Conn) queryPrepared(stmt driver.Stmt, args []driver.Value, each func(row []driver.Value) error) error {
	rows, err := stmt.(driver.StmtQueryContext).QueryContext(context.Background(), c.namedArgs(args))
	clear(c.args)
	if err != nil {
		return wrapError(err)
	}
	width := len(rows.Columns())
	row := c.row
	if cap(row) < width {
		row = make([]driver.Value, width)
	}
	c.row = nil // so that a query inside each allocates a row of its own
	row = row[:width]
	err = db.Guard(func() error {
		for {
			if err := rows.Next(row); err != nil {
				return wrapError(err)
			}
			if err := each(row); err != nil {
				return err
			}
		}
	})
	clear(row)
	c.row = row
	if err == io.EOF {
		err = nil
	}
	if cerr := rows.Close(); err == nil {
		err = wrapError(cerr)
	}
	return err
}

func (c *Conn) namedArgs(args []driver.Value) []driver.NamedValue {
	c.args = c.args[:0]
	for i, v := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return c.args
}

// prepare returns the prepared statement with n tuples. It keeps the statement for later calls.
func (c *Conn) prepare(st *db.Statement, n int) (driver.Stmt, error) {
	key := prepared{st, n}
	if stmt := c.prepared[key]; stmt != nil {
		return stmt, nil
	}
	text := st.Head
	if n > 0 {
		text += strings.Repeat(st.Tuple+", ", n-1) + st.Tuple
	}
	// SQLite makes its plan for the value of a LIMIT that is only a parameter, and so prepares the statement again before
	// each run. A plus sign before the parameter avoids that.
	text = strings.ReplaceAll(text+st.Tail, "LIMIT ?", "LIMIT +?")
	stmt, err := c.raw.Prepare(text)
	if err != nil {
		return nil, wrapError(err)
	}
	c.prepared[key] = stmt
	return stmt, nil
}

// checkLimit returns an error once the time limit of the current work is over.
func (c *Conn) checkLimit() error {
	if c.limit == nil {
		return nil
	}
	return c.limit.Err()
}

// SetDurable implements db.Conn. RunDurably decides it for SQLite.
func (c *Conn) SetDurable(bool) error { return nil }

// LimitTime implements db.Conn.
func (c *Conn) LimitTime(ctx context.Context, max time.Duration, work func() error) error {
	limit, cancel := context.WithTimeout(ctx, max)
	defer cancel()
	c.limit = limit
	err := work()
	c.limit = nil
	if err != nil && limit.Err() != nil && ctx.Err() == nil {
		return &db.Fault{Reason: fmt.Sprintf("saving it took more than %v", max), Saving: true, Err: context.DeadlineExceeded}
	}
	return err
}

var (
	beginWrite = &db.Statement{Head: "BEGIN IMMEDIATE"}
	beginRead  = &db.Statement{Head: "BEGIN"}
	commit     = &db.Statement{Head: "COMMIT"}
	rollback   = &db.Statement{Head: "ROLLBACK"}
)

// RunTransaction implements db.Conn.
func (c *Conn) RunTransaction(ctx context.Context, work func() error) (broken bool, err error) {
	return c.run(ctx, beginWrite, work)
}

// RunReading implements db.Conn.
func (c *Conn) RunReading(ctx context.Context, work func() error) (broken bool, err error) {
	return c.run(ctx, beginRead, work)
}

// run runs work in a transaction that begins with a statement.
func (c *Conn) run(ctx context.Context, begin *db.Statement, work func() error) (broken bool, err error) {
	if err := db.CheckContext(ctx); err != nil {
		return false, err
	}
	if err := c.Execute(begin, 0); err != nil {
		return false, err
	}
	err = db.Guard(func() error {
		if err := c.refresh(ctx); err != nil {
			return err
		}
		if err := work(); err != nil || begin != beginWrite || c.hooks.Commit == nil {
			return err
		}
		return c.hooks.Commit(c)
	})
	if err == nil {
		err = db.CheckContext(ctx)
	}
	if err == nil {
		err = c.Execute(commit, 0)
	}
	if begin == beginWrite && c.hooks.End != nil {
		c.hooks.End(err == nil)
	}
	if err == nil {
		return false, nil
	}
	// After some errors SQLite has already rolled back. Then the rollback fails with this message.
	if rerr := c.Execute(rollback, 0); rerr != nil && !strings.Contains(rerr.Error(), "no transaction is active") {
		return true, err
	}
	return false, err
}

var pragmaVersion = &db.Statement{Head: "PRAGMA data_version"}

// refresh calls the hook of a transaction's beginning if another connection has committed since the last call.
// It begins the snapshot of a reading transaction.
func (c *Conn) refresh(ctx context.Context) error {
	if c.hooks.Read == nil {
		return nil
	}
	version, reads := int64(0), c.reads
	defer func() { c.reads = reads }() // only work counts
	if _, err := db.QueryRow(c, pragmaVersion, nil, func(r []driver.Value) { version = r[0].(int64) }); err != nil || version == c.version {
		return err
	}
	var began error
	if _, err := db.QueryRow(c, c.hooks.Read, nil, func(r []driver.Value) { began = c.hooks.Begin(ctx, c, r) }); err != nil {
		return err
	}
	if began == nil {
		c.version = version
	}
	return began
}

// SetHooks implements db.Conn.
func (c *Conn) SetHooks(h db.Hooks) { c.hooks = h }

// RunDurably implements db.Conn. The last of other commits may be lost in a crash of the machine, but never a
// part of one.
func (c *Conn) RunDurably(work func() (broken bool, err error)) (broken bool, err error) {
	if err := c.ExecuteOnce("PRAGMA synchronous = FULL"); err != nil {
		return false, err
	}
	broken, err = work()
	again := c.ExecuteOnce("PRAGMA synchronous = NORMAL")
	return broken || again != nil, err
}

// setBusyTimeout shortens the wait for locks after a wait has failed, so that other writers do not each wait in
// turn. After a successful write it restores the full wait.
func (c *Conn) setBusyTimeout(err error) error {
	locked := db.ClassOf(err) == db.Locked
	if locked == c.impatient || err != nil && !locked {
		return nil
	}
	wait := busyWait
	if locked {
		wait = busyRetryWait
	}
	c.impatient = locked
	return c.setLockWait(wait)
}

// setLockWait sets how long a statement waits for a lock of another process.
func (c *Conn) setLockWait(wait time.Duration) error {
	return c.set("busy_timeout", wait.Milliseconds())
}

// TakeReads implements db.Conn.
func (c *Conn) TakeReads() (reads db.Reads) {
	reads, c.reads = c.reads, db.Reads{}
	return reads
}

// Close closes the connection and its prepared statements.
func (c *Conn) Close() error {
	for _, stmt := range c.prepared {
		_ = stmt.Close()
	}
	clear(c.prepared)
	return c.raw.Close()
}
