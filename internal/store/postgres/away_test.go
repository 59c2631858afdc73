package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/store/db"
	"understudy/internal/store/pgtest"
)

// stores are databases with the tables of a store.
var stores = pgtest.Pool{Prepare: func(ctx context.Context, dsn string) error {
	e, err := NewEngine(dsn)
	if err != nil {
		return err
	}
	c, err := e.Dial(ctx, true)
	if err != nil {
		return err
	}
	return errors.Join(e.Prepare(ctx, c), c.Close())
}}

var selectSession = &db.Statement{Head: "SELECT pg_backend_pid()"}

// startPool returns a pool with one connection that reads and one that writes.
func startPool(t *testing.T, dsn string) *db.Pool {
	t.Helper()
	e, err := NewEngine(dsn)
	checktest.MustNoError(t, err, "NewEngine")
	p := db.NewPool(e, 1, time.Now, func() {})
	writer, err := e.Dial(t.Context(), true)
	checktest.MustNoError(t, err, "Dial")
	checktest.MustNoError(t, p.Start(t.Context(), writer, func() error { return nil }), "Start")
	t.Cleanup(func() { checktest.NoError(t, p.Close(), "close the pool") })
	return p
}

func TestThePoolReplacesALostConnection(t *testing.T) {
	t.Parallel()
	dsn := stores.Database(t)
	p := startPool(t, dsn)
	other := connectOutside(t, dsn)
	for name, run := range map[string]func(context.Context, func(db.Conn) error) error{"a write": p.Change, "a read": p.Read} {
		session := func() (pid int64) {
			err := run(t.Context(), func(c db.Conn) error {
				_, err := db.QueryRow(c, selectSession, nil, func(r []driver.Value) { pid = r[0].(int64) })
				return err
			})
			checktest.MustNoError(t, err, "%s after a connection was lost", name)
			return pid
		}
		end := func(pid int64) { runOutside(t, other, "SELECT pg_terminate_backend($1, 60000)", pid) }
		first := session()
		end(first)
		second := session() // the first use of the lost connection succeeds
		checktest.True(t, second != first, "%s: the session is the same", name)

		err := run(t.Context(), func(c db.Conn) error {
			end(second)
			return c.Query(selectSession, 0, nil, func([]driver.Value) error { return nil })
		})
		checktest.Equal(t, db.ClassOf(err), db.Away, "%s: class of %v when the session is ended inside", name, err)
		third := session()
		checktest.True(t, third != second, "%s: the session is the same", name)
	}
}

func TestThePoolReplacesAConnectionThatACancelledStatementHasBroken(t *testing.T) {
	t.Parallel()
	p := startPool(t, stores.Database(t))
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		err := p.Change(ctx, func(c db.Conn) error {
			return c.Query(pause, 0, []driver.Value{int64(600)}, func([]driver.Value) error { return nil })
		})
		cancel()
		checktest.True(t, errors.Is(err, context.DeadlineExceeded), "the error is %v", err)
		checktest.NoError(t, p.Change(t.Context(), func(db.Conn) error { return nil }), "the next transaction")
	}
}

// TestAStoppedWriterLosesItsLock: others can write again although a process was stopped inside a writing transaction.
func TestAStoppedWriterLosesItsLock(t *testing.T) {
	t.Parallel()
	dsn := stores.Database(t)
	stopped, other := startPool(t, dsn), startPool(t, dsn)
	err := stopped.Change(t.Context(), func(c db.Conn) error {
		if err := other.Change(t.Context(), func(db.Conn) error { return nil }); err != nil {
			return err
		}
		return c.Query(selectSession, 0, nil, func([]driver.Value) error { return nil })
	})
	checktest.Equal(t, db.ClassOf(err), db.Away, "class of %v", err)
	checktest.NoError(t, stopped.Change(t.Context(), func(db.Conn) error { return nil }), "the next transaction")
}

// A server warns of each of its own tables that a user without rights wants to vacuum.
func TestSanitizeConcernsOnlyTheTablesOfTheStore(t *testing.T) {
	t.Parallel()
	dsn := stores.Database(t)
	p := startPool(t, dsn)
	_, err := p.Engine.Sanitize(t.Context(), p)
	checktest.NoError(t, err, "sanitize")
	name := p.Engine.(*Engine).config.Database
	checktest.Lacks(t, pgtest.ReadLog(t, dsn), "] "+name+": WARNING", "the log of the server")
}

func TestWhatRemainsOfDeletedRowsIsNamed(t *testing.T) {
	t.Parallel()
	dsn := stores.Database(t)
	p := startPool(t, dsn)
	_, err := p.Engine.Sanitize(t.Context(), p)
	checktest.NoError(t, err, "sanitize")
	var all []db.Residue
	err = p.Read(t.Context(), func(c db.Conn) error {
		all, err = p.Engine.ListResidue(c)
		return err
	})
	checktest.MustNoError(t, err, "ListResidue")
	remains := fmt.Sprint(all)
	checktest.Contains(t, remains, "every table was vacuumed at 20", "after VACUUM")
	for _, part := range []string{"write-ahead log up to file 0000", "base backups", "REINDEX INDEX CONCURRENTLY words_lexemes"} {
		checktest.Contains(t, remains, part, "what remains")
	}
	checktest.Lacks(t, remains, "standbys", "without a standby")
}
