package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store/db"
	"understudy/internal/store/pgtest"
)

// setup are tables whose rows two transactions can want at the same time.
const setup = `CREATE TABLE thing (number BIGINT PRIMARY KEY, text TEXT COLLATE "C");
	INSERT INTO thing VALUES (0, 'thing'), (1, 'thing');
	CREATE TABLE part (number BIGINT, text TEXT) PARTITION BY LIST (number);
	CREATE TABLE part0 PARTITION OF part FOR VALUES IN (0);
	CREATE TABLE part1 PARTITION OF part FOR VALUES IN (1);
	INSERT INTO part VALUES (0, 'part')`

var updatePart = &db.Statement{Head: "UPDATE part SET text = 'ours' WHERE number = 0 RETURNING number"}

// rivals are the sessions of another program, which is in the way of the store's transactions.
type rivals struct {
	t              *testing.T
	other, watcher *pgx.Conn
	ended          chan error // the end of what other does meanwhile
}

// newRivals creates the tables of setup.
func newRivals(t *testing.T, dsn string) *rivals {
	r := &rivals{t: t, other: connectOutside(t, dsn), watcher: connectOutside(t, dsn), ended: make(chan error, 1)}
	r.ended <- nil
	runOutside(t, r.other, setup)
	return r
}

// awaitWaiter waits until the session with a number, or any session if it is 0, waits for a lock in the database.
func (r *rivals) awaitWaiter(pid uint32) error {
	ctx, cancel := context.WithTimeout(r.t.Context(), maxWait)
	defer cancel()
	for waits := false; !waits; {
		const text = "SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT l.granted " +
			"AND a.datname = current_database() AND $1 IN (0, l.pid))"
		if err := r.watcher.QueryRow(ctx, text, int64(pid)).Scan(&waits); err != nil {
			return err
		}
	}
	return nil
}

// crossUpdates makes the other session change thing 1 and wait for thing 0, which the caller has changed. When it has thing
// 0, it commits.
func (r *rivals) crossUpdates() error {
	if _, err := r.other.Exec(r.t.Context(), "BEGIN; UPDATE thing SET text = 'theirs' WHERE number = 1"); err != nil {
		return err
	}
	go func() {
		_, err := r.other.Exec(r.t.Context(), "UPDATE thing SET text = 'theirs' WHERE number = 0; COMMIT")
		r.ended <- err
	}()
	return r.awaitWaiter(r.other.PgConn().PID())
}

// movePart moves the row of table part, and commits when another session waits for the row.
func (r *rivals) movePart() error {
	if _, err := r.other.Exec(r.t.Context(), "BEGIN; UPDATE part SET number = 1"); err != nil {
		return err
	}
	go func() {
		err := r.awaitWaiter(0)
		if err == nil {
			_, err = r.other.Exec(r.t.Context(), "UPDATE part SET number = 0; COMMIT")
		}
		r.ended <- err
	}()
	return nil
}

// ignore is for queries whose rows do not matter.
func ignore([]driver.Value) error { return nil }

