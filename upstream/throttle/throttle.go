// Throttle: options, the state of the queue, and refusals.

// Package throttle bounds what a source is sent: requests a second and at once, their order, and no requests while it
// fails.
package throttle

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"understudy"
)

// Options are the settings of a budget and of a breaker. There are no defaults.
type Options struct {
	Rate        float64       // requests a second
	Concurrency int           // requests at once
	Queue       int           // requests that may wait for the budget
	Prefetch    time.Duration // how long a Prefetch may wait for it
	Source      string        // its name, for the log
	Now         func() time.Time
	Logger      *slog.Logger // told when upstream's state changes
}

// Queue is how full the queue for a source's budget is.
type Queue struct {
	Limit   int           // requests in it at most
	Now     int           // requests in it
	Refused int64         // since New: no room, or a turn that would come too late
	Oldest  time.Duration // how long the oldest request has waited
	Longest time.Duration // the longest wait of a request with a reader, since New
	Reserve float64       // tokens that other work leaves to readers
	AtOnce  int           // requests that upstream takes well at once, as far as is known
	Why     string        // AtOnce is less than Options.Concurrency; "": it is not
	Windows []Window      // of upstream's own limits, the largest first
}

// MinRetry is the shortest Retry-After of a request that is refused.
const MinRetry = time.Second

// Errors of Budget.Take.
var (
	ErrQueueFull       = errors.New("too many errands wait for this source's budget")
	ErrPrefetchDropped = errors.New("a prefetch is dropped: the budget is needed elsewhere")
)

// QueueError says that a turn would come, or came, too late.
type QueueError struct{ After time.Duration }

// Error says what happened.
func (e *QueueError) Error() string {
	return fmt.Sprintf("the queue for this source's budget is too long; try again in %v", e.After.Round(time.Second))
}

// Refusal turns an error of Budget.Take into the answer to the caller. It is nil for other errors.
func Refusal(err error) *understudy.UpstreamError {
	var late *QueueError
	switch {
	case errors.As(err, &late):
		return &understudy.UpstreamError{Why: understudy.FailBusy, RetryAfter: late.After, Err: err}
	case errors.Is(err, ErrQueueFull):
		return &understudy.UpstreamError{Why: understudy.FailBusy, RetryAfter: MinRetry, Err: err}
	case errors.Is(err, ErrPrefetchDropped):
		return &understudy.UpstreamError{Why: understudy.FailLimited, Err: err}
	}
	return nil
}
