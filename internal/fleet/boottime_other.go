//go:build !linux

package fleet

// readBootTime returns false: there is no such clock.
func readBootTime() (nanoseconds int64, ok bool) { return 0, false }
