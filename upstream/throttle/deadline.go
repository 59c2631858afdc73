// Deadline: ends a request if no data arrives for too long.

package throttle

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// LateError is the error of a deadline that has passed.
type LateError struct {
	What  string
	After time.Duration
	Total bool // whether some data arrived in time, but not all of it
}

// Error returns what did not happen, and within which time.
func (e *LateError) Error() string { return fmt.Sprintf("%s within %v", e.What, e.After) }

// Deadline cancels a request with a cause, unless it is reset in time.
type Deadline struct {
	cause atomic.Pointer[LateError]
	timer *time.Timer
}

// NewDeadline creates a deadline that calls cancel with the cause when the time has passed.
func NewDeadline(cancel context.CancelCauseFunc, cause *LateError, after time.Duration) *Deadline {
	a := &Deadline{}
	a.cause.Store(cause)
	a.timer = time.AfterFunc(after, func() { cancel(a.cause.Load()) })
	return a
}

// Reset makes the deadline begin again.
func (a *Deadline) Reset(after time.Duration) { a.timer.Reset(after) }

// ResetCause makes the deadline begin again with another cause.
func (a *Deadline) ResetCause(cause *LateError, after time.Duration) {
	a.cause.Store(cause)
	a.timer.Reset(after)
}

// Stop stops the deadline. Reset and ResetCause start it again.
func (a *Deadline) Stop() { a.timer.Stop() }

// FindCause returns why a request ended: the deadline that has passed, or err.
func FindCause(ctx context.Context, err error) error {
	if late, ok := errors.AsType[*LateError](context.Cause(ctx)); ok {
		return late
	}
	return err
}

// IsLate reports whether a deadline ended the context.
func IsLate(ctx context.Context) bool {
	return errors.As(context.Cause(ctx), new(*LateError))
}

// IsSilence reports whether err is that of a try in which no data arrived for too long.
func IsSilence(err error) bool {
	var late *LateError
	return errors.As(err, &late) && !late.Total
}
