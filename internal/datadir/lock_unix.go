//go:build unix

// Lock: one server at a time holds a data folder, by flock.

package datadir

import (
	"errors"
	"os"
	"syscall"
)

// TryLock takes the lock of an open file without waiting; held says that
// another process has it. The lock ends with the file or the process.
func TryLock(f *os.File) (held bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	return errors.Is(err, syscall.EWOULDBLOCK), err
}
