package store_test

import (
	"database/sql"
	"errors"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// TestForgottenRecordIsNotBroughtBackByAnotherProcess: while a process forgets a record, another saves a page that shows the record,
// after the pages that show it were searched. Afterwards neither the page nor the record is stored.
func TestForgottenRecordIsNotBroughtBackByAnotherProcess(t *testing.T) {
	dsn := storetest.Database(t)
	open := func() *store.DB {
		db, err := store.Open(t.Context(), store.Options{Path: dsn, Specs: storetest.Specs(t), SaveTime: storetest.Patience})
		checktest.MustNoError(t, err, "open")
		t.Cleanup(func() { checktest.NoError(t, db.Close(), "close") })
		return db
	}
	a, b := open(), open()
	first, late := storetest.ItemsPage("item", 3, 1), storetest.ItemsPage("item", 2, 1)
	late.Key.URI += "&late"
	for _, db := range []*store.DB{a, b} { // both know the kind then, and save a page in one transaction
		_, err := db.Save(t.Context(), first)
		checktest.MustNoError(t, err, "save")
	}
	lock, err := sql.Open("pgx", dsn)
	checktest.MustNoError(t, err, "open a connection")
	defer lock.Close()
	tx, err := lock.BeginTx(t.Context(), nil)
	checktest.MustNoError(t, err, "begin")
	_, err = tx.ExecContext(t.Context(), "SELECT 1 FROM counter FOR UPDATE")
	checktest.MustNoError(t, err, "lock")
	awaitWaiting := func(n int) { // until n transactions wait for a lock
		t.Helper()
		for waiting := 0; waiting < n && t.Context().Err() == nil; {
			err := lock.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND "+
				"datname = current_database()").Scan(&waiting)
			checktest.MustNoError(t, err, "count who waits")
		}
	}
	forgotten, saved := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := b.Save(t.Context(), late)
		saved <- err
	}()
	awaitWaiting(1)
	go func() {
		_, _, err := a.ForgetRecord(t.Context(), "items", "items", "item_0")
		forgotten <- err
	}()
	awaitWaiting(2) // it has found the pages, and deletes them after the other process has saved its page
	checktest.MustNoError(t, tx.Commit(), "unlock")
	checktest.MustNoError(t, <-saved, "save at the other process")
	checktest.MustNoError(t, <-forgotten, "forget")
	for name, db := range map[string]*store.DB{"first": a, "second": b} {
		_, err := db.ReadPage(t.Context(), late.Key)
		checktest.True(t, errors.Is(err, understudy.ErrNotFound), "the page at the %s process: %v", name, err)
		_, err = db.Record(t.Context(), "items", "items", "items", "item_0")
		checktest.True(t, errors.Is(err, understudy.ErrNotFound), "the record at the %s process: %v", name, err)
		_, err = db.Record(t.Context(), "items", "items", "items", "item_1")
		checktest.NoError(t, err, "another record at the %s process", name)
	}
}
