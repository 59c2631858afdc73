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

func TestTheStoreUsesNoNotificationsSequencesOrAdvisoryLocks(t *testing.T) {
	server := pgtest.Server(t, "log_statement=all")
	admin, err := pgx.Connect(t.Context(), server)
	checktest.MustNoError(t, err, "connect")
	t.Cleanup(func() { checktest.NoError(t, admin.Close(context.Background()), "close") })
	_, err = admin.Exec(t.Context(), "CREATE DATABASE session")
	checktest.MustNoError(t, err, "create a database")
	dsn := strings.Replace(server, "/postgres?", "/session?", 1)
	d, err := store.Open(t.Context(), store.Options{Path: dsn, Specs: storetest.Specs(t), SaveTime: storetest.Patience})
	checktest.MustNoError(t, err, "open the store")
	t.Cleanup(func() { checktest.NoError(t, d.Close(), "close the store") })
	useStore(t, d)
	listProhibited(t, dsn)

	log := pgtest.ReadLog(t, server)
	for _, part := range []string{"BEGIN ISOLATION LEVEL", "INSERT INTO held", "INSERT INTO kv", "INSERT INTO job", "INSERT INTO node",
		"INSERT INTO annotation", "INSERT INTO erasing", "CREATE TABLE source"} {
		checktest.Contains(t, log, part, "the log of all statements")
	}
	for line := range strings.Lines(log) {
		// A statement of several lines goes on with a tab.
		if !strings.Contains(line, "LOG:  ") && !strings.HasPrefix(line, "\t") || strings.Contains(line, "LOG:  listening on") ||
			strings.Contains(line, "pg_get_functiondef") || strings.Contains(line, "pg_locks") || strings.Contains(line, "~*") {
			continue
		}
		found := prohibited.FindString(line)
		checktest.True(t, found == "", "a statement uses %s: %s", found, line)
	}
}

// listProhibited fails the test if a database has objects that are prohibited.
func listProhibited(t testing.TB, dsn string) {
	t.Helper()
	c, err := pgx.Connect(context.Background(), dsn)
	checktest.MustNoError(t, err, "connect")
	rows, err := c.Query(context.Background(), prohibitedObjects)
	checktest.MustNoError(t, err, "list objects")
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	checktest.MustNoError(t, err, "list objects")
	checktest.True(t, len(found) == 0, "the database has %q", found)
	checktest.NoError(t, c.Close(context.Background()), "close")
}

// useStore saves, reads and changes something of each sort.
func useStore(t *testing.T, d *store.DB) {
	w := storetest.NewWorld(1, 200)
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
