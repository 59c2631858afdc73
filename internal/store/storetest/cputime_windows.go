package storetest

import (
	"syscall"
	"time"
)

// CPUTime returns the processor time this process has used, all threads together. Windows counts it in units of 100 ns.
func CPUTime() time.Duration {
	var created, exited, kernel, user syscall.Filetime
	process, _ := syscall.GetCurrentProcess()
	_ = syscall.GetProcessTimes(process, &created, &exited, &kernel, &user)
	units := func(t syscall.Filetime) int64 { return int64(t.HighDateTime)<<32 | int64(t.LowDateTime) }
	return time.Duration(100 * (units(kernel) + units(user)))
}
