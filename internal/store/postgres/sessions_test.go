// Waits of sessions for each other.

package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"understudy/internal/checktest"
	"understudy/internal/store/locks"
)

// readReport reads the waits until done returns true.
func readReport(t *testing.T, e *Engine, done func(r *locks.Report) bool) (r *locks.Report, took time.Duration) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		start := time.Now()
		all, err := e.ListSessions(t.Context())
		checktest.MustNoError(t, err, "ListSessions")
		if r = locks.NewReport("test", all); done(r) {
			return r, time.Since(start)
		}
		if time.Now().After(end) {
			t.Fatalf("the report is %+v", r)
		}
	}
}

// startOutside runs a statement in another program's session until the test ends it.
func startOutside(t *testing.T, c *pgx.Conn, text string) (wait func()) {
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(ended)
		_, _ = c.Exec(ctx, text) // the test ends the statement
	}()
	return func() {
		cancel()
		<-ended
	}
}

// TestAHangThroughAPageIsNamed: a session has a cursor on a table, a VACUUM waits for the page of the cursor, and the session waits
// for the lock of the VACUUM. PostgreSQL itself finds no deadlock here.
func TestAHangThroughAPageIsNamed(t *testing.T) {
	t.Parallel()
	dsn := stores.Database(t)
	e, err := NewEngine(dsn)
	checktest.MustNoError(t, err, "NewEngine")
	cursor, vacuum := connectOutside(t, dsn), connectOutside(t, dsn)
	runOutside(t, cursor, "CREATE TABLE hang (a INT, body TEXT)")
	runOutside(t, cursor, "INSERT INTO hang SELECT n, 'Anna' FROM generate_series(1, 1000) n")
	runOutside(t, cursor, "DELETE FROM hang WHERE a % 2 = 0")
	// VACUUM waits for a page only if it has rows to freeze: rows older than every transaction of the server, also of other tests.
	for isOld, end := false, time.Now().Add(20*time.Second); !isOld; {
		err := cursor.QueryRow(t.Context(), "SELECT txid_snapshot_xmin(txid_current_snapshot()) > "+
			"(SELECT max(CAST(CAST(xmin AS TEXT) AS BIGINT)) FROM hang)").Scan(&isOld)
		checktest.MustNoError(t, err, "compare with the oldest transaction")
		checktest.True(t, time.Now().Before(end), "another transaction does not end")
	}
	runOutside(t, cursor, "BEGIN")
	runOutside(t, cursor, "DECLARE c CURSOR FOR SELECT * FROM hang WHERE body = 'Anna'")
	runOutside(t, cursor, "FETCH 1 FROM c")
	endVacuum := startOutside(t, vacuum, "VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) hang")
	defer endVacuum()
	vacuumPID, cursorPID := int64(vacuum.PgConn().PID()), int64(cursor.PgConn().PID())
	readReport(t, e, func(r *locks.Report) bool { return len(r.Sessions) == 2 && len(r.Sessions[1].Pinners) > 0 })
	endCursor := startOutside(t, cursor, "ALTER TABLE hang ADD COLUMN b INT")
	defer endCursor()

	best := time.Hour
	for range 5 {
		r, took := readReport(t, e, func(r *locks.Report) bool { return len(r.Sessions) == 3 })
		best = min(best, took)
		checktest.Equal(t, fmt.Sprint(r.End), fmt.Sprint([]int64{cursorPID}), "the session to end")
		top, below, again := r.Sessions[0], r.Sessions[1], r.Sessions[2]
		checktest.Equal(t, top.PID, cursorPID, "the first session")
		checktest.Equal(t, top.Wanted, "AccessExclusiveLock on hang", "the lock that it wants")
		checktest.Equal(t, top.Query, "ALTER TABLE hang ADD COLUMN b INT", "its query")
		checktest.Equal(t, below.PID, vacuumPID, "the second session")
		checktest.Equal(t, below.Wanted, "BufferPin of a page of hang", "what it wants")
		checktest.Equal(t, below.Query, "VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) hang", "its query")
		checktest.True(t, again.Again && again.PID == cursorPID, "the cycle is not closed: %+v", again)
		checktest.True(t, top.Seconds > 0 && below.Waited > 0, "ages: %+v, %+v", top, below)
	}
	checktest.True(t, best < 200*time.Millisecond, "the hang was named after %v, want at most 200 ms", best)

	other := connectOutside(t, dsn)
	runOutside(t, other, "SELECT pg_terminate_backend($1)", cursorPID)
	readReport(t, e, func(r *locks.Report) bool { return len(r.Sessions) == 0 })
}

func TestAWaitForALockIsNamed(t *testing.T) {
	t.Parallel()
	dsn := stores.Database(t)
	e, err := NewEngine(dsn)
	checktest.MustNoError(t, err, "NewEngine")
	holder, waiter := connectOutside(t, dsn), connectOutside(t, dsn)
	runOutside(t, holder, "BEGIN")
	runOutside(t, holder, "LOCK TABLE counter")
	end := startOutside(t, waiter, "UPDATE counter SET seal = 'Anna'")
	defer end()
	r, _ := readReport(t, e, func(r *locks.Report) bool { return len(r.Sessions) == 2 })
	checktest.Equal(t, fmt.Sprint(r.End), fmt.Sprint([]uint32{holder.PgConn().PID()}), "the session to end")
	checktest.Equal(t, r.Sessions[0].State, "idle in transaction", "the state of the holder")
	checktest.Equal(t, r.Sessions[1].Wanted, "RowExclusiveLock on counter", "the lock that the waiter wants")
	checktest.Equal(t, r.Sessions[1].Query, "UPDATE counter SET seal = …", "the query of the waiter")
}
