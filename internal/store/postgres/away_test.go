package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
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
	p := db.NewPool(e, 1, func() {})
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
				_, err := c.QueryRow(selectSession, nil, func(r []driver.Value) { pid = r[0].(int64) })
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

func TestADeadlockHasTheClassLocked(t *testing.T) {
	t.Parallel()
	dsn := thingTables.Database(t)
	// Only a superuser may set how soon the server looks for deadlocks.
	c := dial(t, strings.Replace(dsn, "//understudy@", "//postgres@", 1)+"&deadlock_timeout=10ms")
	addThings(t, c, 2)
	other, watcher := connectOutside(t, dsn), connectOutside(t, dsn)
	ended := make(chan error, 1)
	broken, err := c.RunTransaction(t.Context(), func() error {
		update := func(number int64) error {
			return c.Query(updateThing, 0, []driver.Value{"ours", number}, func([]driver.Value) error { return nil })
		}
		if err := update(0); err != nil {
			return err
		}
		runOutside(t, other, "BEGIN")
		runOutside(t, other, "UPDATE thing SET text = 'theirs' WHERE number = 1")
		go func() {
			_, err := other.Exec(t.Context(), "UPDATE thing SET text = 'theirs' WHERE number = 0")
			ended <- err
		}()
		for waits := false; !waits; {
			const text = "SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_database d ON l.database IS NULL OR d.oid = l.database " +
				"WHERE NOT l.granted AND l.pid = $1)"
			if err := watcher.QueryRow(t.Context(), text, other.PgConn().PID()).Scan(&waits); err != nil {
				return err
			}
		}
		return update(1)
	})
	checktest.Equal(t, db.ClassOf(err), db.Locked, "class of %v", err)
	checktest.True(t, !broken, "the connection is broken")
	checktest.NoError(t, <-ended, "the other session's update")
	runOutside(t, other, "COMMIT")
	transact(t, c, func() error {
		checktest.Equal(t, readText(t, c, 0), "theirs", "text after the deadlock")
		return nil
	})
}
