// The store against the suite.

package store_test

import (
	"path/filepath"
	"testing"
	"time"

	"understudy/internal/store"
	"understudy/internal/store/erase"
	"understudy/internal/store/storetest"
	"understudy/internal/store/verify"
)

// tested is a store with those of its parts that the suites ask.
type tested struct {
	*store.DB
	*erase.Eraser
	*verify.Verifier
}

func testedDB(t testing.TB) tested {
	db := storetest.OpenAt(t, storetest.File(t))
	return tested{db, db.Eraser, db.Verifier}
}

func TestDB(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB) storetest.Store { return testedDB(t) })
}

func TestDBWithALimit(t *testing.T) {
	storetest.FewerChecks(t, 25)
	storetest.RunLimited(t, func(t testing.TB, limit int64, now func() time.Time) storetest.Store {
		db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(storetest.MemoryDir(t), "understudy.db"), Limit: limit, Now: now,
			SaveTime: storetest.Patience})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return tested{db, db.Eraser, db.Verifier}
	})
}
