// What a test's database costs.

package storetest_test

import (
	"path/filepath"
	"testing"

	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/spec"
	"understudy/upstream"
)

// BenchmarkOpen compares a new database with a copy of a migrated one.
func BenchmarkOpen(b *testing.B) {
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		b.Fatal(err)
	}
	for name, file := range map[string]func() string{
		"new":  func() string { return filepath.Join(b.TempDir(), "understudy.db") },
		"copy": func() string { return storetest.File(b) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				db, err := store.Open(b.Context(), store.Options{Path: file(), Specs: map[string]*spec.Spec{"twilio": sp}})
				if err != nil {
					b.Fatal(err)
				}
				if err := db.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Two tests have two databases.
func TestFile(t *testing.T) {
	t.Parallel()
	first, second := storetest.File(t), storetest.File(t)
	if first == second {
		t.Fatal("two tests share a database")
	}
	for _, path := range []string{first, second} {
		db, err := store.Open(t.Context(), store.Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
