// Package datadir is the data folder: its lock, its files and what it says of the
// server that uses it.
package datadir

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Dir is a locked data folder.
type Dir struct {
	Path  string
	lock  *os.File
	temp  bool   // removed at the end
	Token string // what commands to the server have to bear
}

// Running is what run.json says of the server that holds a folder. Whoever may
// read it may tell the server what to do.
type Running struct {
	PID    int    `json:"pid"`
	Viewer string `json:"viewer"`
	Token  string `json:"token"`
}

// HeldError is that of a folder another server holds.
type HeldError struct {
	error
	by Running // zero: it did not say
}

// Open makes the folder when it is missing and locks it. A second server
// gets a HeldError that names the first.
func Open(path string, temp bool) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w; choose another with --data", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w; choose another with --data", err)
	}
	held, err := TryLock(lock)
	if err == nil {
		if err := tighten(path); err != nil {
			return nil, errors.Join(err, lock.Close())
		}
		return &Dir{Path: path, lock: lock, temp: temp, Token: rand.Text()}, nil
	}
	_ = lock.Close()
	if !held {
		return nil, fmt.Errorf("data folder %s: lock: %w", path, err)
	}
	who := "another server"
	info, err := ReadRunning(path)
	if err == nil {
		who = fmt.Sprintf("the server with viewer %s (process %d)", info.Viewer, info.PID)
	}
	return nil, HeldError{fmt.Errorf("data folder %s is held by %s; stop it or choose another with --data", path, who), info}
}

// ownFiles are what the names of everything in a data folder begin with.
var ownFiles = []string{"lock", "run.json", StoreFile, MediaFolder, "slowapi.journal", "access.log", DemoFile, AuditName,
	AuthorityFile, AuthorityKeyFile, "intents", "profiles", ".new-"}

// tighten takes the rights of others from a data folder that holds nothing but
// our files. One that holds more has another use too: what is ours
// in it has its own mode.
func tighten(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o077 == 0 || runtime.GOOS == "windows" {
		return err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	for _, e := range entries {
		if !slices.ContainsFunc(ownFiles, func(own string) bool { return strings.HasPrefix(e.Name(), own) }) {
			return nil
		}
	}
	if err := os.Chmod(path, 0o700); err != nil && info.Mode().Perm()&0o002 != 0 {
		return fmt.Errorf("data folder: everybody may write to %s (mode %04o), and that cannot be changed: %w", path, info.Mode().Perm(), err)
	}
	return nil
}

// Announce writes run.json, readable by its owner alone.
func (f *Dir) Announce(viewer string) error {
	data, err := json.Marshal(Running{PID: os.Getpid(), Viewer: viewer, Token: f.Token})
	if err != nil {
		return err
	}
	return WriteFile(filepath.Join(f.Path, "run.json"), append(data, '\n'))
}

func ReadRunning(path string) (Running, error) {
	var info Running
	data, err := os.ReadFile(filepath.Join(path, "run.json"))
	if err != nil {
		return info, err
	}
	return info, json.Unmarshal(data, &info)
}

// WriteFile replaces a file whole, or leaves it as it was.
func WriteFile(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // nothing to remove once renamed
	if _, err = tmp.Write(data); err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// close gives the folder back, and removes a temporary one.
func (f *Dir) Close() error {
	if f.temp {
		err := f.lock.Close() // first: Windows removes no open file
		return errors.Join(err, os.RemoveAll(f.Path))
	}
	err := os.Remove(filepath.Join(f.Path, "run.json"))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, f.lock.Close())
}

// Hold is the server that holds a data folder or, when none does, the folder,
// which the caller closes.
func Hold(data string) (server *Running, dir *Dir, err error) {
	dir, err = Open(data, false)
	var held HeldError
	if errors.As(err, &held) && held.by.Viewer != "" {
		return &held.by, nil, nil
	}
	return nil, dir, err
}

// store is the path of the database.
func (f *Dir) Database(dsn string) string {
	if dsn != "" {
		return dsn
	}
	return filepath.Join(f.Path, StoreFile)
}

// StoreFile is the database's name in the data folder.
const StoreFile = "understudy.db"

// MediaFolder holds the contents of records in the data folder.
const MediaFolder = "media"

// AuditName is what the audit log's folder is called in the data folder. Its key and the
// newest checkpoints lie beside it, in files whose names begin so.
const AuditName = "audit"

// AuthorityFile and AuthorityKeyFile are the certificate and the key of the certificate
// authority for tunnels. The key is for nobody else to read.
const (
	AuthorityFile    = "ca.pem"
	AuthorityKeyFile = "ca.key"
)

// DemoFile is where a demo's data folder remembers its world.
const DemoFile = "demo.json"
