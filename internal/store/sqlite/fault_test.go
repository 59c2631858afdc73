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
	ask := func() error {
		return c.Ask("SELECT 'text'", func(r []driver.Value) error { n = r[0].(int64); return nil })
	}
	if err := ask(); !IsDamaged(err) || !strings.Contains(err.Error(), "fault_test.go:") {
		t.Errorf("%v", err)
	}
	broken, err := c.Transaction(t.Context(), BeginWrite, func() error {
		var block []byte
		n = int64(block[n+7])
		return nil
	})
	if broken {
		t.Error("the transaction is not rolled back")
	}
	if !IsDamaged(err) {
		t.Errorf("%v", err)
	}
	if _, err := c.Transaction(t.Context(), BeginWrite, func() error { return io.EOF }); !errors.Is(err, io.EOF) {
		t.Errorf("the connection cannot be used again: %v", err)
	}
}
