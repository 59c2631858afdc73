// Folder: nobody else looks into it.

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// L14: a data folder of 0755 stayed so. One that holds somebody's other files is
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
		f, err := openFolder(dir, false)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("with %q: %v, %v; want %v", name, info.Mode(), err, want)
		}
		if _, err := openFolder(dir, false); err == nil {
			t.Error("it is opened twice")
		}
		if err := f.close(); err != nil {
			t.Error(err)
		}
	}
}
