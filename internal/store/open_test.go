// What is there is checked, and never replaced.

package store_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

func TestReopened(t *testing.T) {
	path, pages := storetest.Filled(t)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v: want 0600", info.Mode(), err)
	}
	for range 2 {
		db := storetest.OpenAt(t, path)
		for _, p := range pages {
			got, err := db.ReadPage(t.Context(), p.Key)
			checktest.MustNoError(t, err, "page %s", p.Key)
			checktest.MustTrue(t, bytes.Equal(got.Body, p.Body), "page %s: got.Body is %q, want %q", p.Key, got.Body,
				p.Body)
			checktest.MustTrue(t, !got.Superseded, "page %s: got.Superseded is true", p.Key)
		}
		saved, err := db.Save(t.Context(), pages[0])
		if err != nil || len(saved.Changes) != 0 {
			t.Fatalf("saved again: %v, %v", saved.Changes, err)
		}
		{
			k, err := db.ReadKinds(t.Context(), storetest.Source)
			checktest.MustNoError(t, err, "kinds")
			checktest.MustEqual(t, len(k), 1, "kinds: len(k)")
			checktest.MustEqual(t, k[0].Records, 600, "kinds: k[0].Records")
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenKeepsWhatItCannotRead(t *testing.T) {
	edit := func(statements ...string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			db := storetest.SQL(t, path)
			defer db.Close()
			for _, s := range statements {
				if _, err := db.Exec(s); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	write := func(data []byte) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name  string
		fresh bool // there is no file before
		spoil func(t *testing.T, path string)
		want  string
	}{
		{"garbage", true, write(bytes.Repeat([]byte("not a database\n"), 1000)), "not a database"},
		{"short garbage", true, write([]byte("hello")), "not a database"},
		{"another program's", true, edit("CREATE TABLE t (x)", "INSERT INTO t VALUES (1)"), "another program"},
		{"another program's, empty", true, edit("PRAGMA application_id = 7", "CREATE TABLE t (x)", "DROP TABLE t"), "another program"},
		{"newer", false, edit("INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)",
			"UPDATE counter SET needs = 99"), "newer Understudy"},
		{"truncated", false, func(t *testing.T, path string) {
			info, err := os.Stat(path)
			if err == nil {
				err = os.Truncate(path, info.Size()/2)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, "damaged"},
		{"header gone", false, func(t *testing.T, path string) {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err == nil {
				_, err = f.WriteAt(make([]byte, 100), 0)
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
		}, "not a database"},
		{"a folder", true, func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "not a file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "understudy.db")
			if !c.fresh {
				path, _ = storetest.Filled(t)
			}
			c.spoil(t, path)
			before, _ := os.ReadFile(path)
			db, err := store.Open(t.Context(), store.Options{Path: path})
			if err == nil {
				_ = db.Close()
				t.Fatal("it was opened")
			}
			checktest.Contains(t, err.Error(), c.want, "error: err.Error()")
			checktest.True(t, strings.HasPrefix(err.Error(), "store: open "), "error: err.Error() is %q",
				err.Error())
			checktest.Lacks(t, err.Error(), "\n", "error: err.Error()")
			after, _ := os.ReadFile(path)
			if !bytes.Equal(before, after) {
				t.Errorf("the file was changed: %d bytes, then %d", len(before), len(after))
			}
		})
	}
}

func TestEmptyFileIsAFreshStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "understudy.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	db := storetest.OpenAt(t, path)
	if k, err := db.ReadKinds(t.Context(), storetest.Source); err != nil || len(k) != 0 {
		t.Errorf("kinds %v, %v", k, err)
	}
}

func TestFolderThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	paths := []string{filepath.Join(file, "understudy.db")}
	if _, err := os.Stat("/proc/self"); err == nil {
		paths = append(paths, "/proc/understudy.db")
	}
	for _, path := range paths {
		_, err := store.Open(t.Context(), store.Options{Path: path})
		checktest.MustTrue(t, err != nil, "%s: err is nil", path)
		checktest.Contains(t, err.Error(), "--data", "%s: err.Error()", path)
		checktest.True(t, !errors.Is(err, fs.ErrExist), "%s: errors.Is(err, fs.ErrExist) is true", path)
	}
}

// Opening reads a few rows, whatever is held.
func TestOpenIsQuick(t *testing.T) {
	path, _ := storetest.Filled(t)
	best := time.Hour
	for range 5 {
		before := storetest.CPUTime()
		db := storetest.OpenAt(t, path)
		best = min(best, storetest.CPUTime()-before)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if best > 250*time.Millisecond {
		t.Errorf("opening took %v of processor time at best", best)
	}
}

// L14: a database that others may open, as one restored from a copy, is closed to them.
func TestAnOpenDatabaseIsTightened(t *testing.T) {
	path, _ := storetest.Filled(t)
	for name, mode := range map[string]fs.FileMode{path: 0o644, path + "-wal": 0o666, path + "-shm": 0o644} {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, mode)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Chmod(mode), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	storetest.OpenAt(t, path)
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", filepath.Base(name), info.Mode(), err)
		}
	}
}

// A file of the first schema is migrated, and what it holds is there.
func TestAFileOfTheFirstSchema(t *testing.T) {
	path := storetest.File(t)
	db, err := store.Open(t.Context(), store.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.KV.SetValue(t.Context(), "walk/calls", []byte("page 7")), db.Close()); err != nil {
		t.Fatal(err)
	}
	file := storetest.SQL(t, path)
	undo := []string{"ALTER TABLE kv RENAME TO note", "DROP TABLE annotation", "DROP TABLE pending", "DROP TABLE node",
		"DROP TABLE node_claim", "DROP TABLE written", "DROP TABLE budget", "DROP INDEX page_whole",
		"DROP INDEX job_outcome", "DROP TABLE job_kind",
		"DELETE FROM goose_db_version WHERE version_id > 1"}
	for _, topic := range []string{"catalog", "annotations", "indexes", "words", "moves", "silent", "erasures", "sessions", "credentials",
		"watches", "keys", "kinds", "pages", "position", "needs", "progress", "jobs"} {
		undo = append(undo, "ALTER TABLE counter DROP COLUMN "+topic)
	}
	for _, s := range undo {
		if _, err := file.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if db, err = store.Open(t.Context(), store.Options{Path: path}); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if value, err := db.KV.Value(t.Context(), "walk/calls"); err != nil || string(value) != "page 7" {
		t.Errorf("%q, %v", value, err)
	}
	if all := db.Annotations.Annotations("twilio", "calls"); len(all) > 0 {
		t.Errorf("annotations: %v", all)
	}
}
