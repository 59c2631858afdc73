// Package datadir manages the data folder of a server: its lock, the names of its files, and run.json, which
// tells commands how to reach the server.
package datadir

import (
	"cmp"
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
	temp  bool   // whether Close removes the folder
	Token string // the token that commands send to the server
}

// Running is the content of run.json: how to reach the server that uses a data folder. A process that can read the
// file can send commands to the server.
type Running struct {
	PID    int    `json:"pid"`
	Viewer string `json:"viewer"` // the URL of the viewer
	Token  string `json:"token"`
}

// InUseError is the error of Open if a server already uses the folder.
type InUseError struct {
	error
	server Running // the server that uses the folder; zero if run.json could not be read
}

// Open locks the data folder and creates it if needed. If another server uses the folder, it returns an InUseError
// that names that server. If temp is true, Close removes the folder.
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
		if err := restrictAccess(path); err != nil {
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
	return nil, InUseError{fmt.Errorf("data folder %s is held by %s; stop it or choose another with --data", path, who), info}
}

// ownFiles are the beginnings of the names of all files that Understudy creates in a data folder.
var ownFiles = []string{"lock", "run.json", StoreFile, MediaFolder, "slowapi.journal", "access.log", DemoFile, AuditName,
	AuthorityFile, AuthorityKeyFile, "intents", "profiles", ".new-"}

// restrictAccess removes the rights of group and others from a data folder that contains only Understudy's files. A
// folder with other files keeps its mode, because it has another purpose too. Understudy's files in the folder have
// their own mode.
func restrictAccess(path string) error {
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

// WriteRunning writes run.json, which only its owner can read. viewer is the URL of the viewer.
func (f *Dir) WriteRunning(viewer string) error {
	data, err := json.Marshal(Running{PID: os.Getpid(), Viewer: viewer, Token: f.Token})
	if err != nil {
		return err
	}
	return WriteFile(filepath.Join(f.Path, "run.json"), append(data, '\n'))
}

// ReadRunning reads run.json in a data folder.
func ReadRunning(path string) (Running, error) {
	var info Running
	data, err := os.ReadFile(filepath.Join(path, "run.json"))
	if err != nil {
		return info, err
	}
	return info, json.Unmarshal(data, &info)
}

// WriteFile replaces a file atomically. After an error or a crash the file has its old content.
func WriteFile(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // fails if the file was renamed, which is the normal case
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

// Close unlocks the folder and removes run.json. If the folder is temporary, Close removes it.
func (f *Dir) Close() error {
	if f.temp {
		err := f.lock.Close() // closed before the folder is removed, because Windows cannot remove an open file
		return errors.Join(err, os.RemoveAll(f.Path))
	}
	err := os.Remove(filepath.Join(f.Path, "run.json"))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, f.lock.Close())
}

// OpenOrFindServer opens a data folder. If a server uses the folder, it returns how to reach that server, and dir
// is nil. The caller must close dir.
func OpenOrFindServer(data string) (server *Running, dir *Dir, err error) {
	dir, err = Open(data, false)
	if held, ok := errors.AsType[InUseError](err); ok && held.server.Viewer != "" {
		return &held.server, nil, nil
	}
	return nil, dir, err
}

// DatabasePath returns dsn if it is not empty, else the path of the database in the folder.
func (f *Dir) DatabasePath(dsn string) string {
	return cmp.Or(dsn, filepath.Join(f.Path, StoreFile))
}

// StoreFile is the name of the database in the data folder.
const StoreFile = "understudy.db"

// MediaFolder is the name of the folder for the media contents of records, such as audio files.
const MediaFolder = "media"

// AuditName is the name of the audit log's folder. The names of the files with the log's key and its newest
// checkpoints begin with it.
const AuditName = "audit"

// AuthorityFile and AuthorityKeyFile are the files with the certificate and the key of the certificate
// authority for tunnels. Only the owner can read the key.
const (
	AuthorityFile    = "ca.pem"
	AuthorityKeyFile = "ca.key"
)

// DemoFile is the name of the file in which a demo stores the settings of its imitated API.
const DemoFile = "demo.json"
