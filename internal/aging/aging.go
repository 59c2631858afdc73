// Package aging tells how old something is, also if the machine was suspended in between.
package aging

import (
	"sync/atomic"
	"time"
)

// noise is how far the two readings of a time may drift apart without a reason.
const noise = time.Second

// Age returns the time from at to now. If both have a reading of the monotonic clock, steps of the wall clock do not count, but
// the time does in which the machine was suspended, when the monotonic clock of Linux stands still (clock_gettime(2), CLOCK_BOOTTIME). If
// the wall clock was also set forward since at, the result may be too large by as much as the machine was suspended before.
func Age(at, now time.Time) time.Duration {
	age := now.Sub(at)
	if more := time.Duration(now.UnixNano()-at.UnixNano()) - age; more > noise {
		age += min(more, suspensionTime(now))
	}
	return age
}

// wallLead returns how much longer the time between two moments was by the wall clock than by the monotonic clock.
func wallLead(at, now time.Time) time.Duration {
	return time.Duration(now.UnixNano()-at.UnixNano()) - now.Sub(at)
}

// reading is for how long the machine had been suspended at a moment.
type reading struct {
	at        time.Time
	suspended time.Duration
}

var last atomic.Pointer[reading]

// suspensionTime returns for how long the machine was suspended since the process began. It asks the system only when the clocks have
// moved apart since it asked last.
func suspensionTime(now time.Time) time.Duration {
	r := last.Load()
	if r == nil || wallLead(r.at, now).Abs() > time.Millisecond {
		r = &reading{now, suspendedTime()}
		last.Store(r)
	}
	return r.suspended
}
