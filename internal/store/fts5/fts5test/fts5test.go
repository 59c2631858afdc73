// Package fts5test gives tests the table of package fts5 in a file of its own.
package fts5test

import (
	"context"
	"database/sql/driver"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy/internal/store/sqlite"
)

// Open is a file with nothing but the FTS5 tables of the store's schema. It is closed
// and removed after the test.
func Open(t testing.TB) *sqlite.Conn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "words.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := sqlite.Dial(context.Background(), path, sqlite.WriterCache)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	for _, pragma := range []string{"journal_mode = MEMORY", "synchronous = OFF"} {
		if err := c.QueryOnce("PRAGMA "+pragma, nil, func([]driver.Value) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("../migrations/sqlite/00001_start.sql") // from a package beside it
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(string(text), ";\n") {
		if i := strings.Index(part, "VIRTUAL TABLE"); i >= 0 || strings.Contains(part, "'secure-delete'") {
			if err := c.ExecuteOnce(part); err != nil {
				t.Fatalf("%s: %v", part, err)
			}
		}
	}
	return c
}
