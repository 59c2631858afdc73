// Package db names what the store needs of a database: connections, statements, rows and errors. It names no
// engine. A package such as sqlite implements Engine and Conn.
package db

import (
	"context"
	"database/sql/driver"
	"slices"
	"time"
)

// Statement is one SQL text that contains a tuple, such as "(?, ?)", which can be repeated. A connection finds the
// prepared statement by the address of the Statement, so declare each Statement once. Parameters are ?, or ?1, ?2 and
// so on.
type Statement struct {
	Head, Tuple, Tail string
	Standard          string // replaces Head for engines whose joins are standard; if it has {}, the tuples stand there, without Tail
	Reads             Part   // the part of the database that the statement reads, for counting reads
	Whole             bool   // the statement reads a whole table, so an engine does not read all rows before it returns the first
}

// Part is one of the parts into which reads of the database are counted.
type Part uint8

// The parts of the database for which reads are counted.
const (
	Rows   Part = iota // the rows of tables
	Index              // chunks of terms, postings of words and places
	Blocks             // the blocks of packed bodies
	parts
)

// Reads is the number of rows read from each part.
type Reads [parts]int64

// MaxTuples is the maximum number of tuples in one statement. It also limits how many variants of a statement a
// connection keeps prepared.
const MaxTuples = 64

// Conn is one connection. One goroutine at a time uses it; Pool hands it out. Values are int64, string, []byte
// or nil, as parameters and in rows.
type Conn interface {
	// Execute runs a statement with n tuples.
	Execute(st *Statement, n int, args ...driver.Value) error
	// Query runs a statement with n tuples and calls each for every row. The callback may keep the values but not
	// the slice. It may run another query on the same connection.
	Query(st *Statement, n int, args []driver.Value, each func(row []driver.Value) error) error
	// Expect says that the open transaction will query a statement with these arguments, and changes nothing before that
	// changes its rows. An engine for which each query is a round trip reads all that is expected in one.
	Expect(st *Statement, n int, args ...driver.Value) error
	// QueryOnce runs an SQL text once and calls each for every row. It does not keep the prepared statement.
	QueryOnce(text string, args []driver.Value, each func(row []driver.Value) error) error

	// RunTransaction runs work in a writing transaction. It commits all of work or nothing. broken reports that
	// rolling back failed too, so the connection must not be used again.
	RunTransaction(ctx context.Context, work func() error) (broken bool, err error)
	// RunReading runs work in a reading transaction, in which all statements see the same snapshot.
	RunReading(ctx context.Context, work func() error) (broken bool, err error)
	// RunDurably runs work whose transactions survive a crash of the machine once they are committed, as do all
	// earlier commits. Do not call it inside a transaction.
	RunDurably(work func() (broken bool, err error)) (broken bool, err error)
	// SetDurable says whether the open transaction must survive a crash of the machine once it is committed. An engine
	// without such a choice for one transaction does nothing.
	SetDurable(durable bool) error
	// LimitTime runs work and starts none of its statements after max. If the time is over, it returns a Fault
	// with a reason. The caller must then roll back the transaction.
	LimitTime(ctx context.Context, max time.Duration, work func() error) error

	// SetHooks sets what the connection calls around its transactions.
	SetHooks(h Hooks)
	// TakeReads returns the rows read since the last call, by part.
	TakeReads() Reads
	// Close closes the connection.
	Close() error
}

// VisitRows runs a query without tuples and calls each for every row.
func VisitRows(c Conn, st *Statement, args []driver.Value, each func(row []driver.Value)) error {
	return c.Query(st, 0, args, func(row []driver.Value) error {
		each(row)
		return nil
	})
}

// QueryRow runs a statement without tuples that returns at most one row. It calls row if there is one.
func QueryRow(c Conn, st *Statement, args []driver.Value, row func(row []driver.Value)) (found bool, err error) {
	err = VisitRows(c, st, args, func(r []driver.Value) {
		if !found {
			row(r)
		}
		found = true
	})
	return found, err
}

