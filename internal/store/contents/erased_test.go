// Contents of what is erased.

package contents_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/contents"
	"understudy/internal/store/erase"
	"understudy/internal/store/storetest"
	"understudy/spec"
	"understudy/upstream"
)

// The contents of what is erased go, and none is kept again; those of another
// record stay.
func TestContentsErased(t *testing.T) {
	inEveryStore(t, func(t *testing.T, newShelf shelfMaker) {
		db := storetest.Open(t, store.Options{Specs: twilio(t), Now: func() time.Time { return storetest.Epoch }})
		s := newShelf(t, func(o *contents.Options) { o.Erased = db.IsErased })
		save := func(kind, id, body string) {
			p := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: "/" + kind + id}, Kind: kind, Shape: kind, ID: id, Status: 200,
				Body: []byte(body),
				Rows: []understudy.Row{{ID: id, End: len(body)}}, At: storetest.Epoch}
			if _, err := db.Save(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		for n := range 2 {
			c := contentOf(n)
			save("calls", fmt.Sprintf("CA%032d", n), fmt.Sprintf(`{"from": "+1415555010%d"}`, n))
			save("recordings", c.ID, fmt.Sprintf(`{"call_sid": "CA%032d"}`, n))
			s.put(n, fmt.Sprint("the voice of ", n))
		}
		if _, _, err := db.Eraser.EraseNumber(t.Context(), "twilio", "+14155550100"); err != nil {
			t.Fatal(err)
		}
		done, err := db.Eraser.EraseListed(t.Context(), erase.Job{Files: s.Store})
		checktest.MustNoError(t, err, "")
		checktest.MustEqual(t, len(done), 1, "len(done)")
		checktest.MustEqual(t, done[0].Files, 1, "done[0].Files")
		checktest.MustEqual(t, done[0].Records, 2, "done[0].Records")
		if _, held := s.text(0); held || s.contains("the voice of 0") {
			t.Error("its content is still there")
		}
		if _, held := s.text(1); !held {
			t.Error("another's content is not there any more")
		}
		if _, err := s.Put(t.Context(), contentOf(0), strings.NewReader("the voice of 0")); !errors.Is(err, understudy.ErrNotStored) {
			t.Errorf("put again: %v", err)
		}
		within := contentOf(7)
		within.ParentIDs = []string{fmt.Sprintf("CA%032d", 0)}
		if _, err := s.Put(t.Context(), within, strings.NewReader("the voice of 0")); !errors.Is(err, understudy.ErrNotStored) {
			t.Errorf("put within an erased record: %v", err)
		}
		checktest.True(t, !s.contains("the voice of 0"), "it was kept")
	})
}

// A content that cannot be removed keeps its receipt back until it can.
func TestContentsThatStay(t *testing.T) {
	db := storetest.Open(t, store.Options{Specs: twilio(t), Now: func() time.Time { return storetest.Epoch }})
	s := newShelf(t)
	c := s.put(3, "the voice")
	body := `{"from": "+14155550100"}`
	p := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: "/r"}, Kind: c.Kind, Shape: c.Kind, ID: c.ID, Status: 200,
		Body: []byte(body),
		Rows: []understudy.Row{{ID: c.ID, End: len(body)}}, At: storetest.Epoch}
	if _, err := db.Save(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if _, _, err := db.Eraser.EraseNumber(t.Context(), "twilio", c.Kind+"/"+c.ID); err != nil {
		t.Fatal(err)
	}
	content := filepath.Join(s.dir, "content", fmt.Sprintf("%x", c.Sum[:1]), fmt.Sprintf("%x", c.Sum))
	if err := os.Remove(content); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(content, "full"), 0o700); err != nil { // a folder in its place cannot be removed
		t.Fatal(err)
	}
	for range 2 {
		if done, err := db.Eraser.EraseListed(context.Background(), erase.Job{Files: s.Store}); err == nil {
			t.Fatalf("a receipt for what is still there: %+v", done)
		}
	}
	if err := os.Remove(filepath.Join(content, "full")); err != nil {
		t.Fatal(err)
	}
	if done, err := db.Eraser.EraseListed(t.Context(), erase.Job{Files: s.Store}); err != nil || len(done) != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
}

// twilio is the built-in spec by the name of its source.
func twilio(t testing.TB) map[string]*spec.Spec {
	t.Helper()
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*spec.Spec{"twilio": sp}
}

// contains reports whether the folder or any version of an object in the bucket contains a text.
func (s *shelf) contains(text string) bool {
	return len(filesWith(s, s.dir, text)) > 0 || s.bucket != nil && s.bucket.contains(s, text)
}

// filesWith are the files under a folder that hold a text.
func filesWith(t testing.TB, dir, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), text) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
