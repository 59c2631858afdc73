// A file that becomes smaller while it is used: nothing is lost, and nothing erased is left.

package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/internal/store"
	"understudy/internal/store/erase"
	"understudy/internal/store/names"
	"understudy/internal/store/sqlite"
	"understudy/internal/store/storetest"
)

// shrunkRecords is the number of records that are saved. Four of five are erased.
const shrunkRecords = 500

// openShrunk opens the store of calls of which those after the first shrunkRecords/5 are too old.
func openShrunk(t testing.TB, path string) *store.DB {
	t.Helper()
	keep := map[string]map[string]time.Duration{storetest.Source: {"calls": shrunkRecords / 5 * 37 * time.Second}}
	d, err := store.Open(t.Context(), store.Options{Path: path, Specs: storetest.Specs(t), SaveTime: storetest.Patience,
		Retention: keep, Now: func() time.Time { return storetest.Epoch }})
	checktest.MustNoError(t, err, "open")
	return d
}

// shrinkable is the content of a file from which four of five records were erased.
var shrinkable struct {
	sync.Once
	content []byte
}

// fillShrunk writes a file from which four of five records were erased. It returns texts that were erased.
func fillShrunk(t testing.TB, path string) (w *storetest.World, erased []string) {
	t.Helper()
	w = storetest.NewWorld(7, shrunkRecords)
	for n := shrunkRecords / 2; n < shrunkRecords; n += 50 {
		erased = append(erased, w.Person(n))
	}
	shrinkable.Do(func() {
		eraseShrunk(t, path, w)
		content, err := os.ReadFile(path)
		checktest.MustNoError(t, err, "read the file")
		shrinkable.content = content
	})
	checktest.MustNoError(t, os.WriteFile(path, shrinkable.content, 0o600), "write the file")
	return w, erased
}

// oldIDs is a page whose ids are stored as earlier versions did. Shrink stores them in a shorter form.
func oldIDs() *understudy.Page {
	p := &understudy.Page{Key: understudy.Key{Source: "api", URI: "/old"}, Kind: "old", Shape: "old", Status: 200, At: storetest.Epoch}
	for n := range 50 {
		id, start := fmt.Sprintf("ad91e02b-a147-4c47-aa8c-%012d", n), len(p.Body)
		p.Body = fmt.Appendf(p.Body, `{"id":%q}`, id)
		p.Rows = append(p.Rows, understudy.Row{ID: id, Start: start, End: len(p.Body)})
	}
	return p
}

// setNeeds says which step of the schema a program must know.
func setNeeds(t testing.TB, path string, step int) {
	t.Helper()
	file := storetest.SQL(t, path)
	_, err := file.Exec("UPDATE counter SET needs = ?", step)
	checktest.MustNoError(t, errors.Join(err, file.Close()), "set needs")
}

// eraseShrunk saves the calls and the old ids, and erases the calls that are too old.
func eraseShrunk(t testing.TB, path string, w *storetest.World) {
	t.Helper()
	checktest.MustNoError(t, openShrunk(t, path).Close(), "close")
	setNeeds(t, path, 0)
	old := openShrunk(t, path)
	_, err := old.Save(t.Context(), oldIDs())
	checktest.MustNoError(t, errors.Join(err, old.Close()), "save old ids")
	setNeeds(t, path, 14)
	all, err := store.Open(t.Context(), store.Options{Path: path, Specs: storetest.Specs(t), SaveTime: storetest.Patience})
	checktest.MustNoError(t, err, "open")
	for from := 0; from < shrunkRecords; from += 50 {
		saveShrunk(t, all, w, from)
	}
	checktest.MustNoError(t, all.Close(), "close")
	d := openShrunk(t, path)
	defer d.Close()
	n, err := d.Expire(t.Context(), storetest.Source, "calls")
	checktest.MustNoError(t, err, "expire")
	checktest.MustTrue(t, n > shrunkRecords/2, "%d records are too old", n)
	_, err = d.Eraser.EraseListed(t.Context(), erase.Job{})
	checktest.MustNoError(t, err, "erase")
}

func saveShrunk(t testing.TB, d *store.DB, w *storetest.World, from int) {
	t.Helper()
	p, _ := w.List(50, from/50, from, storetest.Epoch)
	_, err := d.Save(t.Context(), p)
	checktest.MustNoError(t, err, "save page %d", from/50)
}

// checkShrunk checks that the store is whole, and that no file has an erased text.
func checkShrunk(t testing.TB, d *store.DB, path string, w *storetest.World, erased []string) {
	t.Helper()
	r, err := d.Verifier.Verify(t.Context())
	checktest.MustNoError(t, err, "verify")
	checktest.MustTrue(t, len(r.Problems) == 0, "problems: %q", r.Problems)
	for from := 0; from < shrunkRecords/5; from += 50 {
		want, _ := w.List(50, from/50, from, storetest.Epoch)
		got, err := d.ReadPage(t.Context(), want.Key)
		checktest.MustNoError(t, err, "page %d", from/50)
		checktest.MustTrue(t, bytes.Equal(got.Body, want.Body), "page %d has changed", from/50)
	}
	for _, row := range oldIDs().Rows {
		_, err := d.Record(t.Context(), "api", "old", "old", row.ID)
		checktest.MustNoError(t, err, "read %s", row.ID)
	}
	files, err := filepath.Glob(path + "*")
	checktest.MustNoError(t, err, "list the files")
	for _, name := range files {
		data, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		checktest.MustNoError(t, err, "read a file")
		for _, text := range erased {
			checktest.True(t, !bytes.Contains(data, []byte(text)), "%s contains the erased %s", filepath.Base(name), text)
		}
	}
}

