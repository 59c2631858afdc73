//go:build unix

// This file locks a data folder with flock, and counts the free bytes of its disk.

package datadir

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

// CountFree returns how many bytes this user can still write to the disk of a folder.
func CountFree(path string) (int64, error) {
	var disk syscall.Statfs_t
	err := syscall.Statfs(path, &disk)
	return int64(disk.Bavail) * int64(disk.Bsize), err
}
