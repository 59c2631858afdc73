// This file creates the file of a database and keeps it to one user.

package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// MakeFile creates the folder, and an empty file that only this user may read. It does not open an existing
// file, because closing it would release SQLite's locks.
func MakeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return stripPath(err)
	}
	if info, err := os.Stat(path); err == nil {
		if !info.Mode().IsRegular() {
			return errors.New("it is not a file")
		}
		return restrictAccess(path)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return stripPath(err)
	}
	return f.Close()
}

// restrictAccess removes the access of other users from an existing database and from the files that SQLite keeps
// beside it. SQLite gives such files the mode of the database. It returns an error if the modes cannot be
// changed.
func restrictAccess(path string) error {
	if runtime.GOOS == "windows" {
		return nil // Windows has no such modes
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().Perm()&0o077 == 0 {
			continue
		}
		if err == nil {
			err = os.Chmod(name, info.Mode().Perm()&0o700)
		}
		if err != nil {
			return fmt.Errorf("others may open %s, and its mode cannot be changed: %w", filepath.Base(name), err)
		}
	}
	return nil
}

// stripPath removes the path from a file system error, because the sentence around the error names the path
// already.
func stripPath(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("cannot write there: %w", pe.Err)
	}
	return err
}