// TestShrinkBesideReadersAndWriters: reads and saves go on, and later erasures clean the new file.
func TestShrinkBesideReadersAndWriters(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "understudy.db")
	w, erased := fillShrunk(t, path)
	d := openShrunk(t, path)
	defer d.Close()
	stop, users := make(chan struct{}), sync.WaitGroup{}
	for n := range 3 {
		users.Go(func() {
			for from := 0; ; from = (from + 50) % (shrunkRecords / 5) {
				select {
				case <-stop:
					return
				default:
				}
				if n == 0 {
					saveShrunk(t, d, w, from)
					continue
				}
				want, _ := w.List(50, from/50, from, storetest.Epoch)
				got, err := d.ReadPage(t.Context(), want.Key)
				checktest.NoError(t, err, "read page %d", from/50)
				checktest.True(t, err != nil || bytes.Equal(got.Body, want.Body), "page %d has changed", from/50)
			}
		})
	}
	before, after, err := d.Shrink(t.Context())
	checktest.NoError(t, err, "shrink")
	_, again, err := d.Shrink(t.Context())
	checktest.NoError(t, err, "shrink again")
	close(stop)
	users.Wait()
	checktest.True(t, after.File < before.File*9/10, "%d bytes after %d", after.File, before.File)
	checktest.True(t, again.File <= after.File*11/10, "%d bytes after %d", again.File, after.File)
	mode, err := os.Stat(path)
	checktest.MustNoError(t, err, "stat")
	checktest.Equal(t, mode.Mode().Perm(), 0o600, "mode of the file")
	_, err = os.Stat(path + sqlite.CopySuffix)
	checktest.True(t, errors.Is(err, os.ErrNotExist), "the copy is left: %v", err)
	checkShrunk(t, d, path, w, erased)
	forms, err := store.FindShorterIDs(t.Context(), d)
	checktest.NoError(t, err, "advise")
	canShorten := slices.ContainsFunc(forms, func(f names.Form) bool { return f.Saves > 0 })
	checktest.True(t, !canShorten, "ids of earlier versions are left: %v", forms)

	_, _, err = d.Eraser.EraseNumber(t.Context(), storetest.Source, "calls/"+w.ID(3))
	checktest.NoError(t, err, "list a record")
	_, err = d.Eraser.EraseListed(t.Context(), erase.Job{})
	checktest.NoError(t, err, "erase a record after the file was shrunk")
	r, err := d.Verifier.Verify(t.Context())
	checktest.NoError(t, err, "verify")
	checktest.Equal(t, len(r.Problems), 0, "problems after an erasure")
}

func TestShrinkWhileAnotherHandleIsOpenChangesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "understudy.db")
	w, erased := fillShrunk(t, path)
	d := openShrunk(t, path)
	defer d.Close()
	other := openShrunk(t, path)
	_, err := other.ReadStats(t.Context())
	checktest.NoError(t, err, "read beside")
	before, _, err := d.Shrink(t.Context())
	checktest.Contains(t, fmt.Sprint(err), "another process has opened the database", "the error")
	saveShrunk(t, other, w, 0)
	saveShrunk(t, d, w, 50)
	checkShrunk(t, d, path, w, erased)
	checktest.NoError(t, other.Close(), "close the other handle")
	_, after, err := d.Shrink(t.Context())
	checktest.NoError(t, err, "shrink")
	checktest.True(t, after.File < before.File*9/10, "%d bytes after %d", after.File, before.File)
	checkShrunk(t, d, path, w, erased)
}

const shrinkVariable = "UNDERSTUDY_SHRINK_CHILD"

// TestShrinkChild is the child of TestShrinkIsKilled: it shrinks the file until it is killed.
func TestShrinkChild(t *testing.T) {
	path := os.Getenv(shrinkVariable)
	if path == "" {
		return
	}
	d := openShrunk(t, path)
	fmt.Println("open")
	for {
		if _, _, err := d.Shrink(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestShrinkIsKilled(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "understudy.db")
	w, erased := fillShrunk(t, path)
	for n := range sample.Count(3, 100) {
		for _, name := range []string{path + "-wal", path + "-shm"} {
			_ = os.Remove(name)
		}
		checktest.MustNoError(t, os.WriteFile(path, shrinkable.content, 0o600), "write the file as it was")
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestShrinkChild$")
		c.Env = append(slices.Clone(os.Environ()), shrinkVariable+"="+path)
		out, err := c.StdoutPipe()
		checktest.MustNoError(t, err, "StdoutPipe")
		checktest.MustNoError(t, c.Start(), "start")
		line := make([]byte, len("open\n"))
		_, err = io.ReadFull(out, line)
		checktest.MustNoError(t, err, "read from the child")
		checktest.MustEqual(t, strings.TrimSpace(string(line)), "open", "what the child says")
		kill := time.AfterFunc(rand.N(300*time.Millisecond), func() { _ = c.Process.Kill() })
		rest, _ := io.ReadAll(out)
		_ = c.Wait()
		kill.Stop()
		checktest.MustTrue(t, len(rest) == 0, "kill %d: the child said %s", n, rest)
		d := openShrunk(t, path)
		checkShrunk(t, d, path, w, erased)
		saveShrunk(t, d, w, 0)
		checktest.MustNoError(t, d.Close(), "close")
	}
}
