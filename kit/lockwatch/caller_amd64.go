package lockwatch

// caller returns the identity of the goroutine, the address at which the caller's caller was called, and the counter of the processor.
// Its caller must not be inlined.
func caller() (id, pc uintptr, ticks int64)
