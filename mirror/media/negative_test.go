package media

import (
	"fmt"
	"testing"
	"time"

	"understudy"
)

// TestFailuresAreBounded: of more failures than are remembered the later ones are left out, until the earlier ones end.
func TestFailuresAreBounded(t *testing.T) {
	var c Cache
	c.downloads.failures = map[understudy.Key]negative{}
	key := func(n int) understudy.Key { return understudy.Key{Source: "main", URI: fmt.Sprint("/", n)} }
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	fails := func(n int) {
		c.downloads.rememberFailure(key(n), negative{text: fmt.Sprint("failed ", n), ends: now.Add(failureShown)}, now)
	}
	for n := range maxFailures + 1 {
		fails(n)
	}
	for n, want := range map[int]string{0: "failed 0", maxFailures - 1: fmt.Sprint("failed ", maxFailures-1), maxFailures: ""} {
		if got := c.failure(key(n), now); got != want {
			t.Errorf("failure %d is %q, want %q", n, got, want)
		}
	}
	now = now.Add(failureShown)
	if got := c.failure(key(0), now); got != "" {
		t.Errorf("after %v it is told still: %q", failureShown, got)
	}
	fails(maxFailures)
	if got, n := c.failure(key(maxFailures), now), len(c.downloads.failures); got == "" || n != 1 {
		t.Errorf("when all have ended, the next is %q, among %d", got, n)
	}
}
