package aging

import (
	"time"

	"golang.org/x/sys/unix"
)

// atStart is how far the clocks were apart when the process began.
var atStart = readSuspended()

// readSuspended returns for how long the machine was suspended since it was started.
func readSuspended() time.Duration {
	var boot, mono unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
		return 0
	}
	return time.Duration(boot.Nano() - mono.Nano())
}

// suspendedTime returns for how long the machine was suspended since the process began.
func suspendedTime() time.Duration { return max(0, readSuspended()-atStart) }
