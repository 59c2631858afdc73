//go:build unix

package storetest

import (
	"syscall"
	"time"
)

// CPUTime returns the processor time this process has used, all threads together.
func CPUTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