// A transaction that the server aborts because of another one is run again, at most three times.
func TestATransactionThatAnotherAbortsIsRunAgain(t *testing.T) {
	t.Parallel()
	dsn := stores.Database(t)
	r := newRivals(t, dsn)
	// Only a superuser may set how soon the server looks for deadlocks.
	p := startPool(t, strings.Replace(dsn, "//understudy@", "//postgres@", 1)+"&deadlock_timeout=10ms")
	update := func(c db.Conn, number int64) error {
		return c.Query(updateThing, 0, []driver.Value{"ours", number}, ignore)
	}
	for _, failure := range []struct {
		code string
		work func(c db.Conn, interfere bool) error
	}{
		{"40P01", func(c db.Conn, interfere bool) error {
			err := update(c, 0)
			if err == nil && interfere {
				err = r.crossUpdates()
			}
			if err == nil {
				err = update(c, 1)
			}
			return err
		}},
		{"40001", func(c db.Conn, interfere bool) error {
			if interfere {
				if err := r.movePart(); err != nil {
					return err
				}
			}
			return c.Query(updatePart, 0, nil, ignore)
		}},
	} {
		for failures, want := range []int{1, 2, 3, 3} {
			runs, committed := 0, false
			err := p.Change(t.Context(), func(c db.Conn) error {
				runs++
				p.CallAfterCommit(func() { committed = true })
				if err := <-r.ended; err != nil { // otherwise this run can meet the transaction that aborted the last one
					return err
				}
				if runs > failures {
					r.ended <- nil
				}
				return failure.work(c, runs <= failures)
			})
			checktest.Equal(t, runs, want, "runs after %d times %s: %v", failures, failure.code, err)
			checktest.Equal(t, committed, failures < 3, "commit after %d times %s: %v", failures, failure.code, err)
			if failures < 3 {
				checktest.NoError(t, err, "%d times %s", failures, failure.code)
				continue
			}
			checktest.Equal(t, db.ClassOf(err), db.Aborted, "class of %v", err)
			told := db.WrapError(true, err, "set a value")
			checktest.Contains(t, told.Error(), failure.code, "the error")
			checktest.Equal(t, understudy.Status(told), http.StatusServiceUnavailable, "status of %v", told)
			checktest.Lacks(t, told.Error(), "UPDATE", "what a caller is told")
		}
	}
	checktest.NoError(t, <-r.ended, "the other session")
}

func TestATransactionIsNotRunAgainAfterItsDeadline(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	runs := 0
	err := db.RunAgain(ctx, func() error {
		runs++
		cancel()
		return &db.Error{Class: db.Aborted, Err: errors.New("aborted")}
	})
	checktest.Equal(t, runs, 1, "runs")
	checktest.Equal(t, db.ClassOf(err), db.Aborted, "class of %v", err)
}

// A statement outside a transaction is sent again.
func TestAStatementThatAnotherAbortsIsSentAgain(t *testing.T) {
	t.Parallel()
	dsn := stores.Database(t)
	r := newRivals(t, dsn)
	c := dial(t, dsn+"&default_transaction_isolation=repeatable%20read")
	runOutside(t, r.other, "BEGIN; UPDATE thing SET text = text || ', theirs'")
	<-r.ended
	go func() {
		err := r.awaitWaiter(c.raw.PID())
		if err == nil {
			_, err = r.other.Exec(t.Context(), "COMMIT")
		}
		r.ended <- err
	}()
	add := &db.Statement{Head: "UPDATE thing SET text = text || ', ours' WHERE number = 0"}
	checktest.NoError(t, c.Execute(add, 0), "a statement that met another transaction")
	checktest.NoError(t, <-r.ended, "the other session")
	checktest.Equal(t, readText(t, c, 0), "thing, theirs, ours", "text")
}

// Of many writers, each knows which of its statements were run, and none is run twice.
func TestAbortedStatementsOfManyWritersDoNothing(t *testing.T) {
	t.Parallel()
	const writers, each = 16, 20
	dsn := stores.Database(t)
	newRivals(t, dsn)
	add := &db.Statement{Head: "UPDATE thing SET number = number + 2 WHERE number % 2 = 0"}
	var done, aborted atomic.Int64
	var all sync.WaitGroup
	for range writers {
		c := dial(t, dsn+"&default_transaction_isolation=serializable")
		all.Go(func() {
			for range each {
				switch err := c.Execute(add, 0); {
				case err == nil:
					done.Add(1)
				case db.ClassOf(err) == db.Aborted:
					aborted.Add(1)
				default:
					t.Errorf("a writer gets %v", err)
				}
			}
		})
	}
	all.Wait()
	found, err := db.QueryRow(dial(t, dsn), selectText, []driver.Value{2 * done.Load()}, func([]driver.Value) {})
	checktest.NoError(t, err, "read")
	checktest.True(t, found, "the number is not twice that of the %d statements that were run", done.Load())
	t.Logf("%d statements were run, %d were aborted three times; the server aborted %d", done.Load(), aborted.Load(),
		strings.Count(pgtest.ReadLog(t, dsn), "could not serialize access due to concurrent update"))
}
