package token

import (
	"bytes"
	"testing"
)

func key(fill byte) []byte { return bytes.Repeat([]byte{fill}, KeySize) }

// A text opens while its key is in the ring, and a new one is sealed with the newest.
func TestRing(t *testing.T) {
	r, err := NewRing("cookies", key(1))
	if err != nil {
		t.Fatal(err)
	}
	opens := func(text string, want bool) {
		t.Helper()
		if data, err := r.Open(text, SizeOf(text)); (err == nil) != want || want && string(data) != "some bytes" {
			t.Errorf("opened: %q, %v; want %v", data, err, want)
		}
	}
	old := string(r.Append(nil, []byte("some bytes")))
	for _, wrong := range [][][]byte{nil, {key(2), key(3)[1:]}} {
		if err := r.Replace(wrong...); err == nil {
			t.Errorf("%d keys are taken", len(wrong))
		}
	}
	opens(old, true)
	if err := r.Replace(key(2), key(1)); err != nil {
		t.Fatal(err)
	}
	fresh := string(r.Append(nil, []byte("some bytes")))
	opens(old, true)
	opens(fresh, true)
	if err := r.Replace(key(3), key(2)); err != nil {
		t.Fatal(err)
	}
	opens(old, false)
	opens(fresh, true)
	if _, err := NewRing("cookies"); err == nil {
		t.Error("a ring without a key")
	}
	other, err := NewRing("links", key(2))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Open(fresh, SizeOf(fresh)); err == nil {
		t.Error("a text of another purpose opens")
	}
	for size := range 100 {
		text := string(r.Append(nil, make([]byte, size)))
		if SizeOf(text) != size {
			t.Errorf("a text of %d bytes holds %d", size, SizeOf(text))
		}
	}
}
