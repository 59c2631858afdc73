//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"understudy/internal/checktest"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv("PGTEST_CHILD"); mode != "" {
		runChild(mode)
	}
	goleak.VerifyTestMain(m)
}

// schema has what makes cleaning hard: foreign keys in a circle, rows of the migrations that others refer to, identity columns and
// sequences that have advanced, and a name that must be quoted.
const schema = `
CREATE TABLE countries (code text PRIMARY KEY, name text NOT NULL);
INSERT INTO countries VALUES ('ch', 'Switzerland'), ('ca', 'Canada');
CREATE TABLE accounts (id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY, name text NOT NULL,
	country text NOT NULL REFERENCES countries DEFERRABLE, contact bigint);
CREATE TABLE contacts (id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY, account bigint NOT NULL REFERENCES accounts DEFERRABLE);
ALTER TABLE accounts ADD FOREIGN KEY (contact) REFERENCES contacts DEFERRABLE;
CREATE TABLE addresses (contact bigint NOT NULL REFERENCES contacts ON DELETE CASCADE DEFERRABLE, line text NOT NULL);
CREATE TABLE deletions (table_name text NOT NULL);
CREATE SEQUENCE numbers START 100;
SELECT nextval('numbers');
CREATE SCHEMA billing;
CREATE TABLE billing."Order 'lines'" (id serial PRIMARY KEY, account bigint REFERENCES accounts DEFERRABLE,
	twice int GENERATED ALWAYS AS (id * 2) STORED);
INSERT INTO billing."Order 'lines'" DEFAULT VALUES;
DO $$ BEGIN FOR i IN 1..53 LOOP EXECUTE format('CREATE TABLE t%s (id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
	parent bigint REFERENCES %s DEFERRABLE, note text)', i, CASE i WHEN 1 THEN 'accounts' ELSE 't' || i - 1 END); END LOOP; END $$;
`

// trigger writes rows when rows are deleted.
const trigger = `
CREATE FUNCTION note_deletion() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO deletions VALUES (TG_TABLE_NAME); RETURN OLD; END $$;
CREATE TRIGGER note_deletion BEFORE DELETE ON contacts FOR EACH ROW EXECUTE FUNCTION note_deletion();
`

// fill writes to every sort of table and sequence, and changes the rows of the migrations.
const fill = `
INSERT INTO countries VALUES ('de', 'Germany');
UPDATE countries SET name = 'Schweiz' WHERE code = 'ch';
INSERT INTO accounts (name, country) VALUES ('A', 'ch'), ('B', 'de');
INSERT INTO contacts (account) SELECT id FROM accounts;
UPDATE accounts SET contact = (SELECT id FROM contacts WHERE account = accounts.id);
INSERT INTO addresses SELECT id, 'Main street' FROM contacts;
DELETE FROM billing."Order 'lines'";
INSERT INTO billing."Order 'lines'" (account) SELECT id FROM accounts;
INSERT INTO t1 (parent) SELECT id FROM accounts;
INSERT INTO t2 (parent) SELECT id FROM t1;
SELECT nextval('numbers');
`

// contents lists all that a test can find in a database.
const contents = `
SELECT concat_ws(' | ', (SELECT string_agg(c::text, ',' ORDER BY code) FROM countries c), (SELECT count(*) FROM accounts),
	(SELECT count(*) FROM contacts), (SELECT count(*) FROM addresses), (SELECT count(*) FROM deletions), (SELECT count(*) FROM t1),
	(SELECT count(*) FROM t2), (SELECT string_agg(o::text, ',') FROM billing."Order 'lines'" o), nextval('numbers'),
	nextval('accounts_id_seq'), nextval('contacts_id_seq'), nextval('t1_id_seq'),
	nextval(pg_get_serial_sequence($$billing."Order 'lines'"$$, 'id')))`

const cleanContents = `(ca,Canada),(ch,Switzerland) | 0 | 0 | 0 | 0 | 0 | 0 | (1,,2) | 101 | 1 | 1 | 1 | 2`

