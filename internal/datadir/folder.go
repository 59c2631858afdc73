// Package datadir manages the data folder of a server: its lock, the names of its files, and run.json, which
// tells commands how to reach the server.
package datadir

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"understudy/kit/pidfile"
	"understudy/kit/retry"
)

// Dir is a locked data folder.
type Dir struct {
	Path  string
	file  *pidfile.File
	temp  bool   // whether Close removes the folder
	Token string // the token that commands send to the server
}

// Running is the content of run.json: how to reach the server that uses a data folder. A process that can read the
// file can send commands to the server.
type Running struct {
	PID    int    `json:"pid"`
	Start  uint64 `json:"start,omitempty"` // as in pidfile.Process
	Boot   string `json:"boot,omitempty"`
	Viewer string `json:"viewer"` // the URL of the viewer; "" until the server listens, and for a command that uses the folder
	Token  string `json:"token"`
	// Certificate is the fingerprint of the key with which the viewer serves TLS; "" without TLS.
	Certificate string `json:"certificate,omitempty"`
}

// Process returns the process of the server.
func (r Running) Process() pidfile.Process {
	return pidfile.Process{PID: r.PID, Start: r.Start, Boot: r.Boot}
}

// NewRunning describes this process. certificate is the fingerprint of the viewer's key.
func NewRunning(viewer, token, certificate string) Running {
	p := pidfile.Self()
	return Running{PID: p.PID, Start: p.Start, Boot: p.Boot, Viewer: viewer, Token: token, Certificate: certificate}
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
	token := rand.Text()
	file, err := pidfile.Hold(filepath.Join(path, runFile), filepath.Join(path, "lock"), NewRunning("", token, ""))
	if errors.As(err, new(*pidfile.HeldError)) {
		return nil, newInUseError(path)
	}
	if err != nil {
		return nil, fmt.Errorf("data folder: %w; choose another with --data", err)
	}
	if err := restrictAccess(path); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Dir{Path: path, file: file, temp: temp, Token: token}, nil
}

// runFile is the name of the file that says which process uses the folder.
const runFile = "run.json"

// holderTries is how many milliseconds a process that has just locked the folder may take to write its name.
const holderTries = 1000

// newInUseError returns an error that names the process which uses the folder.
func newInUseError(path string) error {
	who, run := "another process", Running{}
	for range holderTries { // all of them if the process is in another container
		run = Running{}
		if pidfile.Read(filepath.Join(path, runFile), &run) == nil && run.isAlive() {
			break
		}
		_ = retry.Wait(context.Background(), time.Millisecond) // which does not end
	}
	switch {
	case run.Viewer != "":
		who = fmt.Sprintf("the server with viewer %s (process %d)", run.Viewer, run.PID)
	case run.PID != 0:
		who = fmt.Sprintf("process %d", run.PID)
	}
	return InUseError{fmt.Errorf("data folder %s is held by %s; stop it or choose another with --data", path, who), run}
}

// isAlive reports whether the process of run.json has not ended. It returns false for a process in another container.
func (r Running) isAlive() bool {
	handle, err := r.Process().Open()
	return err == nil && handle.Release() == nil
}

// ownFiles are the beginnings of the names of all files that Understudy creates in a data folder.
var ownFiles = []string{"lock", runFile, StoreFile, MediaFolder, "slowapi.journal", "access.log", DemoFile, AuditName,
	AuthorityFile, AuthorityKeyFile, CertificateFile, CertificateKeyFile, PausedFile, RestoredFile, SettingsFile, UsersFile,
	"intents", "profiles", ".new-"}

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

// WriteRunning writes the URL of the viewer and the fingerprint of its key into run.json, which only its owner can read.
func (f *Dir) WriteRunning(viewer, certificate string) error {
	return f.file.Write(NewRunning(viewer, f.Token, certificate))
}

// ReadRunning reads which server uses a data folder. Its error wraps os.ErrNotExist if no server that listens does, also if one was killed.
func ReadRunning(path string) (run Running, err error) {
	if run, err = ReadHolder(path); err == nil && run.Viewer == "" {
		return run, fmt.Errorf("process %d does not listen yet: %w", run.PID, os.ErrNotExist)
	}
	return run, err
}

// ReadHolder reads which process uses a data folder, also if it does not listen yet. Its error wraps os.ErrNotExist if none does.
func ReadHolder(path string) (run Running, err error) {
	if err := pidfile.Read(filepath.Join(path, runFile), &run); err != nil || run.isAlive() {
		return run, err
	}
	lock, err := os.Open(filepath.Join(path, "lock"))
	if err != nil {
		return Running{}, err
	}
	held, err := pidfile.TryLock(lock)
	if err = errors.Join(err, lock.Close()); held {
		return run, nil // by a process in another container
	}
	return Running{}, errors.Join(err, os.ErrNotExist)
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
	err := f.file.Close() // before the folder is removed, because Windows cannot remove an open file
	if f.temp {
		err = errors.Join(err, os.RemoveAll(f.Path))
	}
	return err
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

	CertificateFile    = "cert.pem" // CertificateFile and CertificateKeyFile are those of the authority for the server's own ports.
	CertificateKeyFile = "cert.key"
)

// DemoFile is the name of the file in which a demo stores the settings of its imitated API.
const DemoFile = "demo.json"

// SettingsFile and UsersFile are the names under which a restored folder has the settings file and the file of users.
const (
	SettingsFile = "settings.yml"
	UsersFile    = "users"
)

// PausedFile is the name of the file that lets a server in a restored folder send nothing by itself. When the pause has ended, the
// file has the name RestoredFile. The time of the file is that of the restore.
const (
	PausedFile   = "paused"
	RestoredFile = "restored"
)

// ReadRestored returns when a data folder was restored, zero if it was not, and whether it is still paused.
func ReadRestored(path string) (at time.Time, paused bool, err error) {
	for _, name := range []string{PausedFile, RestoredFile} {
		info, err := os.Stat(filepath.Join(path, name))
		if err == nil {
			return info.ModTime(), name == PausedFile, nil
		} else if !errors.Is(err, os.ErrNotExist) {
			return at, false, fmt.Errorf("data folder: %w", err)
		}
	}
	return at, false, nil
}
