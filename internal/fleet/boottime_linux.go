package fleet

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// maxClockError is the maximum error of an estimated time.
const maxClockError = time.Millisecond

// bootClock tells the time since the machine was started. It is safe for concurrent use.
type bootClock struct {
	now   func() time.Time // Go's time, which has the wall clock and the monotonic clock
	start time.Time
	last  atomic.Pointer[clockReading] // when the system's clock was read
}

// clockReading has three clocks at one moment, in nanoseconds. Only boot is read by a system call.
type clockReading struct {
	boot int64 // goes on while the machine is suspended
	mono int64 // stops while the machine is suspended
	wall int64 // goes on while the machine is suspended, and may be set
}

// read returns the time since the machine was started, in nanoseconds. It includes the time in which the machine was suspended. Each
// answer from memory reads it and takes only a few microseconds, so a system call is made only after the machine may have been suspended.
func (c *bootClock) read() (nanoseconds int64, ok bool) {
	now := c.readOthers()
	if last := c.last.Load(); last != nil {
		if t, ok := last.estimate(now); ok {
			return t, true
		}
	}
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return 0, false
	}
	now.boot = t.Nano()
	if c.readOthers().mono-now.mono < int64(maxClockError) { // otherwise the goroutine was interrupted
		c.last.Store(&now)
	}
	return now.boot, true
}

// readOthers reads the clocks that need no system call.
func (c *bootClock) readOthers() clockReading {
	now := c.now()
	return clockReading{mono: int64(now.Sub(c.start)), wall: now.UnixNano()}
}

// estimate returns the boot time at a later moment. If the machine was suspended since, or the wall clock was set, ok is false.
func (r *clockReading) estimate(now clockReading) (boot int64, ok bool) {
	passed := now.mono - r.mono
	difference := time.Duration(now.wall - r.wall - passed)
	return r.boot + passed, difference.Abs() < maxClockError
}