// prepareSQL returns a function for Pool.Prepare that executes a script.
func prepareSQL(script string) func(context.Context, string) error {
	return func(ctx context.Context, dsn string) error {
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, script)
		return errors.Join(err, conn.Close(ctx))
	}
}

// pool is the pool of most tests.
var pool = Pool{Prepare: prepareSQL(schema + trigger)}

// connect opens a connection that is closed when the test ends.
func connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func execute(t testing.TB, conn *pgx.Conn, script string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), script, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
}

// read returns the one value that a query returns.
func read[V any](t testing.TB, conn *pgx.Conn, query string) (value V) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), query).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

// recorder is a test within a test: it keeps what fails and what is logged.
type recorder struct {
	testing.TB
	name             string
	failures, logged []string
	cleanups         []func()
}

func newRecorder(t testing.TB, name string) *recorder { return &recorder{TB: t, name: name} }

func (r *recorder) Helper()          {}
func (r *recorder) Name() string     { return r.name }
func (r *recorder) Failed() bool     { return len(r.failures) > 0 }
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}
func (r *recorder) Error(args ...any) { r.failures = append(r.failures, fmt.Sprint(args...)) }
func (r *recorder) Fatal(args ...any) { r.TB.Fatal(args...) }
func (r *recorder) Logf(format string, args ...any) {
	r.logged = append(r.logged, fmt.Sprintf(format, args...))
}

// end runs the cleanups, as the end of a test does.
func (r *recorder) end() {
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
	r.cleanups = nil
}

func TestEveryTestHasACleanDatabaseToItself(t *testing.T) {
	t.Parallel()
	for i := range 16 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			for range 3 {
				t.Run("again", func(t *testing.T) {
					conn := connect(t, pool.Database(t))
					checktest.MustEqual(t, read[string](t, conn, contents), cleanContents, "the new database")
					execute(t, conn, fill)
					checktest.Equal(t, read[int](t, conn, `SELECT count(*) FROM accounts`), 2, "the number of accounts")
				})
			}
		})
	}
}

func TestOneTestCanHaveTwoDatabases(t *testing.T) {
	t.Parallel()
	first, second := connect(t, pool.Database(t)), connect(t, pool.Database(t))
	execute(t, first, fill)
	checktest.Equal(t, read[string](t, second, contents), cleanContents, "the second database")
}

func TestReturnedDatabaseIsUsedAgainClean(t *testing.T) {
	t.Parallel()
	own := Pool{Prepare: prepareSQL(schema + trigger)}
	names := map[string]bool{}
	for range 4 {
		r := newRecorder(t, "inner")
		conn := connect(t, own.Database(r))
		checktest.Equal(t, read[string](t, conn, contents), cleanContents, "the database")
		names[read[string](t, conn, `SELECT current_database()`)] = true
		execute(t, conn, fill)
		checktest.NoError(t, conn.Close(t.Context()), "close")
		r.end()
		checktest.Equal(t, strings.Join(r.failures, "\n"), "", "the failures")
		checktest.Equal(t, strings.Join(r.logged, "\n"), "", "the log")
	}
	checktest.Equal(t, len(names), 1, "the number of databases")
}

func TestLargeTableIsVacuumed(t *testing.T) {
	t.Parallel()
	own := Pool{Prepare: prepareSQL(schema + trigger)}
	r := newRecorder(t, "inner")
	conn := connect(t, own.Database(r))
	execute(t, conn, `INSERT INTO t1 (note) SELECT repeat('x', 100) FROM generate_series(1, 10000)`)
	checktest.True(t, read[int](t, conn, `SELECT pg_table_size('t1')`) > vacuumSize, "the table is too small for this test")
	checktest.NoError(t, conn.Close(t.Context()), "close")
	r.end()
	conn = connect(t, own.Database(t))
	if size := read[int](t, conn, `SELECT pg_relation_size('t1')`); size != 0 {
		t.Errorf("the cleaned table has %d bytes", size)
	}
}

