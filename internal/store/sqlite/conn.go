// One connection to SQLite, used straight through its driver: prepared
// statements are kept, and one statement carries many rows.

// Package sqlite is the connections to one SQLite file: one that writes, a few
// that read, and the faults they bring in words a person can act on.
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

// Statement is one SQL text in which tuple can be repeated. Statements are
// named by their address, so each is declared once.
type Statement struct {
	Head, Tuple, Tail string
	Reads             Part // that its rows are of
}

// Part is a part of the file that is read.
type Part uint8

// The parts.
const (
	Rows   Part = iota // of tables
	Index              // chunks of terms, postings of words and places
	Blocks             // of packed bodies
	parts
)

// Reads counts the rows read of each part.
type Reads [parts]int64

// MaxTuples is how many tuples one statement carries; more are sent in turn. It
// also bounds how many forms of a statement a connection keeps.
const MaxTuples = 64

const (
	// busyWait is how long a lock of another process is waited for.
	busyWait = 2 * time.Second
	// busyAgain is how long it is waited for once that was in vain.
	busyAgain = 50 * time.Millisecond
)

// Conn is one connection. It is used by one goroutine at a time; a caller that wants
// it takes it from the DB. database/sql is passed by because its pooling,
// argument checks and per-call context watchers cost as much as the statement.
type Conn struct {
	Raw       driver.Conn
	prepared  map[prepared]driver.Stmt
	args      []driver.NamedValue
	row       []driver.Value
	impatient bool            // the last wait for a lock was in vain
	reads     Reads           // since the pool took them
	limit     context.Context // of the work under way; nil: none
}

type prepared struct {
	st *Statement
	n  int
}

// dsn is the driver's name of a file, whatever characters are in its path.
func dsn(path string) string { return (&url.URL{Scheme: "file", Path: path}).String() }

// Dial opens a connection and sets it up. cache is its page cache in KiB.
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
		"synchronous = NORMAL", // a crash of the machine may lose the last pages, never tear one
		"foreign_keys = ON",
		"secure_delete = FAST",
		"temp_store = MEMORY",
	} {
		if err := c.Run("PRAGMA " + pragma); err != nil {
			_ = c.Close()
			return nil, err
		}
	}
	return c, nil
}

