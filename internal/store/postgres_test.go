// The suites on PostgreSQL, and on two handles of one PostgreSQL database.

package store_test

import (
	"io"
	"testing"
	"time"

	"understudy/internal/sample"
	"understudy/internal/store"
	"understudy/internal/store/jobs"
	"understudy/internal/store/kv"
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
