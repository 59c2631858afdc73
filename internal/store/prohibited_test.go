// What the store must never use on PostgreSQL. NOTIFY takes one lock for the whole server until its transaction is durable.
// Numbers of a sequence become visible out of order. PgBouncer's transaction mode breaks advisory locks.

package store_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/erase"
	"understudy/internal/store/nodes"
	"understudy/internal/store/pgtest"
	"understudy/internal/store/storetest"
)

// prohibited matches what no statement and no function may contain.
var prohibited = regexp.MustCompile(`(?i)\b(notify|pg_notify|listen|unlisten|pg_(try_)?advisory\w*|nextval|setval|currval|lastval)\b`)

// prohibitedObjects lists the objects of a database that number rows or contain what is prohibited. The table of goose is
// written by migrations alone, and nobody pages by its numbers.
const prohibitedObjects = `
	SELECT 'sequence ' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind = 'S' AND n.nspname !~ '^pg_' AND c.relname <> 'goose_db_version_id_seq'
	UNION ALL SELECT 'identity column ' || a.attname || ' of ' || c.relname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
		WHERE a.attidentity <> '' AND c.relname <> 'goose_db_version'
	UNION ALL SELECT 'advisory lock of ' || pid FROM pg_locks WHERE locktype = 'advisory'
	UNION ALL SELECT 'function ' || text
		FROM (SELECT CASE WHEN prokind IN ('f', 'p') AND oid >= 16384 THEN pg_get_functiondef(oid) END AS text FROM pg_proc) f
		WHERE text ~* '\y(notify|pg_notify|nextval|pg_(try_)?advisory\w*)\y'
	UNION ALL SELECT 'trigger ' || tgname FROM pg_trigger WHERE NOT tgisinternal`

// violations are statements that the store must not use. Those of objects make what prohibitedObjects lists.
var violations = struct{ statements, objects []string }{
	[]string{
		"NOTIFY poke", "SELECT pg_notify('poke', '')", "BEGIN; INSERT INTO numbered DEFAULT VALUES;\n\tnotify poke; COMMIT", "LISTEN poke",
		"UNLISTEN *",
		"SELECT\n\tnextval('numbers')", "SELECT setval('numbers', 7)", "SELECT currval('numbers')", "SELECT lastval()",
		"SELECT pg_advisory_xact_lock(1)", "SELECT pg_try_advisory_xact_lock(1)", "SELECT pg_advisory_unlock_all()",
		"PREPARE stored AS SELECT pg_try_advisory_lock_shared(2)",
	},
	[]string{
		"CREATE SEQUENCE own", "CREATE TABLE serial (number BIGSERIAL)", "CREATE TABLE identity (number BIGINT GENERATED ALWAYS AS IDENTITY)",
		"SELECT pg_advisory_lock(3)", "CREATE TRIGGER t AFTER INSERT ON numbered EXECUTE FUNCTION harmless()",
		"CREATE FUNCTION hidden() RETURNS void LANGUAGE sql AS 'NOTIFY poke'",
		"CREATE PROCEDURE locks() LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(4); END'",
		"CREATE FUNCTION counts() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN nextval('numbers'); END $$",
	},
}

func TestTheStoreUsesNoNotificationsSequencesOrAdvisoryLocks(t *testing.T) {
	server := pgtest.Server(t, "log_statement=all")
	dsn := createDatabase(t, server, "session")
	d, err := store.Open(t.Context(), store.Options{Path: dsn, Specs: storetest.Specs(t), SaveTime: storetest.Patience})
	checktest.MustNoError(t, err, "open the store")
	t.Cleanup(func() { checktest.NoError(t, d.Close(), "close the store") })
	useStore(t, d, 200)
	log := pgtest.ReadLog(t, server)
	for _, part := range []string{"BEGIN ISOLATION LEVEL", "INSERT INTO held", "INSERT INTO kv", "INSERT INTO job", "INSERT INTO node",
		"INSERT INTO annotation", "INSERT INTO erasing", "CREATE TABLE source"} {
		checktest.Contains(t, log, part, "the log of all statements")
	}
	found := findProhibited(log)
	checktest.True(t, len(found) == 0, "the store runs %q", found)
	objects := listProhibited(t, connectTo(t, dsn))
	checktest.True(t, len(objects) == 0, "the database has %q", objects)
	t.Run("each violation is found", func(t *testing.T) { testViolations(t, server) })
}

