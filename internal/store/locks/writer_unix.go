//go:build unix

// This file finds the process that writes to a file of SQLite.

package locks

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// The bytes that SQLite locks while it writes: in the file beside the log, or in the database itself without a log.
const (
	logWriteByte = 120        // WALINDEX_LOCK_OFFSET
	pendingByte  = 0x40000000 // and RESERVED_BYTE after it
)

// FindWriter returns the process that writes to a file of SQLite now, or 0 if no process writes. Do not call it in a process
// that has opened the database: closing any of its files would release SQLite's locks.
func FindWriter(path string) (pid int64, err error) {
	for _, at := range []struct {
		name        string
		start, size int64
	}{{path + "-shm", logWriteByte, 1}, {path, pendingByte, 2}} {
		lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: at.start, Len: at.size}
		f, err := os.Open(at.name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = errors.Join(syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock), f.Close())
		}
		if err != nil {
			return 0, err
		}
		if lock.Type != syscall.F_UNLCK {
			return int64(lock.Pid), nil
		}
	}
	return 0, nil
}
