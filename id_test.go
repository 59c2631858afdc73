// IDs: 34 characters in 18 bytes, and back exactly.

package understudy

import (
	"strings"
	"testing"
)

func TestParseID(t *testing.T) {
	const text = "CA0123456789abcdef0123456789abcdef"
	id, ok := ParseID(text)
	if !ok || id.String() != text || id.Prefix != [2]byte{'C', 'A'} || id.Raw[0] != 0x01 || id.Raw[15] != 0xef {
		t.Fatalf("%v %v", id, ok)
	}
	for _, other := range []string{
		"", "CA", text[:33], text + "0", strings.ToUpper(text), "C1" + text[2:], "1A" + text[2:], text[:33] + "g", text[:33] + "F", "é" + text[2:], text[:33] + "-",
	} {
		if id, ok := ParseID(other); ok || id != (ID{}) {
			t.Errorf("%q is taken for %v", other, id)
		}
	}
	buf := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() {
		id, _ := ParseID(text)
		buf, _ = id.AppendText(buf[:0])
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParseID(f *testing.F) {
	f.Add("CA0123456789abcdef0123456789abcdef")
	f.Add("xy0123456789ABCDEF0123456789abcdef")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		if id, ok := ParseID(text); ok && id.String() != text {
			t.Fatalf("%q comes back as %q", text, id)
		}
	})
}
