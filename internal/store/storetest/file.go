// File: a database for a test, without the time its migration takes.

package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"understudy/internal/store"
)

// template is the content of a database that was migrated and holds nothing.
var template = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "understudy-storetest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "understudy.db")
	db, err := store.Open(context.Background(), store.Options{Path: path})
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil { // the log is in the file now
		return nil, err
	}
	if beside, err := filepath.Glob(path + "-*"); len(beside) > 0 || err != nil {
		return nil, fmt.Errorf("storetest: %v beside a closed database %w", beside, err)
	}
	return os.ReadFile(path)
})

// File returns the path of a new, migrated and empty database in a folder of
// the test's own. It is for store.Open.
func File(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "understudy.db")
	Renew(t, path)
	return path
}

// Renew makes the database at path, which is closed, a new and empty one.
func Renew(t testing.TB, path string) {
	t.Helper()
	data, err := template()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Damage clears the first page of a table in the file at path, which no store has open.
func Damage(path, table string) error {
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		return err
	}
	var root, size int64
	err = db.QueryRow("SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size WHERE name = ?", table).Scan(&root, &size)
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(make([]byte, size), (root-1)*size)
	return errors.Join(err, f.Close())
}

// SQL opens the file as any SQLite client would.
func SQL(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+strings.NewReplacer("%", "%25", "?", "%3f").Replace(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// FileSize returns the size of the file at path.
func FileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
