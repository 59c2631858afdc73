// This file runs transactions. The first exchange of each transaction also reads the generations. In a writing transaction
// it also locks them. The last exchange sends the queued statements and the commit.

package postgres

import (
	"context"
	"fmt"
	"time"

	"understudy/internal/store/db"
)

var (
	beginWrite = &db.Statement{Head: "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"}
	beginRead  = &db.Statement{Head: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"}
	commit     = &db.Statement{Head: "COMMIT"}
	setDurable = &db.Statement{Head: "SET LOCAL synchronous_commit = on"}
	setLosable = &db.Statement{Head: "SET LOCAL synchronous_commit = off"}
	// While a table grows, the server has no statistics of it, or former ones. Then it would compile statements that return one row, and
	// read whole tables that seem small. The statements of the store are written for the indexes.
	setPlans = &db.Statement{Head: "SELECT set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true), " +
		"set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)"}

	// All other writers of the database wait for the lock of a writing transaction. So the server ends the session of a process that
	// does nothing for longer, for example because it was stopped.
	limitIdle = ", set_config('idle_in_transaction_session_timeout', '3000', true)"
)

// RunTransaction implements db.Conn. A transaction first locks the row of the table counter. So only one transaction at a
// time writes, and each statement sees what earlier transactions have committed.
func (c *Conn) RunTransaction(ctx context.Context, work func() error) (broken bool, err error) {
	return c.run(ctx, beginWrite, work)
}

// RunReading implements db.Conn. The transaction does not lock the row of the table counter.
func (c *Conn) RunReading(ctx context.Context, work func() error) (broken bool, err error) {
	return c.run(ctx, beginRead, work)
}

// run runs work in a transaction that begins with a statement.
func (c *Conn) run(ctx context.Context, begin *db.Statement, work func() error) (broken bool, err error) {
	if ctx == nil {
		ctx = context.Background()
	}
	c.work = ctx
	defer func() { c.work = nil; clear(c.ahead) }()
	for opened := false; ; opened = true {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if err = c.begin(ctx, begin); err == nil {
			break
		}
		// If the connection was lost while nothing used it, nothing of work has run.
		if broken = c.end(ctx); !broken || opened || ctx.Err() != nil || c.open(ctx) != nil {
			return broken, err
		}
	}
	err = db.Guard(func() error {
		if err := work(); err != nil || begin != beginWrite || c.hooks.Commit == nil {
			return err
		}
		return c.hooks.Commit(c)
	})
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = c.Execute(commit, 0)
	}
	if err == nil {
		_, err = c.send()
	}
	if begin == beginWrite && c.hooks.End != nil {
		c.hooks.End(err == nil)
	}
	if err == nil {
		return false, nil
	}
	return c.end(ctx), err
}

// begin begins a transaction and calls the hook for the beginning.
func (c *Conn) begin(ctx context.Context, begin *db.Statement) error {
	read, plans, err := variant{st: c.hooks.Read}, variant{st: setPlans}, c.push(variant{st: begin}, "", nil)
	if begin == beginWrite {
		read.suffix, plans.suffix = " FOR UPDATE", limitIdle
	}
	if err == nil {
		err = c.push(plans, "", nil)
	}
	if err == nil && begin == beginWrite && c.durable {
		err = c.push(variant{st: setDurable}, "", nil)
	}
	if err == nil && read.st != nil {
		err = c.push(read, "", nil)
	}
	if err != nil || read.st == nil {
		return err
	}
	found, err := c.send()
	if err != nil {
		return err
	}
	return db.Guard(func() error { return c.hooks.Begin(ctx, c, found[0]) })
}

// end ends a failed transaction. broken reports that the connection must not be used again.
func (c *Conn) end(ctx context.Context) (broken bool) {
	clear(c.queue)
	c.queue, c.queued = c.queue[:0], 0
	if c.raw.IsClosed() {
		return true
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWait)
	defer cancel()
	return c.raw.TxStatus() != 'I' && c.raw.Exec(ctx, "ROLLBACK").Close() != nil
}

// RunDurably implements db.Conn. PostgreSQL waits for the disk at each commit, unless a setting of the server says otherwise.
func (c *Conn) RunDurably(work func() (broken bool, err error)) (broken bool, err error) {
	c.durable = true
	defer func() { c.durable = false }()
	return work()
}

// SetDurable implements db.Conn. The server writes a commit that need not be durable to the disk a little later.
func (c *Conn) SetDurable(durable bool) error {
	if durable {
		return c.Execute(setDurable, 0)
	}
	return c.Execute(setLosable, 0)
}

// LimitTime implements db.Conn. When the time is over, a running statement is cancelled. Statements that are still queued
// at the end of work have no limit.
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
