// This file has the options of the budget and the breaker, the state of the queue, and refusals.

// Package throttle limits the requests to a source: how many are sent a second and how many at the same time, and in
// which order. It stops requests while the source fails.
package throttle

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"understudy"
)

// Options are the settings of a budget and of a breaker. They have no defaults.
type Options struct {
	Rate        float64       // the maximum number of requests a second
	Concurrency int           // maximum number of requests at the same time
	Queue       int           // maximum number of requests that wait for the budget
	Prefetch    time.Duration // how long a request of ReasonPrefetch may wait for the budget
	Source      string        // the source's name, for the log
	Now         func() time.Time
	Logger      *slog.Logger // receives a line when the upstream's state changes
}

// Queue is the state of the queue for a source's budget.
type Queue struct {
	Limit   int           // the maximum number of waiting requests
	Now     int           // the number of requests that wait now
	Refused int64         // the number of requests refused since New, because the queue was full or their turn would come too late
	Oldest  time.Duration // how long the oldest waiting request has waited
	Longest time.Duration // the longest wait of a request with a reader, since New
	Reserve float64       // the number of tokens that requests without a reader leave to readers
	AtOnce  int           // the best known number of requests at the same time
	Why     string        // why AtOnce is less than Options.Concurrency, or "" if it is not less
	Windows []Window      // the windows of the upstream's own limits, the largest first
}

// MinRetry is the minimum Retry-After of a refused request.
const MinRetry = time.Second

// ErrQueueFull and ErrPrefetchDropped are errors of Budget.Take.
var (
	ErrQueueFull       = errors.New("too many background requests wait for this source's rate limit")
	ErrPrefetchDropped = errors.New("a prefetch was dropped, because other requests need the rate limit")
)

// QueueError means that a request's turn would come, or came, too late for its caller.
type QueueError struct{ After time.Duration }

// Error returns the message for the caller, with the time to wait before a retry.
func (e *QueueError) Error() string {
	return fmt.Sprintf("too many requests wait for this source's rate limit; try again in %v", e.After.Round(time.Second))
}

// Refusal converts an error of Budget.Take into the failure that the caller receives. It returns nil for other errors.
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
