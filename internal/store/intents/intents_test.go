// Intents: what a crash leaves, in files of any form.

package intents_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"understudy/internal/store/intents"

	"understudy/internal/checktest"
	"understudy/request"
)

func openIntents(t testing.TB, path string) *intents.Log {
	t.Helper()
	in, err := intents.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	return in
}

func TestIntentsOutliveTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "intents")
	in := openIntents(t, path)
	touch := func(id string) request.Invalidation {
		return request.Invalidation{Source: "twilio", Kind: "calls", ID: id}
	}
	begin := func(id string) int64 {
		n, err := in.Begin(touch(id))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	first, second := begin("a"), begin("b")
	begin("")
	in.End(first)
	in.End(first)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.WriteString(`{"n":9,"sour`) // a crash cut it
	_ = f.Close()
	in.End(second) // of the same process: a line of its own
	in = openIntents(t, path)
	numbers, left := in.UnendedWrites() // numbered anew
	if !slices.Equal(left, []request.Invalidation{touch("")}) {
		t.Errorf("left: %v", left)
	}
	in.End(numbers[0])
	if n := begin("c"); n == numbers[0] {
		t.Errorf("number %d was given twice", n)
	}
	for range 400 { // the file does not grow for ever
		in.End(begin(strings.Repeat("x", 4000)))
	}
	{
		info, err := os.Stat(path)
		checktest.MustNoError(t, err, "")
		checktest.True(t, info.Size() <= 1<<20, "info.Size() is %v", info.Size())
		checktest.Equal(t, info.Mode().Perm(), 0o600, "info.Mode().Perm()")
	}
	in = openIntents(t, path)
	if _, left = in.UnendedWrites(); !slices.Equal(left, []request.Invalidation{touch("c")}) {
		t.Errorf("left at last: %v", left)
	}
}

// On a full disk neither grows the file nor can a new one be written.
func TestIntentsNeedNoRoom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "intents")
	in := openIntents(t, path)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(path+".new", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 3500 { // more than a file has before it is written anew
		n, err := in.Begin(request.Invalidation{Source: "twilio", Kind: "messages", ID: "SM0123456789abcdef"})
		if err != nil {
			t.Fatal(err)
		}
		in.End(n)
	}
	want := request.Invalidation{Source: "twilio", Kind: "messages", ID: "last"}
	if _, err := in.Begin(want); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(path); err != nil || after.Size() != before.Size() {
		t.Errorf("%d bytes, then %v, %v", before.Size(), after, err)
	}
	if err := os.RemoveAll(path + ".new"); err != nil {
		t.Fatal(err)
	}
	if _, left := openIntents(t, path).UnendedWrites(); !slices.Equal(left, []request.Invalidation{want}) {
		t.Errorf("left: %v", left)
	}
}

func FuzzIntents(f *testing.F) {
	f.Add([]byte("\n{\"n\":1,\"source\":\"a\",\"kind\":\"b\",\"id\":\"c\"}\n\n{\"done\":1}\n{\"n\":2,"))
	f.Add([]byte("\x00\xff{}\n{\"n\":-1}\n{\"n\":9223372036854775807,\"source\":\"a\",\"kind\":\"b\"}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "intents")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		in := openIntents(t, path)
		n, err := in.Begin(request.Invalidation{Source: "s", Kind: "k", ID: "new"})
		if err != nil {
			t.Fatal(err)
		}
		_, before := in.UnendedWrites()
		_, left := openIntents(t, path).UnendedWrites()
		if !slices.Equal(before, left) || !slices.ContainsFunc(left, func(u request.Invalidation) bool { return u.ID == "new" }) {
			t.Errorf("%d: left %v, then %v", n, before, left)
		}
	})
}
