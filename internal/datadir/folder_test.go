// Folder: no other user may read it.

package datadir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// L14: a data folder of 0755 stayed so. One that holds other files is
// left as it is.
func TestAnOpenDataFolderIsTightened(t *testing.T) {
	for name, want := range map[string]os.FileMode{"": 0o700, "understudy.db": 0o700, "notes.txt": 0o755} {
		dir := filepath.Join(t.TempDir(), "data")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if name != "" {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		f, err := Open(dir, false)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("with %q: %v, %v; want %v", name, info.Mode(), err, want)
		}
		if _, err := Open(dir, false); err == nil {
			t.Error("it is opened twice")
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestFolderIsHeldOnce(t *testing.T) {
	dir := t.TempDir()
	f, err := Open(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.WriteRunning("http://127.0.0.1:4114", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, false); err == nil || !strings.Contains(err.Error(), "held by the server with viewer http://127.0.0.1:4114") {
		t.Errorf("second: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// A folder with every file that a server makes is closed to others.
func TestFolderOfOurFilesIsClosedToOthers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"intents", "profiles", StoreFile, "audit"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := restrictAccess(dir); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o700 {
		t.Errorf("the folder is open to others: %o", got)
	}
}

// The process of another container cannot be looked at, but it holds the lock.
func TestServerOfAnotherContainerIsFound(t *testing.T) {
	dir := t.TempDir()
	f, err := Open(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	run := NewRunning("http://127.0.0.1:4114", f.Token, "")
	run.PID, run.Start = 1, run.Start+1
	if err := f.file.Write(run); err != nil {
		t.Fatal(err)
	}
	if server, _, err := OpenOrFindServer(dir); err != nil || *server != run {
		t.Errorf("found %v, %v", server, err)
	}
	if got, err := ReadRunning(dir); err != nil || got != run {
		t.Errorf("read %v, %v", got, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
