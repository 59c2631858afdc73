// Waiting.

package rig

import (
	"context"
	"testing"
	"time"
)

// Patience bounds every single wait of a test.
const Patience = time.Minute

// Await repeats a check until it returns "". After Patience the test fails with the last text.
func Await(t testing.TB, check func() string) {
	t.Helper()
	AwaitFor(t, Patience, check)
}

// AwaitFor repeats a check as Await does, with a limit of its own.
func AwaitFor(t testing.TB, patience time.Duration, check func() string) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		why := check()
		if why == "" {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not after %v: %s", patience, why)
		}
	}
}

// Pause waits for a duration, or until the context ends.
func Pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
