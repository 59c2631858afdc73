// Tests of prepared statements.

package sqlite

import (
	"database/sql/driver"
	"errors"
	"path/filepath"
	"testing"

	"understudy/internal/store/db"
)

// Each run of a statement goes by the bound it is given.
func TestBoundsOfStatements(t *testing.T) {
	c, err := Dial(t.Context(), filepath.Join(t.TempDir(), "a.db"), 64)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.ExecuteOnce("CREATE TABLE t (a INTEGER PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	insert := &db.Statement{Head: "INSERT INTO t VALUES ", Tuple: "(?)"}
	if err := db.ExecuteMany(c, insert, 1, []driver.Value{int64(1), int64(2), int64(3)}); err != nil {
		t.Fatal(err)
	}
	some := &db.Statement{Head: "SELECT a FROM t WHERE a > ? ORDER BY a LIMIT ?"}
	for want := int64(1); want < 4; want++ {
		got := int64(0)
		err := c.Query(some, 0, []driver.Value{int64(0), want}, func([]driver.Value) error { got++; return nil })
		if err != nil || got != want {
			t.Errorf("LIMIT %d gives %d rows, %v", want, got, err)
		}
	}
}

// What is promised is committed with FULL, all else with NORMAL, also after an error.
func TestDurably(t *testing.T) {
	c, err := Dial(t.Context(), filepath.Join(t.TempDir(), "a.db"), 64)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	how := func(want int64) {
		t.Helper()
		if n, err := c.QueryInteger("PRAGMA synchronous"); err != nil || n != want {
			t.Errorf("synchronous = %d, %v, want %d", n, err, want)
		}
	}
	how(1)
	for _, end := range []error{nil, errors.New("it failed")} {
		broken, err := c.RunDurably(func() (bool, error) {
			return c.RunTransaction(t.Context(), func() error { how(2); return end })
		})
		if broken || !errors.Is(err, end) {
			t.Errorf("broken %v, %v", broken, err)
		}
		how(1)
	}
}
