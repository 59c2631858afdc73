// Tests of prepared statements.

package sqlite

import (
	"database/sql/driver"
	"path/filepath"
	"testing"
)

// Each run of a statement goes by the bound it is given.
func TestBoundsOfStatements(t *testing.T) {
	c, err := Dial(t.Context(), filepath.Join(t.TempDir(), "a.db"), 64)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Run("CREATE TABLE t (a INTEGER PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	insert := &Statement{Head: "INSERT INTO t VALUES ", Tuple: "(?)"}
	if err := c.ExecMany(insert, 1, []driver.Value{int64(1), int64(2), int64(3)}); err != nil {
		t.Fatal(err)
	}
	some := &Statement{Head: "SELECT a FROM t WHERE a > ? ORDER BY a LIMIT ?"}
	for want := int64(1); want < 4; want++ {
		got := int64(0)
		err := c.Query(some, 0, []driver.Value{int64(0), want}, func([]driver.Value) error { got++; return nil })
		if err != nil || got != want {
			t.Errorf("LIMIT %d gives %d rows, %v", want, got, err)
		}
	}
}
