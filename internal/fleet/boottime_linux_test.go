package fleet

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/internal/checktest"
)

// TestSuspendedTimeIsNoticed: the boot time is estimated only if the wall clock says that the machine was not suspended.
func TestSuspendedTimeIsNoticed(t *testing.T) {
	const ms = int64(time.Millisecond)
	r := clockReading{boot: 100 * ms, mono: 7 * ms, wall: 5000 * ms}
	for name, c := range map[string]struct {
		mono, wall int64
		want       int64
		ok         bool
	}{
		"running":                 {27, 5020, 120, true},
		"suspended":               {27, 5020 + 3000, 0, false},
		"wall clock set back":     {27, 5020 - 3600_000, 0, false},
		"wall clock set by 2 ms":  {27, 5022, 0, false},
		"nothing has passed":      {7, 5000, 100, true},
		"it ran for a whole year": {7 + 365*86400_000, 5000 + 365*86400_000, 100 + 365*86400_000, true},
	} {
		got, ok := r.estimate(clockReading{mono: c.mono * ms, wall: c.wall * ms})
		checktest.Equal(t, ok, c.ok, "%s: whether the time can be estimated", name)
		if ok {
			checktest.Equal(t, got, c.want*ms, "%s: boot time", name)
		}
	}
}

// TestBootTimeIsThatOfTheSystem compares estimated times with the system's clock.
func TestBootTimeIsThatOfTheSystem(t *testing.T) {
	read := func() int64 {
		var ts unix.Timespec
		checktest.MustNoError(t, unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts), "read the clock")
		return ts.Nano()
	}
	clock := bootClock{now: time.Now, start: time.Now()}
	for range 10000 {
		before := read()
		got, ok := clock.read()
		after := read()
		checktest.MustTrue(t, ok, "there is no clock")
		const most = int64(2 * maxClockError)
		checktest.MustTrue(t, before-most <= got && got <= after+most, "boot time is %d, not between %d and %d", got, before, after)
	}
}

func BenchmarkReadBootTime(b *testing.B) {
	clock := bootClock{now: time.Now, start: time.Now()}
	for b.Loop() {
		clock.read()
	}
}

func BenchmarkReadBootTimeBySystemCall(b *testing.B) {
	clock := bootClock{now: time.Now, start: time.Now()}
	for b.Loop() {
		clock.last.Store(nil)
		clock.read()
	}
}