// testViolations makes each violation in another database of the server, and fails the test if one is not found.
func testViolations(t *testing.T, server string) {
	c := connectTo(t, createDatabase(t, server, "violations"))
	run := func(text string, args ...any) (found []string) {
		t.Helper()
		before := len(pgtest.ReadLog(t, server))
		_, err := c.Exec(t.Context(), text, args...)
		checktest.MustNoError(t, err, "%s", text)
		return findProhibited(pgtest.ReadLog(t, server)[before:])
	}
	run("CREATE TABLE numbered (number INT); CREATE FUNCTION harmless() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
	checktest.Equal(t, len(listProhibited(t, c)), 0, "prohibited objects before the first violation")
	for _, text := range append([]string{"CREATE SEQUENCE numbers"}, violations.objects...) {
		before := listProhibited(t, c)
		run(text)
		checktest.True(t, len(listProhibited(t, c)) > len(before), "%s is not found", text)
	}
	for _, text := range violations.statements {
		checktest.Equal(t, len(run(text)), 1, "lines with a violation after %s", text)
	}
	checktest.Equal(t, len(run("SELECT pg_try_advisory_lock($1)", 5)), 1, "lines with a violation in a statement with a parameter")
	found := run("SELECT 'a notification', number FROM numbered -- LISTENER, locks, nextvalue")
	checktest.True(t, len(found) == 0, "a harmless statement is refused: %q", found)
}

// createDatabase creates a database and returns its DSN.
func createDatabase(t *testing.T, server, name string) (dsn string) {
	t.Helper()
	_, err := connectTo(t, server).Exec(t.Context(), "CREATE DATABASE "+name)
	checktest.MustNoError(t, err, "create a database")
	return strings.Replace(server, "/postgres?", "/"+name+"?", 1)
}

// connectTo opens a session that ends with the test.
func connectTo(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	checktest.MustNoError(t, err, "connect")
	t.Cleanup(func() { checktest.NoError(t, c.Close(context.Background()), "close") })
	return c
}

// findProhibited returns the lines of a server's log whose statements use what is prohibited.
func findProhibited(log string) (found []string) {
	for line := range strings.Lines(log) {
		// A statement of several lines goes on with a tab.
		isStatement := strings.Contains(line, "LOG:  ") && !strings.Contains(line, "LOG:  listening on") || strings.HasPrefix(line, "\t")
		if isStatement && prohibited.MatchString(line) {
			found = append(found, line)
		}
	}
	return found
}

// listProhibited returns the objects of a database that are prohibited.
func listProhibited(t *testing.T, c *pgx.Conn) []string {
	t.Helper()
	rows, err := c.Query(context.Background(), prohibitedObjects)
	checktest.MustNoError(t, err, "list objects")
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	checktest.MustNoError(t, err, "list objects")
	return found
}

// useStore saves, reads and changes some records, and something of each other sort.
func useStore(t *testing.T, d *store.DB, records int) {
	w := storetest.NewWorld(1, records)
	for _, change := range []func(){func() {}, func() { w.Changed[3]++ }, func() { w.Gone[4] = true }} {
		change()
		for _, p := range storetest.Pages(w, 50, storetest.Epoch.Add(time.Duration(len(w.Changed)+len(w.Gone))*time.Hour)) {
			_, err := d.Save(t.Context(), p)
			checktest.MustNoError(t, err, "save %s", p.Key)
			_, err = d.ReadPage(t.Context(), p.Key)
			checktest.NoError(t, err, "read %s", p.Key)
		}
	}
	ctx, id := t.Context(), w.ID(5)
	checktest.NoError(t, d.Index.Flush(ctx), "flush the indexes")
	checktest.NoError(t, d.Annotations.AddNote(ctx, storetest.Source, "calls", id, understudy.Note{Text: "a note", By: "robin"}), "add a note")
	checktest.NoError(t, d.Annotations.RemoveNote(ctx, storetest.Source, "calls", id, 1), "remove a note")
	for _, n := range []nodes.Node{{ID: "a"}, {ID: "b"}, {ID: "a"}} {
		_, err := d.Nodes.Renew(ctx, n)
		checktest.NoError(t, err, "renew a lease")
	}
	_, err := d.Nodes.Claim(ctx, 7, "a")
	checktest.NoError(t, err, "claim")
	checktest.NoError(t, d.Nodes.EndClaim(ctx, 7, "a"), "end a claim")
	checktest.NoError(t, d.Nodes.Remove(ctx, "b"), "remove a node")
	for own := range 8 { // each call has one of these numbers
		_, _, err := d.Eraser.EraseNumber(ctx, storetest.Source, fmt.Sprintf("+1415555010%d", own))
		checktest.NoError(t, err, "erase a number")
	}
	_, err = d.Eraser.EraseListed(ctx, erase.Job{})
	checktest.NoError(t, err, "erase what is listed")
	checktest.NoError(t, d.KV.SetValue(ctx, "walk", []byte("page 7")), "set a value")
	found, err := d.KV.Delete(ctx, "walk")
	checktest.True(t, found && err == nil, "delete a value: %t, %v", found, err)
	_, err = d.Jobs.AddJobs(ctx, storetest.Epoch, understudy.Job{Kind: "work", MaxAttempts: 3}, understudy.Job{Kind: "work", MaxAttempts: 3})
	checktest.NoError(t, err, "add jobs")
	claimed, err := d.Jobs.ClaimJobs(ctx, understudy.Claim{Worker: "w", Now: storetest.Epoch, Limit: 2, Priority: understudy.PriorityBulk,
		Weight: 1 << 40, Kinds: []understudy.ClaimKind{{Name: "work", MaxRunning: 100, Lease: time.Minute}}})
	checktest.NoError(t, err, "claim jobs")
	checktest.MustEqual(t, len(claimed.Jobs), 2, "claimed jobs")
	for _, j := range claimed.Jobs {
		_, err := d.Jobs.EndJob(ctx, understudy.JobResult{Number: j.Number, Fence: j.Fence, At: storetest.Epoch, State: understudy.JobDone})
		checktest.NoError(t, err, "end a job")
	}
	checktest.NoError(t, d.Evictor.Evict(ctx), "evict")
	storetest.VerifyDB(t, d)
}