// Run executes a text that is not worth keeping prepared.
func (c *Conn) Run(text string) error {
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

// number runs a text that answers one integer, such as a pragma.
func (c *Conn) Integer(text string) (n int64, err error) {
	err = c.Ask(text, func(row []driver.Value) error {
		v, ok := row[0].(int64)
		if !ok {
			return fmt.Errorf("%s: answered %T", text, row[0])
		}
		n = v
		return nil
	})
	return n, err
}

// Ask runs a text that answers rows and is not worth keeping prepared.
func (c *Conn) Ask(text string, each func(row []driver.Value) error) error {
	stmt, err := c.Raw.Prepare(text)
	if err != nil {
		return err
	}
	defer stmt.Close()
	return c.Rows(stmt, nil, each)
}

// Exec runs a statement with n tuples. The context is not handed on: the
// driver would watch it from a goroutine per call, and each statement is short
// or bounded by busy_timeout; contexts are checked between statements.
func (c *Conn) Exec(st *Statement, n int, args ...driver.Value) error {
	if err := c.within(); err != nil {
		return err
	}
	stmt, err := c.prepare(st, n)
	if err != nil {
		return err
	}
	_, err = stmt.(driver.StmtExecContext).ExecContext(context.Background(), c.named(args))
	clear(c.args)
	return err
}

// ExecMany runs a statement for rows of width arguments each, as many at once as
// one statement carries.
func (c *Conn) ExecMany(st *Statement, width int, args []driver.Value) error {
	for len(args) > 0 {
		n := min(MaxTuples, len(args)/width)
		if err := c.Exec(st, n, args[:n*width]...); err != nil {
			return err
		}
		args = args[n*width:]
	}
	return nil
}

// Query runs a statement with n tuples; each is called for every row with
// values that are its own to keep, in a slice that is not.
func (c *Conn) Query(st *Statement, n int, args []driver.Value, each func(row []driver.Value) error) error {
	if err := c.within(); err != nil {
		return err
	}
	stmt, err := c.prepare(st, n)
	if err != nil {
		return err
	}
	return c.Rows(stmt, args, func(row []driver.Value) error {
		c.reads[st.Reads]++
		return each(row)
	})
}

// One is query for a statement that answers at most one row.
func (c *Conn) One(st *Statement, args []driver.Value, row func(row []driver.Value)) (found bool, err error) {
	err = c.Query(st, 0, args, func(r []driver.Value) error {
		if !found {
			row(r)
		}
		found = true
		return nil
	})
	return found, err
}

func (c *Conn) Rows(stmt driver.Stmt, args []driver.Value, each func(row []driver.Value) error) error {
	rows, err := stmt.(driver.StmtQueryContext).QueryContext(context.Background(), c.named(args))
	clear(c.args)
	if err != nil {
		return err
	}
	width := len(rows.Columns())
	row := c.row
	if cap(row) < width {
		row = make([]driver.Value, width)
	}
	c.row = nil // a query run by each has a row of its own
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

func (c *Conn) named(args []driver.Value) []driver.NamedValue {
	c.args = c.args[:0]
	for i, v := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return c.args
}

func (c *Conn) prepare(st *Statement, n int) (driver.Stmt, error) {
	key := prepared{st, n}
	if stmt := c.prepared[key]; stmt != nil {
		return stmt, nil
	}
	text := st.Head
	if n > 0 {
		text += strings.Repeat(st.Tuple+", ", n-1) + st.Tuple
	}
	// SQLite plans by the value of a LIMIT that is nothing but a parameter, and so
	// prepares its statement again before each run.
	text = strings.ReplaceAll(text+st.Tail, "LIMIT ?", "LIMIT +?")
	stmt, err := c.Raw.Prepare(text)
	if err != nil {
		return nil, err
	}
	c.prepared[key] = stmt
	return stmt, nil
}

// within is the error of the work's limit once that is over.
func (c *Conn) within() error {
	if c.limit == nil {
		return nil
	}
	return c.limit.Err()
}

// limited runs work, no statement of which begins after most: then it is a fault
// with a reason, and the transaction around it is to be rolled back.
func (c *Conn) Within(ctx context.Context, most time.Duration, work func() error) error {
	limit, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	c.limit = limit
	err := work()
	c.limit = nil
	if err != nil && limit.Err() != nil && ctx.Err() == nil {
		return &Fault{Reason: fmt.Sprintf("saving it took more than %v", most), Saving: true, Err: context.DeadlineExceeded}
	}
	return err
}

var (
	BeginWrite = &Statement{Head: "BEGIN IMMEDIATE"}
	beginRead  = &Statement{Head: "BEGIN"}
	commit     = &Statement{Head: "COMMIT"}
	rollback   = &Statement{Head: "ROLLBACK"}
)

// Transaction runs work in a transaction begun with begin, which stands or falls as
// a whole. broken reports that even rolling back failed, so that the
// connection should not be used again.
func (c *Conn) Transaction(ctx context.Context, begin *Statement, work func() error) (broken bool, err error) {
	if err := CheckContext(ctx); err != nil {
		return false, err
	}
	if err := c.Exec(begin, 0); err != nil {
		return false, err
	}
	err = Guard(work)
	if err == nil {
		err = CheckContext(ctx)
	}
	if err == nil {
		if err = c.Exec(commit, 0); err == nil {
			return false, nil
		}
	}
	// After some faults SQLite has rolled back by itself and says so.
	if rerr := c.Exec(rollback, 0); rerr != nil && !strings.Contains(rerr.Error(), "no transaction is active") {
		return true, err
	}
	return false, err
}

// Durably runs work whose transactions are on the disk when they are committed: a
// crash of the machine does not undo them, nor any before them. Others may be lost
// by it, whole. It is not called inside a transaction.
func (c *Conn) Durably(work func() (broken bool, err error)) (broken bool, err error) {
	if err := c.Run("PRAGMA synchronous = FULL"); err != nil {
		return false, err
	}
	broken, err = work()
	again := c.Run("PRAGMA synchronous = NORMAL")
	return broken || again != nil, err
}

// hurry makes the connection wait less for a lock that was just waited for in
// vain, so that other writers do not wait for it one after the
// other; once a write succeeds it is patient again.
func (c *Conn) setBusyTimeout(err error) error {
	_, code := ReasonOf(err)
	locked := code == codeBusy || code == codeLocked
	if locked == c.impatient || err != nil && !locked {
		return nil
	}
	wait := busyWait
	if locked {
		wait = busyAgain
	}
	c.impatient = locked
	return c.waitForLock(wait)
}

// waitForLock sets how long a lock of another process is waited for.
func (c *Conn) waitForLock(most time.Duration) error {
	return c.Ask("PRAGMA busy_timeout = "+strconv.FormatInt(most.Milliseconds(), 10), func([]driver.Value) error { return nil })
}

func (c *Conn) Close() error {
	for _, stmt := range c.prepared {
		_ = stmt.Close()
	}
	clear(c.prepared)
	return c.Raw.Close()
}

// CheckContext is ctx's error, if it is over.
func CheckContext(ctx context.Context) error {
	if ctx == nil {
		return nil
	}
	return ctx.Err()
}
