// A broken clock. A test builds the program with this file in place of internal/fleet/boottime_linux.go.

package fleet

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// brokenClock is shared with the test, through the file "clock" of the working folder.
var brokenClock = openBrokenClock()

// clockState says how the clock is broken.
type clockState struct {
	wrong int64 // how many nanoseconds the wall clock is ahead
	slow  int64 // the time since the machine was started, in nanoseconds, from which on the clock loses 5 %; 0 means never
	reads int64 // how often the clock was read
}

func openBrokenClock() *clockState {
	f, err := os.OpenFile("clock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	size := int(unsafe.Sizeof(clockState{}))
	if err := f.Truncate(int64(size)); err != nil {
		panic(err)
	}
	shared, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	return (*clockState)(unsafe.Pointer(&shared[0]))
}

// bootClock is the broken clock.
type bootClock struct {
	now   func() time.Time
	start time.Time
}

func (*bootClock) read() (nanoseconds int64, ok bool) {
	atomic.AddInt64(&brokenClock.reads, 1)
	at, lost := readClocks()
	return at - lost, true
}

// readClocks returns the time since the machine was started, and how much of it the broken clock has lost.
func readClocks() (at, lost int64) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(err)
	}
	at = t.Nano()
	if slow := atomic.LoadInt64(&brokenClock.slow); slow != 0 && at > slow {
		lost = (at - slow) / 20
	}
	return at, lost
}

// Now returns the time by the broken wall clock. Its monotonic reading is right, as after a step of the system's clock.
func Now() time.Time {
	t := time.Now()
	_, lost := readClocks()
	// The first field of a time with a monotonic reading: one bit that is set, 33 bits of seconds, 30 bits of nanoseconds.
	wall := (*uint64)(unsafe.Pointer(&t))
	const nanoseconds = 1<<30 - 1
	at := int64(*wall<<1>>31)*int64(time.Second) + int64(*wall&nanoseconds) + atomic.LoadInt64(&brokenClock.wrong) - lost
	*wall = 1<<63 | uint64(at/int64(time.Second))<<30 | uint64(at%int64(time.Second))
	return t
}