// ExecuteMany runs a statement for rows of width arguments each, with as many rows as possible per execution.
func ExecuteMany(c Conn, st *Statement, width int, args []driver.Value) error {
	for rows := range slices.Chunk(args, MaxTuples*width) {
		if err := c.Execute(st, len(rows)/width, rows...); err != nil {
			return err
		}
	}
	return nil
}

// ListNumbers returns the numbers in the first column of what a query finds.
func ListNumbers(c Conn, st *Statement, args ...driver.Value) (all []int64, err error) {
	err = VisitRows(c, st, args, func(r []driver.Value) { all = append(all, r[0].(int64)) })
	return all, err
}

// Time converts Unix nanoseconds from the database to a time; 0 gives the zero time.
func Time(at int64) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return time.Unix(0, at).UTC()
}

// Hooks are called around the transactions of a connection. Each may be nil.
type Hooks struct {
	// Read is run in a transaction before its work, if another connection may have committed since it was last run. In a
	// writing transaction it locks the row that it reads, or all writers take turns otherwise. Begin is called with the
	// row. An error ends the transaction.
	Read  *Statement
	Begin func(ctx context.Context, c Conn, row []driver.Value) error
	// Commit is called at the end of each writing transaction, before it commits. An error ends the transaction.
	Commit func(c Conn) error
	// End is called after each writing transaction.
	End func(committed bool)
}

// Engine is one database of some make. It is safe for concurrent use, unless a method says otherwise.
type Engine interface {
	// Name returns the database as messages name it, such as the path of a file.
	Name() string
	// Dial opens a connection. A writing connection runs transactions of both sorts, a reading one only
	// reading transactions.
	Dial(ctx context.Context, writing bool) (Conn, error)
	// IsDistant reports whether each query costs a round trip, so that it pays to Expect queries.
	IsDistant() bool
	// CanLockRows reports whether writing transactions lock only the rows that they change, so that several connections can
	// write at once.
	CanLockRows() bool
	// Prepare checks that the database is empty or ours, and migrates it to the newest schema. It leaves any
	// other database as it is and returns an error that says what to do.
	Prepare(ctx context.Context, writer Conn) error
	// Close frees what the engine itself keeps open. All connections are closed before.
	Close() error

	// Limit returns how many units the database may take, or 0 if it has no limit. A unit is about a page.
	Limit() int64
	// CountUsed returns how many units are in use.
	CountUsed(c Conn) (int64, error)
	// OpenReserve lets the writer use the units beyond the limit that only deleting work may use, or ends that.
	OpenReserve(writer Conn, open bool) error
	// EndWrite takes the error of a write, or nil, and returns it with its reason if the limit caused it. broken
	// reports that the connection must not be used again.
	EndWrite(writer Conn, err error) (explained error, broken bool)
	// MeasureSpace returns the disk space of the database.
	MeasureSpace(c Conn) (Space, error)

	// CheckFile runs the engine's own checks of its files and calls report with each problem.
	CheckFile(c Conn, report func(problem string)) error
	// ListTables returns the names of the tables, those of indexes included.
	ListTables(c Conn) ([]string, error)
	// Sanitize overwrites what the files still contain of deleted or changed rows, and returns how many bytes it
	// overwrote. Only one goroutine at a time may call it.
	Sanitize(ctx context.Context, p *Pool) (overwritten int64, err error)
	// Copy writes a copy of the database to a new file. Readers and writers go on. A distant database returns an error.
	Copy(ctx context.Context, path string) error
	// Shrink gives free space back to the disk. Writers wait until it ends.
	Shrink(ctx context.Context, p *Pool) error
	// ListResidue returns where bytes of deleted rows may still be after Sanitize.
	ListResidue(c Conn) ([]Residue, error)
}

// Residue is a place where bytes of deleted rows may still be, and what ends that.
type Residue struct {
	Where string `json:"where"`
	Until string `json:"until"`
}

// Space is disk space in bytes.
type Space struct {
	File int64 // the database, in use or free
	Log  int64 // the log of writes
	Free int64 // the bytes inside File that can be used again
}

// CheckContext returns ctx's error if ctx is done. ctx may be nil.
func CheckContext(ctx context.Context) error {
	if ctx == nil {
		return nil
	}
	return ctx.Err()
}
