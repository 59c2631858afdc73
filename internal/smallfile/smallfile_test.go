//go:build unix

package smallfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What is no regular file is refused at once: nobody writes to the pipe, and the device has no end.
func TestPipeAndDeviceAreRefused(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, dir, "/dev/zero", "/dev/null"} {
		if _, err := Read(path, 100); err == nil || !strings.Contains(err.Error(), path+" is a folder, a pipe or a device") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := Read(filepath.Join(dir, "absent"), 100); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
}

// A pipe by the name that a shell gives it is read, and no file beyond its bound.
func TestPipeOfAShellIsRead(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("hunter2\n"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := Read(fmt.Sprintf("/dev/fd/%d", r.Fd()), 100)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != "hunter2\n" {
		t.Errorf("read %q", got)
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), 11), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(path, 11); err != nil || len(got) != 11 {
		t.Errorf("at the bound: %d bytes, %v", len(got), err)
	}
	if _, err := Read(path, 10); err == nil || !strings.Contains(err.Error(), "larger than 10 bytes") {
		t.Errorf("beyond the bound: %v", err)
	}
}
