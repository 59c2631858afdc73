// Files that another process has locked.

package sqlite_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store/storetest"
)

func TestLockedByAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "understudy.db")
	db := storetest.OpenAt(t, path)
	p, _ := storetest.NewWorld(1, 50).List(50, 0, 0, storetest.Epoch)
	if _, err := db.Save(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	conn, err := storetest.SQL(t, path).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// The store may still be writing its indexes.
	if _, err := conn.ExecContext(t.Context(), "PRAGMA busy_timeout = 10000; BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	_, err = db.Save(t.Context(), p)
	{
		took := time.Since(start)
		checktest.True(t, errors.Is(err, understudy.ErrNotStored),
			"after %v: err is %v, want understudy.ErrNotStored", took, err)
		checktest.Contains(t, storetest.Reason(err), "locked", "after %v: storetest.Reason(err)", took)
		checktest.True(t, took <= 4*time.Second, "after %v: took is %v; %v", took, took, err)
	}
	// Those who come then do not wait for it one after the other.
	start = time.Now()
	for range 5 {
		if _, err := db.Save(t.Context(), p); !strings.Contains(storetest.Reason(err), "locked") {
			t.Errorf("again: %v", err)
		}
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("five more took %v", took)
	}
	if _, err := db.ReadPage(t.Context(), p.Key); err != nil {
		t.Errorf("a page cannot be read meanwhile: %v", err)
	}
	if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Save(t.Context(), p); err != nil {
		t.Errorf("after the lock is gone: %v", err)
	}
}
