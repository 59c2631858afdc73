//go:build unix

package pgtest

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"understudy/internal/checktest"
)

// readSession returns the number of the server's session that runs the statement.
func readSession(t *testing.T, conn *pgx.Conn) int {
	t.Helper()
	return read[int](t, conn, `SELECT pg_backend_pid()`)
}

// A session belongs to a client only during a transaction. Sessions that PgBouncer keeps open are no failure of the test.
func TestBouncerGivesEachTransactionAnotherSession(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, "inner")
	dsn := Bouncer(r, pool.Database(r), "default_pool_size=2", "server_idle_timeout=600")
	a, b := connect(t, dsn+"&default_query_exec_mode=exec"), connect(t, dsn+"&default_query_exec_mode=exec")
	execute(t, a, `BEGIN`)
	first := readSession(t, a)
	second := readSession(t, b)
	checktest.True(t, first != second, "two clients have the same session in a transaction")
	checktest.Equal(t, readSession(t, a), first, "session inside a transaction")
	execute(t, a, `COMMIT`)
	seen := map[int]bool{}
	for range 4 {
		seen[readSession(t, b)] = true
	}
	checktest.True(t, seen[first] && seen[second] && len(seen) == 2, "transactions of one client use the sessions %v", seen)
	checktest.NoError(t, a.Close(t.Context()), "close")
	checktest.NoError(t, b.Close(t.Context()), "close")
	r.end()
	checktest.Equal(t, len(r.failures), 0, "failures %q", r.failures)
}

func TestBouncerThatDoesNotStartSaysWhy(t *testing.T) {
	t.Parallel()
	_, _, err := startBouncer(strings.Replace(pool.Database(t), "/test_", "/%5B", 1))
	checktest.MustTrue(t, err != nil, "a wrong setting is no error")
	checktest.Contains(t, err.Error(), "FATAL", "the error")
}
