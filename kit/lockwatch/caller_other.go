//go:build !amd64

package lockwatch

import (
	"fmt"
	"runtime"
)

// caller returns the number of the goroutine, the address at which the caller's caller was called, and nanoseconds.
func caller() (id, pc uintptr, ticks int64) {
	var pcs [1]uintptr
	var text [40]byte
	runtime.Callers(4, pcs[:])
	_, _ = fmt.Sscanf(string(text[:runtime.Stack(text[:], false)]), "goroutine %d", &id)
	c := current.Load()
	return id, pcs[0], int64(c.now().Sub(c.began))
}