// What a test changes in a schema cannot be undone by deleting rows.
func TestDatabaseWithAChangedSchemaIsReplaced(t *testing.T) {
	t.Parallel()
	own := Pool{Prepare: prepareSQL(schema + trigger)}
	for _, change := range []string{
		`ALTER TABLE accounts ADD COLUMN age int`,
		`DROP TABLE t53`,
		`CREATE TABLE another (id int)`,
		`ALTER TABLE accounts ALTER COLUMN name DROP NOT NULL`,
		`ALTER TABLE accounts ALTER COLUMN name SET DEFAULT 'x'`,
		`CREATE INDEX ON accounts (name)`,
		`ALTER TABLE contacts DISABLE TRIGGER note_deletion`,
		`DROP TRIGGER note_deletion ON contacts`,
		`CREATE FUNCTION one() RETURNS int LANGUAGE sql AS 'SELECT 1'`,
		`CREATE TYPE color AS ENUM ('red')`,
		`CREATE SCHEMA another`,
		`ALTER SEQUENCE numbers INCREMENT 5`,
		`CREATE VIEW names AS SELECT name FROM accounts`,
		`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET work_mem = ''1MB''', current_database()); END $$`,
		`SELECT lo_create(0)`,
		`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;
			CREATE TRIGGER refuse BEFORE DELETE ON accounts FOR EACH STATEMENT EXECUTE FUNCTION refuse()`,
	} {
		r := newRecorder(t, "inner")
		conn := connect(t, own.Database(r))
		execute(t, conn, change)
		checktest.NoError(t, conn.Close(t.Context()), "close")
		r.end()
		r = newRecorder(t, "next")
		conn = connect(t, own.Database(r))
		checktest.Equal(t, read[string](t, conn, contents), cleanContents, "after %s the database", change)
		checktest.Contains(t, strings.Join(r.logged, "\n"), " is replaced: ", "after %s the log", change)
		checktest.NoError(t, conn.Close(t.Context()), "close")
		r.end()
		checktest.Equal(t, strings.Join(r.failures, "\n"), "", "after %s the failures", change)
	}
}

// Temporary tables and statistics are no changes of the schema.
func TestDatabaseIsKeptAfterTemporaryTablesAndAnalyze(t *testing.T) {
	t.Parallel()
	own := Pool{Prepare: prepareSQL(schema + trigger)}
	r := newRecorder(t, "inner")
	conn := connect(t, own.Database(r))
	execute(t, conn, fill)
	execute(t, conn, `CREATE TEMPORARY TABLE rows (id int); INSERT INTO rows VALUES (1)`)
	execute(t, conn, `ANALYZE`)
	execute(t, conn, `VACUUM`)
	name := read[string](t, conn, `SELECT current_database()`)
	checktest.NoError(t, conn.Close(t.Context()), "close")
	r.end()
	r = newRecorder(t, "next")
	conn = connect(t, own.Database(r))
	checktest.Equal(t, read[string](t, conn, `SELECT current_database()`), name, "the name of the next database")
	checktest.Equal(t, read[string](t, conn, contents), cleanContents, "the next database")
	checktest.NoError(t, conn.Close(t.Context()), "close")
	r.end()
}

func TestForeignKeysThatCannotBeDeferredAreRefused(t *testing.T) {
	t.Parallel()
	for clause, want := range map[string]bool{
		``:                                 true,
		`DEFERRABLE INITIALLY DEFERRED`:    true,
		`ON DELETE RESTRICT DEFERRABLE`:    true,
		`DEFERRABLE INITIALLY IMMEDIATE`:   false,
		`ON DELETE SET NULL DEFERRABLE`:    false,
		`ON UPDATE RESTRICT DEFERRABLE`:    false,
		`ON DELETE NO ACTION DEFERRABLE`:   false,
		`MATCH FULL ON DELETE RESTRICT`:    true,
		`ON DELETE CASCADE NOT DEFERRABLE`: true,
	} {
		own := Pool{Prepare: prepareSQL(`CREATE TABLE a (id int PRIMARY KEY);
			CREATE TABLE b (a int CONSTRAINT to_a REFERENCES a ` + clause + `)`)}
		db, _, err := own.take(t.Context())
		if db != nil {
			checktest.NoError(t, db.drop(t.Context()), "drop")
		}
		if !want {
			checktest.NoError(t, err, "%s", clause)
			continue
		}
		if err == nil {
			t.Errorf("REFERENCES a %s is not refused", clause)
			continue
		}
		checktest.Contains(t, err.Error(), "to_a of table b: FOREIGN KEY (a) REFERENCES a(id)", "the error of %s", clause)
	}
}

