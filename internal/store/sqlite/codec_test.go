// Ids and errors: what goes in comes out, and nothing that comes in from a damaged file
// does harm.

package sqlite_test

import (
	"fmt"
	"strings"
	"testing"

	"understudy/internal/store/sqlite"
)

func FuzzID(f *testing.F) {
	hex := strings.Repeat("0123456789abcdef", 2)
	for _, id := range []string{"", "CA" + hex, "SM" + hex, "CA" + hex + "~SM" + hex, "~", "CA" + strings.ToUpper(hex), "\x01" + hex[:16],
		"x"} {
		f.Add("CA", id)
		f.Add("", id)
	}
	f.Fuzz(func(t *testing.T, prefix, id string) {
		stored := sqlite.AppendID([]byte("before"), prefix, id)[6:]
		if got, err := sqlite.DecodeID(prefix, stored); err != nil || got != id {
			t.Fatalf("%q came back as %q, %v", id, got, err)
		}
		_, _ = sqlite.DecodeID(prefix, []byte(id))
	})
}

// The reasons people read, for codes that cannot be brought about here.
type coded int

func (c coded) Error() string { return fmt.Sprintf("code %d", int(c)) }

func (c coded) Code() int { return int(c) }

func TestReasons(t *testing.T) {
	for code, want := range map[int]string{13: "disk full", 10: "disk I/O error", 10 | 3<<8: "disk I/O error", 5: "locked", 6: "locked",
		8: "read-only", 14: "cannot open", 7: "memory", 11: "damaged", 26: "not a database", 1: "database error"} {
		err := sqlite.WrapError(true, coded(code), "save page %s", "x")
		if !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "store: save page x: not stored: ") {
			t.Errorf("code %d: %v, want %q", code, err, want)
		}
	}
}
