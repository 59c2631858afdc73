// Seals: what opens, and that nothing else does.

package token

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"understudy/internal/checktest"
)

func made(t testing.TB, key byte, purpose string) *Sealer {
	t.Helper()
	s, err := New(bytes.Repeat([]byte{key}, KeySize), purpose)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSeal(t *testing.T) {
	s := made(t, 1, "a")
	data := []byte("place 42")
	text, again := string(s.Append([]byte("x="), data)), string(s.Append(nil, data))
	text = strings.TrimPrefix(text, "x=")
	checktest.True(t, text != again, "text is %v", text)
	checktest.MustEqual(t, len(text), len(again), "len(text)")
	checktest.Lacks(t, text, "place", "text")
	if got, err := s.Open(text, len(data)); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := made(t, 1, "a").Open(text, len(data)); err != nil || !bytes.Equal(got, data) {
		t.Errorf("after a restart: %q, %v", got, err)
	}
	for name, open := range map[string]func() ([]byte, error){
		"another purpose": func() ([]byte, error) { return made(t, 1, "b").Open(text, len(data)) },
		"another key":     func() ([]byte, error) { return made(t, 2, "a").Open(text, len(data)) },
		"another size":    func() ([]byte, error) { return s.Open(text, len(data)+1) },
		"cut":             func() ([]byte, error) { return s.Open(text[1:], len(data)) },
		"longer":          func() ([]byte, error) { return s.Open(text+"A", len(data)) },
		"a line end":      func() ([]byte, error) { return s.Open(text[:9]+"\n"+text[10:], len(data)) },
		"empty":           func() ([]byte, error) { return s.Open("", len(data)) },
		"no size":         func() ([]byte, error) { return s.Open("", 0) },
	} {
		if got, err := open(); !errors.Is(err, errForeign) || got != nil {
			t.Errorf("%s opens: %q, %v", name, got, err)
		}
	}
	for i := range text {
		other := []byte(text)
		other[i] = "AB"[map[bool]int{true: 1}[other[i] == 'A']]
		if got, err := s.Open(string(other), len(data)); err == nil {
			t.Errorf("%s opens as %q", other, got)
		}
	}
	if _, err := New(make([]byte, KeySize-1), ""); err == nil {
		t.Error("a short key is taken")
	}
}

func TestKey(t *testing.T) {
	var kept []byte
	get := func() ([]byte, error) { return kept, nil }
	change := func(change func([]byte) ([]byte, error)) (err error) { kept, err = change(kept); return err }
	first, err := Key(get, change)
	checktest.MustNoError(t, err, "")
	checktest.MustEqual(t, len(first), KeySize, "len(first)")
	checktest.MustTrue(t, bytes.Equal(first, kept), "first is %q, want %q", first, kept)
	if again, err := Key(get, change); err != nil || !bytes.Equal(first, again) {
		t.Errorf("another key, %v", err)
	}
	none := func() ([]byte, error) { return nil, nil }
	if late, err := Key(none, change); err != nil || !bytes.Equal(first, late) {
		t.Errorf("another key than that of a process that was faster, %v", err)
	}
	bad := errors.New("disk")
	if _, err := Key(func() ([]byte, error) { return nil, bad }, change); !errors.Is(err, bad) {
		t.Error(err)
	}
	if _, err := Key(none, func(func([]byte) ([]byte, error)) error { return bad }); !errors.Is(err, bad) {
		t.Error(err)
	}
}

func FuzzOpen(f *testing.F) {
	s := made(f, 1, "a")
	const real = "pMIohBXqfrD4k9bZpEUupk10kqpjCJfcce8UV5-P0SSOxm9D" // of 12345678, some time ago
	f.Add(real, 8)
	f.Add(real[:len(real)-1]+"_", 8)
	f.Add("\r\n", -30)
	f.Fuzz(func(t *testing.T, text string, size int) {
		if data, err := s.Open(text, size); err == nil && (text != real || string(data) != "12345678") {
			t.Errorf("%q opens as %q", text, data)
		}
	})
}
