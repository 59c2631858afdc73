// Tests of what a backup contains, and of files that change while it is written.

package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"understudy/internal/checktest"
	"understudy/internal/datadir"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// parts are the files of a data folder that a backup has.
var parts = map[string]string{
	"audit/20261130T120000Z-00000000/header":                   "the header",
	"audit/20261130T120000Z-00000000/00000000000000000001.wal": "a line of the audit log",
	"audit.heads": "checkpoints", "audit.key": "a key", "ca.key": "another key", "ca.pem": "a certificate",
	"media/index/ab/abcd.json": "an index entry", "media/content/cd/cdef": strings.Repeat("a voice ", 100),
}

// others are the files of a data folder that no backup has.
var others = map[string]string{
	"audit/20261130T120000Z-00000000/lock": "", "lock": "", "run.json": "a token", "access.log": "requests", "media/new/content-1": "a half",
	"understudy.db": "the database, which is open", "understudy.db-wal": "its log", "intents": "writes", "profiles/heap": "a profile",
}

func writeFiles(t testing.TB, dir string, files ...map[string]string) {
	t.Helper()
	for _, some := range files {
		for name, text := range some {
			path := filepath.Join(dir, filepath.FromSlash(name))
			checktest.MustNoError(t, os.MkdirAll(filepath.Dir(path), 0o700), "make a folder")
			checktest.MustNoError(t, os.WriteFile(path, []byte(text), 0o600), "write %s", name)
		}
	}
}

// readFiles returns the files below a folder.
func readFiles(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		files[name] = string(data)
		return err
	})
	checktest.MustNoError(t, err, "read the folder")
	return files
}

// newOptions returns the options of a backup of a new data folder.
func newOptions(t testing.TB) Options {
	dir, more := t.TempDir(), t.TempDir()
	writeFiles(t, dir, parts, others)
	writeFiles(t, more, map[string]string{"understudy.yml": "settings", "users": "hashes"})
	return Options{Dir: dir, Version: "v1", Contents: true, Keys: true, Now: func() time.Time { return now },
		More:     map[string]string{datadir.SettingsFile: filepath.Join(more, "understudy.yml"), datadir.UsersFile: filepath.Join(more, "users")},
		CopyPath: filepath.Join(dir, datadir.StoreFile+"-backup"),
		Copy: func(_ context.Context, path string) error {
			return os.WriteFile(path, []byte("a copy of the database"), 0o600)
		}}
}

// write writes a backup and returns its path.
func write(t testing.TB, o Options) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "backup.tar.zst")
	size, err := Write(t.Context(), o, to)
	checktest.MustNoError(t, err, "Write")
	info, err := os.Stat(to)
	checktest.MustNoError(t, err, "stat")
	checktest.Equal(t, info.Size(), size, "the size")
	checktest.Equal(t, info.Mode().Perm(), fs.FileMode(0o600), "the mode")
	left, err := filepath.Glob(filepath.Join(o.Dir, datadir.StoreFile+"-backup*"))
	checktest.True(t, err == nil && len(left) == 0, "the copy %v of the database is left (%v)", left, err)
	return to
}

func TestRestoredFolderHasTheSameFiles(t *testing.T) {
	isKey := func(name string) bool { return strings.HasSuffix(name, ".key") || name == "ca.pem" || name == "users" }
	for name, has := range map[string]struct{ contents, keys, database bool }{
		"everything": {true, true, true}, "no contents": {false, true, true}, "no keys": {true, false, true}, "PostgreSQL": {true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOptions(t)
			o.Contents, o.Keys = has.contents, has.keys
			want := map[string]string{"settings.yml": "settings", "users": "hashes", "understudy.db": "a copy of the database",
				"paused": ""}
			for name, text := range parts {
				want[name] = text
			}
			if !has.database {
				o.CopyPath = ""
				delete(want, "understudy.db")
			}
			for name := range want {
				if !has.keys && isKey(name) || !has.contents && strings.HasPrefix(name, "media/") {
					delete(want, name)
				}
			}
			in, err := os.Open(write(t, o))
			checktest.MustNoError(t, err, "open")
			defer in.Close()
			dir := t.TempDir()
			m, err := Restore(t.Context(), in, dir)
			checktest.MustNoError(t, err, "Restore")
			checktest.Equal(t, m.Version, "v1", "the version")
			got := readFiles(t, dir)
			for name, text := range want {
				checktest.Equal(t, got[name], text, "%s", name)
			}
			checktest.Equal(t, len(got), len(want), "files")
		})
	}
}

