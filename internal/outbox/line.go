// Line: one destination, its delivery under way and its job.

// Package outbox delivers messages to receivers elsewhere, by jobs. Whoever has the messages
// keeps how far a receiver has come, and sends the same message under the same id until it is taken.
package outbox

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"understudy"
	"understudy/internal/jobs"
)

// Run is what a delivery needs of the job it is run for. The job's key is the destination.
type Run interface {
	Job() understudy.Job
	SetProgress(done, total int64, note string)
}

// JobKind returns a kind of jobs that deliver. They are retried until the destination is stopped.
func JobKind(name string, deliver func(context.Context, Run) error) jobs.Kind {
	return jobs.Kind{
		Name: name, Lane: understudy.PrioritySteady, Concurrency: 4, Attempts: 1000, Backoff: 5 * time.Second,
		Run: func(ctx context.Context, r *jobs.Run) error { return deliver(ctx, r) },
	}
}

// messages is the sort of their ids.
type messages struct{}

// Prefix is that of the examples in the Standard Webhooks specification.
func (messages) Prefix() string { return "msg_" }

// MessageID names the message that the text describes, the same at every try. It does not tell numbers.
func MessageID(key []byte, format string, args ...any) understudy.ID[messages] {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, format, args...)
	return understudy.ID[messages]{Raw: [16]byte(mac.Sum(nil))}
}

// Line is a destination in this process. It is safe for concurrent use.
type Line struct {
	busy chan struct{} // holds the one delivery under way

	mu     sync.Mutex
	queued time.Time // when a job was enqueued last; zero: none is live
}

// NewLine returns a line without a job.
func NewLine() *Line { return &Line{busy: make(chan struct{}, 1)} }

// Deliver waits for the delivery under way, then calls deliver. A nil error ends the line's job.
func (l *Line) Deliver(ctx context.Context, deliver func() error) error {
	select {
	case l.busy <- struct{}{}:
		defer func() { <-l.busy }()
	case <-ctx.Done():
		return ctx.Err()
	}
	err := deliver()
	if err == nil {
		l.Release()
	}
	return err
}

// Release has the next Enqueue add a job at once.
func (l *Line) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queued = time.Time{}
}

// Enqueue adds a job, unless that was done less than again ago and the job is not known to have ended.
func (l *Line) Enqueue(ctx context.Context, add func(context.Context, ...understudy.Job) ([]int64, error), kind, key string,
	now time.Time, again time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.queued.IsZero() && now.Sub(l.queued) < again {
		return nil
	}
	_, err := add(ctx, understudy.Job{Kind: kind, Key: key, Priority: understudy.PrioritySteady})
	if err == nil {
		l.queued = now
	}
	return err
}
