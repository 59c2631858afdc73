// This file has the methods of one connection to SQLite. A connection keeps prepared statements, and one statement can
// write many rows.

// Package sqlite manages the connections to one SQLite file: one connection that writes and a few that read. It
// words database errors so that a person can act on them.
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
)

// Statement is one SQL text that contains a tuple, such as "(?, ?)", which can be repeated. A connection finds the
// prepared statement by the address of the Statement, so declare each Statement once.
type Statement struct {
	Head, Tuple, Tail string
	Reads             Part // the part of the file that the statement reads, for counting reads
}

// Part is one of the parts into which reads of the file are counted.
type Part uint8

// The parts of the file for which reads are counted.
const (
	Rows   Part = iota // rows of tables
	Index              // chunks of terms, postings of words, and places of records
	Blocks             // blocks of packed bodies
	parts
)

// Reads is the number of rows read from each part.
type Reads [parts]int64

// MaxTuples is the maximum number of tuples in one statement. It also limits how many variants of a statement a
// connection keeps prepared.
const MaxTuples = 64

const (
	// busyWait is how long a statement waits for a lock of another process.
	busyWait = 2 * time.Second
	// busyRetryWait is how long a statement waits for a lock of another process after such a wait has failed before.
	busyRetryWait = 50 * time.Millisecond
)

// Conn is one connection. Pool lends it to one goroutine at a time. Conn does not use database/sql, whose pooling,
// argument checks and context watchers cost as much as a statement.
type Conn struct {
	Raw       driver.Conn
	prepared  map[prepared]driver.Stmt
	args      []driver.NamedValue
	row       []driver.Value
	impatient bool            // the last wait for a lock of another process failed
	reads     Reads           // rows read since the pool last collected the counters
	limit     context.Context // the context that limits the time of the current work, or nil
}

type prepared struct {
	st *Statement
	n  int
}

// dsn returns the file's name in the form that the SQLite driver needs, whatever characters its path contains.
func dsn(path string) string { return (&url.URL{Scheme: "file", Path: path}).String() }

// Dial opens a connection and sets it up. cache is the size of its page cache in KiB.
func Dial(ctx context.Context, path string, cache int) (*Conn, error) {
	connector, err := sqlite.NewConnector(dsn(path))
	if err != nil {
		return nil, err
	}
	raw, err := connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	c := &Conn{Raw: raw, prepared: map[prepared]driver.Stmt{}}
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
	stmt, err := c.Raw.Prepare(text)
	if err != nil {
		return err
	}
	_, err = stmt.(driver.StmtExecContext).ExecContext(context.Background(), nil)
	if cerr := stmt.Close(); err == nil {
		err = cerr
	}
	return err
}

// QueryInteger executes an SQL text that returns one integer, such as a pragma.
func (c *Conn) QueryInteger(text string) (n int64, err error) {
	err = c.QueryOnce(text, func(row []driver.Value) error {
		v, ok := row[0].(int64)
		if !ok {
			return fmt.Errorf("%s: answered %T", text, row[0])
		}
		n = v
		return nil
	})
	return n, err
}

// QueryOnce executes an SQL text once and calls each for every row of the result. It does not keep the prepared statement.
func (c *Conn) QueryOnce(text string, each func(row []driver.Value) error) error {
	stmt, err := c.Raw.Prepare(text)
	if err != nil {
		return err
	}
	defer stmt.Close()
	return c.QueryPrepared(stmt, nil, each)
}

// Execute runs a statement with n tuples. It passes no context to the driver, because the driver would start a
// goroutine per call to watch it. Every statement is short or limited by busy_timeout. Contexts are checked
// between statements.
func (c *Conn) Execute(st *Statement, n int, args ...driver.Value) error {
	if err := c.checkLimit(); err != nil {
		return err
	}
	stmt, err := c.prepare(st, n)
	if err != nil {
		return err
	}
	_, err = stmt.(driver.StmtExecContext).ExecContext(context.Background(), c.namedArgs(args))
	clear(c.args)
	return err
}

// ExecuteMany runs a statement for rows of width arguments each, with as many rows as possible per execution.
func (c *Conn) ExecuteMany(st *Statement, width int, args []driver.Value) error {
	for len(args) > 0 {
		n := min(MaxTuples, len(args)/width)
		if err := c.Execute(st, n, args[:n*width]...); err != nil {
			return err
		}
		args = args[n*width:]
	}
	return nil
}

