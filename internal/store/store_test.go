// The store against the suite.

package store_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"understudy"
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

func (t tested) Evict(ctx context.Context) error { return t.Evictor.Evict(ctx) }

func testedDB(t testing.TB) tested { return newTested(t, storetest.OpenAt(t, storetest.File(t))) }

// newTested returns a store for a suite. When the test ends, it verifies the store, unless the test closed it.
func newTested(t testing.TB, db *store.DB) tested {
	t.Cleanup(func() {
		if _, err := db.ReadLastChange(context.Background(), storetest.Source); !errors.Is(err, understudy.ErrClosed) {
			storetest.VerifyDB(t, db)
		}
	})
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
		return newTested(t, db)
	})
}
