// Ids, blocks, skeletons and packing: what goes in comes out, and nothing that
// comes in from a damaged file does harm.

package store

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
		if got, err := sqlite.TextID(prefix, stored); err != nil || got != id {
			t.Fatalf("%q came back as %q, %v", id, got, err)
		}
		_, _ = sqlite.TextID(prefix, []byte(id))
	})
}

// The reasons people read, for codes that cannot be brought about here.
type coded int

func (c coded) Error() string { return fmt.Sprintf("code %d", int(c)) }
func (c coded) Code() int     { return int(c) }

func TestReasons(t *testing.T) {
	for code, want := range map[int]string{13: "disk full", 10: "disk I/O error", 10 | 3<<8: "disk I/O error", 5: "locked", 6: "locked",
		8: "read-only", 14: "cannot open", 7: "memory", 11: "damaged", 26: "not a database", 1: "database error"} {
		err := sqlite.Failed(true, coded(code), "save page %s", "x")
		if !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "store: save page x: not stored: ") {
			t.Errorf("code %d: %v, want %q", code, err, want)
		}
	}
}

// marked is a body with a value of every sort.
func marked(n int) []byte {
	m := func(place string) string { return fmt.Sprintf("Marker%sQq%05d", place, n) }
	id := func(k int) string { return fmt.Sprintf("TH%032x", 0xabcdef0123+n*100+k) }
	return fmt.Appendf(nil, `{"sid": %q, "phone": "+1415%07d", "body": "%s \u00e9 \n \ud83d\ude00 日本", "name": %q,
		"url": "https://%s/x", "price": -%d.25,
		"secret": %q, "shown": "(415) %07d", "other": %q, "status": "completed",
		"uri": "/2010-04-01/Things/%s.json?To=%s&Page=0&Digits=4155550%03d",
		"inner": {"status": "done", "phone": "+1415%07d", "%s": "%s", "deep": {"a": ["%s", {"b": "%s"}]}}, "unknown": "%s",
		"list": ["%s", 4155551234567]}`,
		id(1), n, m("Body"), m("Name"), m("Host"), 31415000+n, m("Secret"), n, id(2), id(3), m("Query"), n, n, m("Key"), m("Unknown"), m("Deep"),
		m("Deeper"), m("Top"), m("Item"))
}
