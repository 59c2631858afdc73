// This file locks with LockFileEx.

package pidfile

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
