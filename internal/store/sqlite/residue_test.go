// Remains: a file is the same before and after, less what belongs to nothing.

package sqlite_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"understudy/internal/store/db"
	"understudy/internal/store/kv"
	"understudy/internal/store/sqlite"
	"understudy/internal/store/storetest"
)

// holds are the files of a folder that hold a text.
func holds(t testing.TB, dir, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if n := bytes.Count(data, []byte(text)); n > 0 {
			found = append(found, fmt.Sprintf("%s %d times", filepath.Base(path), n))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// noise is text that does not pack, so that it stands in the file as it is.
func noise(rng *rand.Rand, n int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[rng.IntN(len(letters))]
	}
	return string(b)
}

// TestRemains lets notes of all sizes come, change and go, and looks for each
// text that is no longer there in every byte of the folder.
func TestRemains(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, rand.Uint64()))
	path := storetest.File(t)
	dir := filepath.Dir(path)
	pool := db.NewPool(sqlite.NewEngine(path, 0, 32<<20), 1, time.Now, func() {})
	notes := kv.New(pool, nil)
	writer, err := pool.Engine.Dial(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if err := pool.Start(t.Context(), writer, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	held, was := map[string]string{}, []string{}
	before := 0
	for round := range 3 {
		for range 300 {
			name := fmt.Sprint("walk/", rng.IntN(300))
			if old, ok := held[name]; ok {
				was = append(was, old[:min(len(old), 16)])
			}
			if rng.IntN(3) == 0 {
				delete(held, name)
				if err := notes.SetValue(t.Context(), name, nil); err != nil {
					t.Fatal(err)
				}
				continue
			}
			held[name] = noise(rng, 24+rng.IntN(1<<rng.IntN(15)))
			if err := notes.SetValue(t.Context(), name, []byte(held[name])); err != nil {
				t.Fatal(err)
			}
		}
		for _, text := range was {
			before += len(holds(t, dir, text))
		}
		n, err := pool.Engine.Sanitize(t.Context(), pool)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range was {
			if found := holds(t, dir, text); len(found) > 0 {
				t.Fatalf("round %d: %s is still in %s", round, text, found)
			}
		}
		if again, err := pool.Engine.Sanitize(t.Context(), pool); err != nil || again != 0 {
			t.Fatalf("cleaned again: %d bytes, %v", again, err)
		}
		t.Logf("round %d: %d bytes overwritten, %d texts were", round, n, len(was))
		was = was[:0]
		all, err := notes.ReadValues(t.Context(), "walk/")
		if err != nil || len(all) != len(held) {
			t.Fatalf("%d notes, %v, want %d", len(all), err, len(held))
		}
		for name, text := range held {
			if string(all[name]) != text {
				t.Fatalf("%s is not what it was", name)
			}
		}
		var sound string
		err = storetest.SQL(t, path).QueryRow("PRAGMA integrity_check").Scan(&sound)
		if err != nil || sound != "ok" {
			t.Fatalf("integrity: %s, %v", sound, err)
		}
	}
	if before == 0 {
		t.Fatal("nothing remained before either: this test cannot fail")
	}
}
