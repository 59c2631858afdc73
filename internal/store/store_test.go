// Both stores against the suite.

package store_test

import (
	"log/slog"
	"path/filepath"
	"testing"

	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

func openDB(t testing.TB, path string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Path: path, Specs: specs(t), Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func TestDB(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.Store { return openDB(t, filepath.Join(t.TempDir(), "understudy.db")) })
}

func TestMemory(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.Store {
		m := store.NewMemory(store.Options{})
		t.Cleanup(func() { _ = m.Close() })
		return m
	})
}
