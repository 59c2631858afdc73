//go:build unix

// This file counts the free bytes of a disk.

package datadir

import "syscall"

// CountFree returns how many bytes this user can still write to the disk of a folder.
func CountFree(path string) (int64, error) {
	var disk syscall.Statfs_t
	err := syscall.Statfs(path, &disk)
	return int64(disk.Bavail) * int64(disk.Bsize), err
}
