package fleet

import "golang.org/x/sys/unix"

// readBootTime returns the time since the machine was started, in nanoseconds. It includes the time in which the machine was suspended.
func readBootTime() (nanoseconds int64, ok bool) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return t.Nano(), err == nil
}
