// Both stores against the rules of erasing.

package store_test

import (
	"path/filepath"
	"testing"
	"time"

	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

func eraseOptions(t testing.TB, now func() time.Time) store.Options {
	return store.Options{Path: filepath.Join(t.TempDir(), "understudy.db"), Specs: specs(t), Now: now,
		Retention: map[string]map[string]time.Duration{storetest.Source: {"messages": storetest.Keep}}}
}

func TestDBErases(t *testing.T) {
	storetest.RunErasing(t, func(t testing.TB, now func() time.Time) storetest.Erasing {
		db, err := store.Open(t.Context(), eraseOptions(t, now))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	})
}

func TestMemoryErases(t *testing.T) {
	storetest.RunErasing(t, func(t testing.TB, now func() time.Time) storetest.Erasing {
		m := store.NewMemory(eraseOptions(t, now))
		t.Cleanup(func() { _ = m.Close() })
		return m
	})
}
