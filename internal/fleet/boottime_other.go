//go:build !linux

package fleet

// readBootTime returns false, because this system has no such clock.
func readBootTime() (nanoseconds int64, ok bool) { return 0, false }
