// This file computes and waits for the time between two tries of an operation.

// Package retry waits between two tries of an operation.
package retry

import (
	"context"
	"time"
)

// Backoff returns the wait before the next try. It is first, doubled for each of before earlier failures, but at most
// longest.
func Backoff(first, longest time.Duration, before int) time.Duration {
	for ; before > 0 && first < longest; before-- {
		first *= 2
	}
	return min(first, longest)
}

// Wait waits for d or until ctx ends, and returns the error of ctx.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}