func TestFailedPreparationFailsEveryTest(t *testing.T) {
	t.Parallel()
	own := Pool{Prepare: prepareSQL(`CREATE TABLE a (id unknown_type)`)}
	for range 2 {
		_, _, err := own.take(t.Context())
		checktest.MustTrue(t, err != nil, "a failed preparation is no error")
		checktest.Contains(t, err.Error(), `pgtest: prepare the template: ERROR: type "unknown_type" does not exist`, "the error")
	}
}

func TestPreparationThatLeavesASessionOpenIsRefused(t *testing.T) {
	t.Parallel()
	own := Pool{Prepare: func(ctx context.Context, dsn string) error {
		connect(t, dsn)
		return nil
	}}
	_, _, err := own.take(t.Context())
	checktest.MustTrue(t, err != nil, "an open session is no error")
	checktest.Contains(t, err.Error(), "pgtest: Prepare left sessions open:\nsession ", "the error")
}

func TestZeroPoolGivesADatabaseWithoutTables(t *testing.T) {
	t.Parallel()
	var own Pool
	conn := connect(t, own.Database(t))
	n := read[int](t, conn, `SELECT count(*) FROM pg_class WHERE oid >= 16384`)
	checktest.Equal(t, n, 0, "the number of relations")
}

// The owner of most databases is no superuser.
func TestTestsAreNoSuperusers(t *testing.T) {
	t.Parallel()
	conn := connect(t, pool.Database(t))
	checktest.Equal(t, read[string](t, conn, `SHOW is_superuser`), "off", "is_superuser")
}

// BenchmarkTake measures how long a test waits for a database in which the test before wrote to 5 of 60 tables.
func BenchmarkTake(b *testing.B) {
	own := Pool{Prepare: prepareSQL(schema)}
	var times []time.Duration
	for range b.N {
		began := time.Now()
		db, _, err := own.take(b.Context())
		times = append(times, time.Since(began))
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		conn, err := pgx.Connect(b.Context(), db.dsn)
		if err != nil {
			b.Fatal(err)
		}
		execute(b, conn, `INSERT INTO accounts (name, country) SELECT 'A', 'ch' FROM generate_series(1, 20);
			INSERT INTO contacts (account) SELECT id FROM accounts; INSERT INTO t1 (parent) SELECT id FROM accounts;
			INSERT INTO t2 (parent) SELECT id FROM t1; INSERT INTO t3 (parent) SELECT id FROM t2`)
		if err := conn.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
		own.release(b, db, 0)
		b.StartTimer()
	}
	reportTimes(b, times)
}

// BenchmarkCopy measures how long a new database of 60 tables takes.
func BenchmarkCopy(b *testing.B) {
	own := Pool{Prepare: prepareSQL(schema)}
	var times []time.Duration
	for range b.N {
		began := time.Now()
		db, _, err := own.take(b.Context())
		times = append(times, time.Since(began))
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := db.drop(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	reportTimes(b, times)
}

// reportTimes reports two percentiles in milliseconds, without the first time, which is that of starting.
func reportTimes(b *testing.B, times []time.Duration) {
	if len(times) < 2 {
		return
	}
	times = slices.Sorted(slices.Values(times[1:]))
	for _, p := range []int{50, 95} {
		b.ReportMetric(float64(times[len(times)*p/100].Microseconds())/1000, fmt.Sprintf("p%d-ms", p))
	}
}
