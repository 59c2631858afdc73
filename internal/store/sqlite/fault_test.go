package sqlite

import (
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"testing"
)

// A column of another type than was stored is a fault of the file, with the place that read it.
func TestColumnOfAnotherTypeIsDamage(t *testing.T) {
	c, err := Dial(t.Context(), t.TempDir()+"/x.db", 100)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var n int64
	const want = "a stored value is of another type or form than was written, in fault_test.go:"
	for _, text := range []string{"SELECT 'text'", "SELECT NULL", "SELECT x'01'", "SELECT 1.5"} {
		err := c.QueryOnce(text, func(r []driver.Value) error { n = r[0].(int64); return nil })
		if !IsDamaged(err) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	broken, err := c.RunTransaction(t.Context(), BeginWrite, func() error {
		var block []byte
		n = int64(block[n+7])
		return nil
	})
	if broken {
		t.Error("the transaction is not rolled back")
	}
	if !IsDamaged(err) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v", err)
	}
	if _, err := c.RunTransaction(t.Context(), BeginWrite, func() error { return io.EOF }); !errors.Is(err, io.EOF) {
		t.Errorf("the connection cannot be used again: %v", err)
	}
}
