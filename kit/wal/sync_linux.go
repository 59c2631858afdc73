package wal

import (
	"os"

	"golang.org/x/sys/unix"
)

// flush waits until the written data are on the disk. It leaves out metadata that reading does not need.
func flush(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

// reserveSpace asks the file system to reserve space. An error does not matter, because zeros are written
// before records.
func reserveSpace(f *os.File, size int64) {
	_ = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size)
}

func syncDir(f *os.File) error { return f.Sync() }
