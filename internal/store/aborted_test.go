// A save that the server aborts because of another transaction.

package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/pgtest"
	"understudy/internal/store/storetest"
)

// A save in a deadlock begins anew and stores the page once, with numbers without gaps.
func TestASaveThatAnotherTransactionAbortsIsRunAgain(t *testing.T) {
	// Only a superuser may set how soon the server looks for deadlocks.
	dsn := strings.Replace(storetest.Database(t), "//understudy@", "//postgres@", 1)
	ctx, cancel := context.WithTimeout(t.Context(), storetest.Patience)
	defer cancel()
	d, err := store.Open(ctx, store.Options{Path: dsn + "&deadlock_timeout=10ms", Specs: storetest.Specs(t), SaveTime: storetest.Patience})
	checktest.MustNoError(t, err, "open the store")
	t.Cleanup(func() { checktest.NoError(t, d.Close(), "close the store") })
	w := storetest.NewWorld(1, 100)
	first, _ := w.List(50, 0, 0, storetest.Epoch)
	_, err = d.Save(ctx, first)
	checktest.MustNoError(t, err, "save the first page")
	run := func(c *pgx.Conn, text string) {
		t.Helper()
		_, err := c.Exec(ctx, text)
		checktest.MustNoError(t, err, "%s", text)
	}
	rival, gate, watcher := connectTo(t, dsn), connectTo(t, dsn), connectTo(t, dsn)
	awaitWaiters := func(n int) {
		t.Helper()
		const count = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
		for waiting := 0; waiting < n; {
			checktest.MustNoError(t, watcher.QueryRow(ctx, count).Scan(&waiting), "count the sessions that wait")
		}
	}
	run(rival, "BEGIN; SELECT number FROM kind FOR UPDATE")
	run(gate, "BEGIN; LOCK TABLE page IN SHARE MODE")
	second, _ := w.List(50, 1, 50, storetest.Epoch.Add(time.Minute))
	saved := make(chan error, 1)
	go func() {
		result, err := d.Save(ctx, second)
		if err == nil {
			checktest.Equal(t, len(result.Changes), 50, "changes of the save")
		}
		saved <- err
	}()
	awaitWaiters(1) // the save has the row of the counters, and waits for the gate
	locked := make(chan error, 1)
	go func() {
		_, err := rival.Exec(ctx, "SELECT position FROM counter FOR UPDATE; COMMIT")
		locked <- err
	}()
	awaitWaiters(2)
	run(gate, "COMMIT") // the save goes on to the row of the kind, which the rival has: a deadlock
	checktest.NoError(t, <-locked, "the other transaction")
	checktest.MustNoError(t, <-saved, "the save")
	changes, err := d.ReadChanges(ctx, storetest.Source, 0, store.MaxChanges)
	checktest.NoError(t, err, "read the changes")
	checktest.MustEqual(t, len(changes), 100, "changes")
	checktest.Equal(t, changes[99].N, 100, "number of the last change")
	storetest.VerifyDB(t, d)
	checktest.Contains(t, pgtest.ReadLog(t, dsn), "deadlock detected", "the log of the server")
}
