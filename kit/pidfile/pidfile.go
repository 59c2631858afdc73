// Package pidfile lets a process hold a file for its life. Other processes find it there, see whether it lives, and signal it.
//
// Existence of a file proves nothing, because a process that is killed leaves its files behind, and a number in it may belong to another
// process by now. So a lock on a second file says whether somebody holds the file. The kernel ends this lock with the process. The file
// names the process by its number, the boot of the machine and the time of its start, which together never return. A signal goes through a
// handle of the process (pidfd_open(2)) that was compared with these, so it never reaches a stranger.
//
// On systems other than Linux there is only the lock: a process in the file counts as alive as long as somebody holds the file.
package pidfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// ErrGone means that the process has ended.
var ErrGone = errors.New("the process has ended")

// Process names a process.
type Process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start,omitempty"` // when it started, in hundredths of a second since the boot; 0 if the system does not say
	Boot  string `json:"boot,omitempty"`  // the random id that the kernel took at the boot; "" if the system does not say
}

// Self returns the process that calls it.
func Self() Process {
	p := Process{PID: os.Getpid(), Boot: bootID()}
	p.Start, _ = startOf(p.PID)
	return p
}

// Open returns a handle of the process, to send signals. The caller releases it. It returns ErrGone if the process has ended, also when
// another process has its number now.
func (p Process) Open() (*os.Process, error) {
	if p.PID <= 0 || p.Boot != bootID() {
		return nil, ErrGone
	}
	handle, err := os.FindProcess(p.PID)
	if err != nil {
		return nil, ErrGone
	}
	// The handle is older than this look, so it belongs to the process that is seen here, or to one that has ended.
	if start, alive := startOf(p.PID); !alive || start != p.Start {
		return nil, errors.Join(ErrGone, handle.Release())
	}
	return handle, nil
}

// Send sends a signal. It returns ErrGone if the process has ended.
func (p Process) Send(s os.Signal) error {
	handle, err := p.Open()
	if err != nil {
		return err
	}
	err = handle.Signal(s)
	if errors.Is(err, os.ErrProcessDone) {
		err = ErrGone
	}
	return errors.Join(err, handle.Release())
}

// Age returns how long ago the process started, on a clock that goes on while the machine sleeps. It returns 0 if the system does not say.
func (p Process) Age() time.Duration {
	up := uptime()
	if p.Start == 0 || up == 0 {
		return 0
	}
	return max(up-time.Duration(p.Start)*(time.Second/ticks), 0)
}

// HeldError is the error of Hold if another process holds the file.
type HeldError struct{ Path string }

// Error returns a sentence that names the file.
func (e *HeldError) Error() string { return e.Path + " is held by another process" }

// File is a file that this process holds. Its methods are not safe for concurrent use.
type File struct {
	path string
	lock *os.File
}

// Hold takes the file at a path and writes content into it as JSON, which should contain Self. The lock is on another file beside it, which
// stays for ever. It returns a HeldError at once if another process holds the file.
func Hold(path, lockPath string, content any) (*File, error) {
	lock, err := os.OpenFile(lockPath, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	held, err := TryLock(lock)
	if held {
		err = &HeldError{path}
	}
	f := &File{path: path, lock: lock}
	if err == nil {
		err = f.Write(content)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return f, nil
}

// Write replaces the content. A reader sees the old content or the new one, whole.
func (f *File) Write(content any) error {
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(f.path), ".new-*")
	if err != nil {
		return err
	}
	_, err = next.Write(append(data, '\n'))
	if err = errors.Join(err, next.Close()); err == nil {
		err = os.Rename(next.Name(), f.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next.Name()))
	}
	return nil
}

// Close removes the file and lets others hold it.
func (f *File) Close() error {
	err := os.Remove(f.path)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, f.lock.Close())
}

// Read reads what a process has written into a file with Hold, or before it was killed. Open of its Process says whether it lives. The
// error wraps os.ErrNotExist if there is no file.
func Read(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("pidfile: %s: %w", path, err)
	}
	return nil
}
