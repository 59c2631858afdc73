package sqlite

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"understudy/internal/store/db"
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
		err := c.QueryOnce(text, nil, func(r []driver.Value) error { n = r[0].(int64); return nil })
		if !db.IsDamaged(err) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	broken, err := c.RunTransaction(t.Context(), func() error {
		var block []byte
		n = int64(block[n+7])
		return nil
	})
	if broken {
		t.Error("the transaction is not rolled back")
	}
	if !db.IsDamaged(err) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v", err)
	}
	if _, err := c.RunTransaction(t.Context(), func() error { return io.EOF }); !errors.Is(err, io.EOF) {
		t.Errorf("the connection cannot be used again: %v", err)
	}
}

// The reasons people read, for codes that cannot be brought about here.
type coded int

func (c coded) Error() string { return fmt.Sprintf("code %d", int(c)) }

func (c coded) Code() int { return int(c) }

func TestReasons(t *testing.T) {
	for code, want := range map[int]string{13: "disk full", 10: "disk I/O error", 10 | 3<<8: "disk I/O error", 5: "locked", 6: "locked",
		8: "read-only", 14: "cannot open", 7: "memory", 11: "damaged", 26: "not a database", 1: "database error"} {
		err := db.WrapError(true, wrapError(coded(code)), "save page %s", "x")
		if !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "store: save page x: not stored: ") {
			t.Errorf("code %d: %v, want %q", code, err, want)
		}
	}
}
