//go:build unix

// Terminal: how wide it is, by the ioctl of its file.

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// columns is how many columns a terminal has.
func columns(f *os.File) (int, error) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, err
	}
	return int(size.Col), nil
}