// The archive is a plain tar file: the parts, and the manifest as the last file.
func TestManifestIsLast(t *testing.T) {
	in, err := os.Open(write(t, newOptions(t)))
	checktest.MustNoError(t, err, "open")
	defer in.Close()
	packed, err := zstd.NewReader(in)
	checktest.MustNoError(t, err, "zstd")
	defer packed.Close()
	last := ""
	for archive := tar.NewReader(packed); ; {
		h, err := archive.Next()
		if err != nil {
			break
		}
		last = h.Name
	}
	checktest.Equal(t, last, "manifest.json", "the last file")
}

func TestInterruptedBackupLeavesNoFile(t *testing.T) {
	o, folder := newOptions(t), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	o.Report = func(done, total int64) {
		if done > total/2 {
			cancel()
		}
	}
	_, err := Write(ctx, o, filepath.Join(folder, "backup.tar.zst"))
	checktest.True(t, errors.Is(err, context.Canceled), "Write: %v", err)
	checktest.Equal(t, len(readFiles(t, folder)), 0, "files")
	o.Copy = func(context.Context, string) error { return errors.New("the database is locked") }
	_, err = Write(t.Context(), o, filepath.Join(folder, "backup.tar.zst"))
	checktest.True(t, err != nil && strings.Contains(err.Error(), "the database is locked"), "Write: %v", err)
	checktest.Equal(t, len(readFiles(t, folder)), 0, "files")
}

func TestExistingFileIsNotReplaced(t *testing.T) {
	o := newOptions(t)
	to := filepath.Join(o.Dir, datadir.StoreFile)
	_, err := Write(t.Context(), o, to)
	checktest.True(t, err != nil && strings.Contains(err.Error(), "exists already"), "Write: %v", err)
	checktest.Equal(t, readFiles(t, o.Dir)[datadir.StoreFile], others[datadir.StoreFile], "the database")
}

// A content may be evicted while the backup is written, but a file of the audit log may not be missing.
func TestFileThatVanishes(t *testing.T) {
	for name, isFine := range map[string]bool{
		"media/content/cd/cdef": true, "audit/20261130T120000Z-00000000/00000000000000000001.wal": false,
	} {
		o := newOptions(t)
		o.Report = func(int64, int64) { _ = os.Remove(filepath.Join(o.Dir, filepath.FromSlash(name))) }
		_, err := Write(t.Context(), o, filepath.Join(t.TempDir(), "backup.tar.zst"))
		checktest.Equal(t, err == nil, isFine, "%s vanishes: %v", name, err)
	}
}

// TestLogIsReadAsOfOneMoment: records are appended while the file is read, and no record is missing before another one.
func TestLogIsReadAsOfOneMoment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	const records, size = 2000, 64
	whole := make([]byte, records*size)
	for i := range whole {
		whole[i] = byte(1 + i%251)
	}
	checktest.MustNoError(t, os.WriteFile(path, make([]byte, len(whole)), 0o600), "write zeros")
	out, err := os.OpenFile(path, os.O_WRONLY, 0)
	checktest.MustNoError(t, err, "open")
	defer out.Close()
	done := make(chan error, 1)
	go func() {
		for at := 0; at < len(whole); at += size {
			if _, err := out.WriteAt(whole[at:at+size], int64(at)); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for ended := false; !ended; {
		select {
		case err := <-done:
			checktest.MustNoError(t, err, "append")
			ended = true
		default:
		}
		got, err := readLog(path)
		checktest.MustNoError(t, err, "readLog")
		text := bytes.TrimRight(got, "\x00")
		if !bytes.HasPrefix(whole, text) {
			t.Fatalf("%d bytes are not the beginning of what was written", len(text))
		}
		if ended {
			checktest.Equal(t, len(text), len(whole), "bytes after the last record")
		}
	}
}
