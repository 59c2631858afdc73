// This file locks a data folder with LockFileEx.

package datadir

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// TryLock locks an open file without waiting. held is true if another process has the lock. The lock ends
// when the file is closed or the process exits.
func TryLock(f *os.File) (held bool, err error) {
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0,
		new(windows.Overlapped))
	return errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING), err
}

// CountFree returns how many bytes this user can still write to the disk of a folder.
func CountFree(path string) (int64, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
	return int64(free), err
}
