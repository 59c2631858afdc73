//go:build !linux

package wal

import (
	"os"
	"runtime"
)

func flush(f *os.File) error { return f.Sync() }

func reserveSpace(*os.File, int64) {}

// syncDir makes new file names durable. Windows has no such call.
func syncDir(f *os.File) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	return f.Sync()
}
