// Deadline: ends a request when nothing comes for too long.

package throttle

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// LateError is a deadline that passed.
type LateError struct {
	What  string
	After time.Duration
	Total bool // something came, but not all
}

// Error says what did not come, and within which time.
func (e *LateError) Error() string { return fmt.Sprintf("%s within %v", e.What, e.After) }

// Deadline ends a request with a cause when it is not set again in time.
type Deadline struct {
	cause atomic.Pointer[LateError]
	timer *time.Timer
}

// NewDeadline makes a deadline that calls cancel with the cause when the time is over.
func NewDeadline(cancel context.CancelCauseFunc, cause *LateError, after time.Duration) *Deadline {
	a := &Deadline{}
	a.cause.Store(cause)
	a.timer = time.AfterFunc(after, func() { cancel(a.cause.Load()) })
	return a
}

// Reset gives the request that much time again.
func (a *Deadline) Reset(after time.Duration) { a.timer.Reset(after) }

// Next is Reset with another cause.
func (a *Deadline) Next(cause *LateError, after time.Duration) {
	a.cause.Store(cause)
	a.timer.Reset(after)
}

// Stop ends the deadline. Reset and Next begin it again.
func (a *Deadline) Stop() { a.timer.Stop() }

// CauseOf is why a request ended: the deadline that passed, or err.
func CauseOf(ctx context.Context, err error) error {
	var late *LateError
	if errors.As(context.Cause(ctx), &late) {
		return late
	}
	return err
}

// IsLate reports that a deadline ended the context.
func IsLate(ctx context.Context) bool {
	var late *LateError
	return errors.As(context.Cause(ctx), &late)
}

// IsSilence reports the error of a try in which nothing came for too long.
func IsSilence(err error) bool {
	var late *LateError
	return errors.As(err, &late) && !late.Total
}
