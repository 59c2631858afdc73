// This file counts the free bytes of a disk.

package datadir

import "golang.org/x/sys/windows"

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
