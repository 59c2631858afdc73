// Contents are given out, kept and forgotten before their index is read.

package contents_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store/contents"
)

// Finding 8: a start with 100,000 contents took 3.1 s, for the index was read
// first. Opened with Later nothing of it is read: entries that cannot be read do not
// matter, and what is held is there all the same.
func TestContentsAreThereBeforeTheirIndexIsRead(t *testing.T) {
	s := newShelf(t)
	for n := range 8 {
		s.now = filesEpoch.Add(time.Duration(n) * time.Minute)
		s.put(n, map[bool]string{true: "shared", false: string(rune('a' + n))}[n >= 6])
	}
	odd := filepath.Join(s.dir, "index", "zz")
	if err := errors.Join(os.Mkdir(odd, 0o700), os.WriteFile(filepath.Join(odd, "odd.json"), []byte("no entry"), 0o600),
		os.WriteFile(filepath.Join(s.dir, "content", "orphan"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	s.open(func(o *contents.Options) { o.LoadLater, o.Limit = true, 10 })
	{
		st := s.Stats()
		checktest.MustEqual(t, st.Files, 0, "%+v: st.Files", st)
		checktest.MustEqual(t, s.onDisk("content"), 8, `%+v: s.onDisk("content")`, st)
		checktest.MustEqual(t, s.onDisk("index"), 9, `%+v: s.onDisk("index")`, st)
	}
	if text, ok := s.text(3); !ok || text != "d" {
		t.Errorf("held: %q, %v", text, ok)
	}
	if err := s.Confirm(contentOf(3).Key, filesEpoch.Add(time.Hour)); err != nil {
		t.Error(err)
	}
	if err := s.Confirm(contentOf(11).Key, filesEpoch); !errors.Is(err, understudy.ErrNotFound) {
		t.Errorf("what never was: %v", err)
	}
	// Beside it: one is forgotten, one replaced, one of two that share their bytes
	// forgotten, one new.
	for _, n := range []int{1, 6} {
		if _, err := s.Forget("twilio", "recordings", contentOf(n).ID); err != nil {
			t.Fatal(err)
		}
		if _, ok := s.text(n); ok {
			t.Errorf("%d was forgotten and is given out", n)
		}
	}
	s.put(2, "cc")
	s.put(9, "j")
	left := make(chan error)
	go func() { left <- s.RetryRemovals() }() // an erasure waits until they are gone
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-left; err != nil {
		t.Error(err)
	}
	// 0, 3, 4, 5 of one byte each, "shared" of 6, "cc" and "j": 13 bytes, 10 may be.
	// The oldest went: 0, 4 and 5; the entry of 3 was written anew by its confirmation.
	s.holds(2, 3, 7, 9)
	{
		st := s.Stats()
		checktest.Equal(t, st.Bytes, 10, "st.Bytes")
		checktest.Equal(t, st.Files, 4, "st.Files")
		checktest.Equal(t, st.Evicted, 3, "st.Evicted")
		checktest.Equal(t, s.onDisk("content"), 4, `s.onDisk("content")`)
	}
	// Another start finds the same.
	s.open()
	s.holds(2, 3, 7, 9)
}

// A start that ends before the index is read leaves what is to be erased owed.
func TestALoadThatEndsEarlyOwesErasures(t *testing.T) {
	s := newShelf(t)
	s.put(1, "a")
	s.open(func(o *contents.Options) { o.LoadLater = true })
	if _, err := s.Forget("twilio", "recordings", contentOf(1).ID); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := s.Load(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := s.RetryRemovals(); !errors.Is(err, understudy.ErrUnavailable) {
		t.Errorf("erased: %v", err)
	}
	if _, ok := s.text(1); ok {
		t.Error("it is given out")
	}
}
