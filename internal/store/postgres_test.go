// The suites on PostgreSQL, and on two handles of one PostgreSQL database.

package store_test

import (
	"io"
	"strconv"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/sample"
	"understudy/internal/store"
	"understudy/internal/store/jobs"
	"understudy/internal/store/kv"
	"understudy/internal/store/pgtest"
	"understudy/internal/store/storetest"
)

// openPostgres opens a store in an empty PostgreSQL database.
func openPostgres(t testing.TB, o store.Options) tested {
	t.Helper()
	o.Path, o.SaveTime = storetest.Database(t), storetest.Patience
	d, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return tested{d, d.Eraser, d.Verifier}
}

func TestPostgres(t *testing.T) {
	storetest.FewerChecks(t, 25)
	storetest.Run(t, func(t testing.TB) storetest.Store { return openPostgres(t, store.Options{Specs: storetest.Specs(t)}) })
}

func TestPostgresSeek(t *testing.T) {
	storetest.FewerChecks(t, 25)
	storetest.RunSeek(t, func(t testing.TB) storetest.Seeker { return openPostgres(t, store.Options{Specs: storetest.Specs(t)}) })
}

func TestPostgresFindsText(t *testing.T) {
	storetest.FewerChecks(t, 25)
	storetest.RunText(t, func(t testing.TB) storetest.Seeker { return openPostgres(t, store.Options{Specs: storetest.Specs(t)}) })
}

func TestPostgresErases(t *testing.T) {
	storetest.RunErasing(t, func(t testing.TB, now func() time.Time) storetest.Erasing {
		return openPostgres(t, storetest.EraseOptions(t, now))
	})
}

func TestPostgresKeepsJobs(t *testing.T) {
	storetest.RunJobs(t, func(t testing.TB) storetest.Jobs {
		d := openPostgres(t, store.Options{})
		return struct {
			*jobs.Queue
			*kv.Table
			io.Closer
		}{d.Jobs, d.KV, d}
	})
}

// TestEachNameIsLookedUpByItself: a save costs as much with many records as with few, although the server has no statistics of the tables.
func TestEachNameIsLookedUpByItself(t *testing.T) {
	o := store.Options{Path: storetest.Database(t), Specs: storetest.Specs(t), SaveTime: storetest.Patience}
	d, err := store.Open(t.Context(), o)
	checktest.MustNoError(t, err, "open")
	countRead := func() int {
		// Sessions that have ended have reported what they read.
		const text = "SELECT CASE WHEN count(*) = 0 THEN (SELECT sum(idx_tup_read)::text FROM pg_stat_user_indexes WHERE relname LIKE 'name%') " +
			"ELSE '' END FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'understudy'"
		checktest.MustNoError(t, d.Close(), "close")
		for end := time.Now().Add(storetest.Patience); time.Now().Before(end); {
			if n, err := strconv.Atoi(pgtest.Query(t, o.Path, text)); err == nil {
				return n
			}
		}
		t.Fatal("the sessions of the store do not end")
		return 0
	}
	before := countRead()
	d, err = store.Open(t.Context(), o)
	checktest.MustNoError(t, err, "open")
	const records = 1500
	for _, p := range storetest.Pages(storetest.NewWorld(1, records), 100, storetest.Epoch) {
		_, err := d.Save(t.Context(), p)
		checktest.MustNoError(t, err, "save")
	}
	n := countRead() - before
	checktest.True(t, n < 5*records, "%d names were read to save %d records", n, records)
}

// In make test the suite runs on one handle, and what two handles must agree on is erased through both.
func TestTwoHandlesOnPostgres(t *testing.T) {
	storetest.RunErasing(t, func(t testing.TB, now func() time.Time) storetest.Erasing {
		o := storetest.EraseOptions(t, now)
		o.Path = storetest.Database(t)
		return openHandles(t, o)
	})
	if !sample.IsFullRun() {
		return
	}
	storetest.Run(t, func(t testing.TB) storetest.Store {
		return openHandles(t, store.Options{Path: storetest.Database(t), Specs: storetest.Specs(t)})
	})
}

// openBehindPgBouncer opens two handles on an empty PostgreSQL database behind PgBouncer in transaction mode.
func openBehindPgBouncer(t testing.TB, o store.Options) *handles {
	t.Helper()
	o.Path = pgtest.Bouncer(t, storetest.Database(t)) + "&default_query_exec_mode=exec"
	return openHandles(t, o)
}

func TestTwoHandlesBehindPgBouncer(t *testing.T) {
	h := openBehindPgBouncer(t, store.Options{Specs: storetest.Specs(t)})
	useStore(t, h.all[0].DB, 50)
	storetest.SaveMessages(t, h.all[1].DB, 0, 50)
	for _, of := range h.all {
		listed := 0
		q := query.RecordQuery{Source: storetest.Source, Kinds: []string{"messages"}}
		checktest.NoError(t, of.Seek(t.Context(), q, func(query.Hit) bool { listed++; return true }), "list")
		checktest.Equal(t, listed, 50, "messages in the list")
		checktest.Equal(t, storetest.CountText(t, of.DB, &query.Text{Words: []string{"everything"}}), 50, "messages that a search finds")
		storetest.VerifyDB(t, of.DB)
	}
}

// In make test, the test above uses each sort of transaction.
func TestSuitesBehindPgBouncer(t *testing.T) {
	if !sample.IsFullRun() {
		t.Skip("make prove runs the suites behind PgBouncer")
	}
	open := func(t testing.TB) *handles { return openBehindPgBouncer(t, store.Options{Specs: storetest.Specs(t)}) }
	t.Run("store", func(t *testing.T) {
		storetest.Run(t, func(t testing.TB) storetest.Store { return open(t) })
	})
	t.Run("seek", func(t *testing.T) {
		storetest.RunSeek(t, func(t testing.TB) storetest.Seeker { return open(t) })
	})
	t.Run("text", func(t *testing.T) {
		storetest.RunText(t, func(t testing.TB) storetest.Seeker { return open(t) })
	})
	t.Run("erase", func(t *testing.T) {
		storetest.RunErasing(t, func(t testing.TB, now func() time.Time) storetest.Erasing {
			return openBehindPgBouncer(t, storetest.EraseOptions(t, now))
		})
	})
	t.Run("jobs", func(t *testing.T) {
		storetest.RunJobs(t, func(t testing.TB) storetest.Jobs { return openBehindPgBouncer(t, store.Options{}).jobs() })
	})
}
