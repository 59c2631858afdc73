package wal

import (
	"os"

	"golang.org/x/sys/unix"
)

// flush waits until what was written is on the disk. Metadata that reading does not
// need are left out.
func flush(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

// preallocate asks for room. A file system that cannot is none the worse: zeros are
// written before records.
func preallocate(f *os.File, size int64) {
	_ = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size)
}

func syncDir(f *os.File) error { return f.Sync() }
