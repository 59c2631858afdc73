// Ids: what goes in comes out, and nothing that comes in from a damaged file does harm.

package db_test

import (
	"strings"
	"testing"

	"understudy/internal/store/db"
)

func FuzzID(f *testing.F) {
	hex := strings.Repeat("0123456789abcdef", 2)
	for _, id := range []string{"", "CA" + hex, "SM" + hex, "CA" + hex + "~SM" + hex, "~", "CA" + strings.ToUpper(hex), "\x01" + hex[:16],
		"x"} {
		f.Add("CA", id)
		f.Add("", id)
	}
	f.Fuzz(func(t *testing.T, prefix, id string) {
		stored := db.AppendID([]byte("before"), prefix, id)[6:]
		if got, err := db.DecodeID(prefix, stored); err != nil || got != id {
			t.Fatalf("%q came back as %q, %v", id, got, err)
		}
		_, _ = db.DecodeID(prefix, []byte(id))
	})
}
