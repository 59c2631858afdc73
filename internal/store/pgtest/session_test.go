//go:build unix

package pgtest

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"understudy/internal/checktest"
)

func TestOpenSessionFailsItsTestByName(t *testing.T) {
	t.Parallel()
	leaks := map[string]struct {
		open func(t *testing.T, conn *pgx.Conn)
		want string
	}{
		"idle": {
			func(t *testing.T, conn *pgx.Conn) { execute(t, conn, "SELECT\n\t1") },
			`session \d+ is idle for \d+\.\d s; its last query: SELECT 1`,
		},
		"silent": {
			func(*testing.T, *pgx.Conn) {},
			`session \d+ is open and sent no query`,
		},
		"transaction": {
			func(t *testing.T, conn *pgx.Conn) { execute(t, conn, `BEGIN; INSERT INTO t1 DEFAULT VALUES`) },
			`session \d+ has a transaction open for \d+\.\d s; its last query: BEGIN; INSERT INTO t1 DEFAULT VALUES`,
		},
		"aborted transaction": {
			func(t *testing.T, conn *pgx.Conn) {
				_, err := conn.Exec(t.Context(), `BEGIN; SELECT 1/0`, pgx.QueryExecModeSimpleProtocol)
				checktest.True(t, err != nil, "a division by 0 is no error")
			},
			`session \d+ has a transaction open for \d+\.\d s; its last query: BEGIN; SELECT 1/0`,
		},
		"cursor": {
			func(t *testing.T, conn *pgx.Conn) {
				execute(t, conn, `BEGIN; DECLARE c CURSOR FOR SELECT * FROM countries; FETCH 1 FROM c`)
			},
			`session \d+ has a transaction open for .* FETCH 1 FROM c`,
		},
		"query": {
			func(t *testing.T, conn *pgx.Conn) { send(t, conn, `SELECT pg_sleep(600)`) },
			`session \d+ runs a query for \d+\.\d s: SELECT pg_sleep\(600\)`,
		},
		// The server does not notice that the client is gone while it runs the query.
		"query of a closed connection": {
			func(t *testing.T, conn *pgx.Conn) {
				send(t, conn, `SELECT pg_sleep(601)`)
				checktest.NoError(t, conn.PgConn().Conn().Close(), "close the socket")
			},
			`session \d+ runs a query for \d+\.\d s: SELECT pg_sleep\(601\)`,
		},
	}
	recorders, databases := map[string]*recorder{}, map[string]string{}
	for name, leak := range leaks {
		r := newRecorder(t, "TestWithALeak/"+name)
		conn := connect(t, pool.Database(r))
		recorders[name], databases[name] = r, conn.Config().Database
		leak.open(t, conn)
	}
	var ends sync.WaitGroup
	for _, r := range recorders {
		ends.Go(r.end)
	}
	ends.Wait()
	s, err := shared()
	checktest.MustNoError(t, err, "")
	super := connect(t, s.dsn(superuser, "postgres"))
	for name, leak := range leaks {
		failure := strings.Join(recorders[name].failures, "\n")
		checktest.Contains(t, failure, "pgtest: TestWithALeak/"+name+" ended with open sessions in its database:\nsession ", "the failure")
		if !regexp.MustCompile(leak.want).MatchString(failure) {
			t.Errorf("the failure is %s, want %s", failure, leak.want)
		}
		checktest.Equal(t, len(recorders[name].failures), 1, "the number of failures of %s", name)
		n := read[int](t, super, `SELECT (SELECT count(*) FROM pg_database WHERE datname = '`+databases[name]+`')
			+ (SELECT count(*) FROM pg_stat_activity WHERE datname = '`+databases[name]+`')`)
		checktest.Equal(t, n, 0, "the number of databases and sessions that %s left", name)
	}
}

// send sends a query, and returns when the server runs it.
func send(t *testing.T, conn *pgx.Conn, query string) {
	t.Helper()
	other := connect(t, conn.Config().ConnString())
	defer other.Close(t.Context())
	// The multi-result reader is not read: the query stays open.
	conn.PgConn().Exec(context.Background(), query)
	waitFor(t, "the query to run", func() bool {
		return read[bool](t, other, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE state = 'active' AND query = '`+query+`'
			AND datname = current_database())`)
	})
}

// The server learns only after the end of a test that the last connections are closed.
func TestSessionsThatEndInTimeAreNoFailure(t *testing.T) {
	t.Parallel()
	for range 20 {
		r := newRecorder(t, "inner")
		dsn := pool.Database(r)
		var conns []*pgx.Conn
		for range 5 {
			conns = append(conns, connect(t, dsn))
		}
		for _, conn := range conns {
			checktest.NoError(t, conn.PgConn().Conn().Close(), "close the socket without a word")
		}
		r.end()
		checktest.Equal(t, strings.Join(r.failures, "\n"), "", "the failures")
	}
}

// Tests of how a program connects again end all sessions of their database, the pool's among them.
func TestPoolConnectsAgainAfterItsSessionWasEnded(t *testing.T) {
	t.Parallel()
	own := Pool{Prepare: prepareSQL(schema)}
	names := map[string]bool{}
	for range 3 {
		r := newRecorder(t, "inner")
		conn := connect(t, own.Database(r))
		checktest.Equal(t, read[string](t, conn, contents), cleanContents, "the database")
		names[conn.Config().Database] = true
		execute(t, conn, fill)
		execute(t, conn, `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		checktest.NoError(t, conn.Close(t.Context()), "close")
		r.end()
		checktest.Equal(t, strings.Join(r.failures, "\n"), "", "the failures")
	}
	checktest.Equal(t, len(names), 1, "the number of databases")
}

func TestFailedTestShowsTheLogOfItsDatabase(t *testing.T) {
	t.Parallel()
	own := Pool{Prepare: prepareSQL(schema)}
	r := newRecorder(t, "inner")
	conn := connect(t, own.Database(r))
	other := connect(t, pool.Database(t))
	for c, query := range map[*pgx.Conn]string{conn: "SELECT\n1/0", other: `SELECT another_database`} {
		_, err := c.Exec(t.Context(), query)
		checktest.True(t, err != nil, "%s is no error", query)
	}
	checktest.NoError(t, conn.Close(t.Context()), "close")
	r.Errorf("wrong")
	r.end()
	logged := strings.Join(r.logged, "\n")
	checktest.Contains(t, logged, "ERROR:  division by zero", "the log")
	checktest.Contains(t, logged, "STATEMENT:  SELECT\nPostgreSQL: \t1/0", "the log")
	checktest.Lacks(t, logged, "another_database", "the log")
}

func TestPassedTestShowsNoLog(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, "inner")
	conn := connect(t, pool.Database(r))
	_, err := conn.Exec(t.Context(), `SELECT 1/0`)
	checktest.True(t, err != nil, "a division by 0 is no error")
	checktest.NoError(t, conn.Close(t.Context()), "close")
	r.end()
	checktest.Lacks(t, strings.Join(r.logged, "\n"), "division", "the log")
}
