package body

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// The length that a packed body tells of itself is read, as far as it can be true.
func TestLengthThatAPackedBodyTells(t *testing.T) {
	body := bytes.Repeat([]byte("{}"), 5000)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(body)
	_ = w.Close()
	lies := bytes.Clone(packed.Bytes())
	copy(lies[len(lies)-4:], "\xff\xff\xff\xff")
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		coding string
		packed []byte
		want   int64
	}{
		{"gzip", packed.Bytes(), 10_000}, {"x-gzip", packed.Bytes(), 10_000}, {"gzip", lies, 1032 * int64(len(lies))}, {"gzip", lies[:17], 0},
		{"zstd", z.EncodeAll(body, nil), 10_000}, {"zstd", body, 0}, {"br", packed.Bytes(), 0}, {"", nil, 0},
	} {
		if got := declaredLength(c.coding, c.packed); got != c.want {
			t.Errorf("%q: %d bytes, want %d", c.coding, got, c.want)
		}
	}
}

// The last length of each name is remembered while its bodies are heavy, of a bounded number of names.
func TestLengthsOfHeavyBodiesAreRemembered(t *testing.T) {
	var l lengths
	for _, step := range []struct{ note, want int64 }{{light - 1, 0}, {light, light}, {2 * light, 2 * light}, {light - 1, 0}} {
		if l.note("calls", step.note); l.find("calls") != step.want {
			t.Errorf("after %d bytes: %d, want %d", step.note, l.find("calls"), step.want)
		}
	}
	if l.note("", light); l.find("") != 0 {
		t.Errorf("bodies without a name: %d", l.find(""))
	}
	for n := range 3 * maxLengths {
		if l.note(fmt.Sprint(n), light); len(l.of) > maxLengths {
			t.Fatalf("%d names are remembered", len(l.of))
		}
	}
}
