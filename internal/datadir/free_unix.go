//go:build unix

// This file says how large and of what sort a disk is.

package datadir

import "syscall"

// CountFree returns how many bytes this user can still write to the disk of a folder.
func CountFree(path string) (int64, error) {
	var disk syscall.Statfs_t
	err := syscall.Statfs(path, &disk)
	return int64(disk.Bavail) * int64(disk.Bsize), err
}

// FindDoubtful returns the name of a folder's file system if that loses files at a restart, or locks of other machines. The numbers are
// those of Linux.
func FindDoubtful(path string) string {
	var disk syscall.Statfs_t
	_ = syscall.Statfs(path, &disk) // after an error the type is 0
	return map[uint32]string{0x01021994: "tmpfs", 0x858458f6: "ramfs", 0x6969: "nfs", 0xff534d42: "cifs", 0xfe534d42: "smb2",
		0x01021997: "9p"}[uint32(disk.Type)]
}