// Query runs a statement with n tuples and calls each for every row. The callback may keep the values but not
// the slice.
func (c *Conn) Query(st *Statement, n int, args []driver.Value, each func(row []driver.Value) error) error {
	if err := c.checkLimit(); err != nil {
		return err
	}
	stmt, err := c.prepare(st, n)
	if err != nil {
		return err
	}
	return c.QueryPrepared(stmt, args, func(row []driver.Value) error {
		c.reads[st.Reads]++
		return each(row)
	})
}

// QueryRow runs a statement that returns at most one row. It calls row if there is one.
func (c *Conn) QueryRow(st *Statement, args []driver.Value, row func(row []driver.Value)) (found bool, err error) {
	err = c.Query(st, 0, args, func(r []driver.Value) error {
		if !found {
			row(r)
		}
		found = true
		return nil
	})
	return found, err
}

// QueryPrepared executes a prepared statement and calls each for every row of the result.
func (c *Conn) QueryPrepared(stmt driver.Stmt, args []driver.Value, each func(row []driver.Value) error) error {
	rows, err := stmt.(driver.StmtQueryContext).QueryContext(context.Background(), c.namedArgs(args))
	clear(c.args)
	if err != nil {
		return err
	}
	width := len(rows.Columns())
	row := c.row
	if cap(row) < width {
		row = make([]driver.Value, width)
	}
	c.row = nil // so that a query inside each allocates a row of its own
	row = row[:width]
	err = Guard(func() error {
		for {
			if err := rows.Next(row); err != nil {
				return err
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
		err = cerr
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
func (c *Conn) prepare(st *Statement, n int) (driver.Stmt, error) {
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
	stmt, err := c.Raw.Prepare(text)
	if err != nil {
		return nil, err
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

// LimitTime runs work and starts none of its statements after the time max has passed. It then returns a Fault with a
// reason, and the caller must roll back the transaction.
func (c *Conn) LimitTime(ctx context.Context, max time.Duration, work func() error) error {
	limit, cancel := context.WithTimeout(ctx, max)
	defer cancel()
	c.limit = limit
	err := work()
	c.limit = nil
	if err != nil && limit.Err() != nil && ctx.Err() == nil {
		return &Fault{Reason: fmt.Sprintf("saving it took more than %v", max), Saving: true, Err: context.DeadlineExceeded}
	}
	return err
}

var (
	BeginWrite = &Statement{Head: "BEGIN IMMEDIATE"}
	beginRead  = &Statement{Head: "BEGIN"}
	commit     = &Statement{Head: "COMMIT"}
	rollback   = &Statement{Head: "ROLLBACK"}
)

// RunTransaction runs work in a transaction that begins with the statement begin. It commits all of work or
// nothing. broken reports that rolling back failed too, so the connection must not be used again.
func (c *Conn) RunTransaction(ctx context.Context, begin *Statement, work func() error) (broken bool, err error) {
	if err := CheckContext(ctx); err != nil {
		return false, err
	}
	if err := c.Execute(begin, 0); err != nil {
		return false, err
	}
	err = Guard(work)
	if err == nil {
		err = CheckContext(ctx)
	}
	if err == nil {
		if err = c.Execute(commit, 0); err == nil {
			return false, nil
		}
	}
	// After some errors SQLite has already rolled back. Then the rollback fails with this message.
	if rerr := c.Execute(rollback, 0); rerr != nil && !strings.Contains(rerr.Error(), "no transaction is active") {
		return true, err
	}
	return false, err
}

// RunDurably runs work whose transactions are on the disk once they are committed, and so are all earlier commits. A
// crash of the machine can lose other commits, but never a part of one. Do not call RunDurably inside a transaction.
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
	_, code := ReasonOf(err)
	locked := code == codeBusy || code == codeLocked
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
	return c.QueryOnce("PRAGMA busy_timeout = "+strconv.FormatInt(wait.Milliseconds(), 10), func([]driver.Value) error { return nil })
}

func (c *Conn) Close() error {
	for _, stmt := range c.prepared {
		_ = stmt.Close()
	}
	clear(c.prepared)
	return c.Raw.Close()
}

// CheckContext returns ctx's error if ctx is done. ctx may be nil.
func CheckContext(ctx context.Context) error {
	if ctx == nil {
		return nil
	}
	return ctx.Err()
}
