//go:build unix

// This file locks with flock(2).

package pidfile

import (
	"errors"
	"os"
	"syscall"
)

// TryLock locks an open file without waiting. held is true if another process has the lock. The lock ends
// when the file is closed or the process exits.
func TryLock(f *os.File) (held bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	return errors.Is(err, syscall.EWOULDBLOCK), err
}
