// Package outbox delivers messages to receivers by jobs. The package that has the messages stores how far a
// receiver has come. It sends the same message under the same id until the receiver has confirmed it.
package outbox

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"time"

	"understudy"
	"understudy/internal/jobs"
	"understudy/kit/lockwatch"
)

// Run is the part of a job's run that a delivery needs. The job's key is the destination.
type Run interface {
	Job() understudy.Job
	SetProgress(done, total int64, note string)
}

// JobKind returns a kind of jobs that deliver messages. Such a job is retried until its destination is stopped.
func JobKind(name string, deliver func(context.Context, Run) error) jobs.Kind {
	return jobs.Kind{
		Name: name, Lane: understudy.PrioritySteady, Concurrency: 4, Attempts: 1000, Backoff: 5 * time.Second,
		Run: func(ctx context.Context, r *jobs.Run) error { return deliver(ctx, r) },
	}
}

// messages is the type of ids for messages.
type messages struct{}

// Prefix returns the prefix of the examples in the Standard Webhooks specification.
func (messages) Prefix() string { return "msg_" }

// MessageID returns the id of the message that a text describes. The id is the same at every attempt. It does not
// reveal numbers in the text.
func MessageID(key []byte, format string, args ...any) understudy.ID[messages] {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, format, args...)
	return understudy.ID[messages]{Raw: [16]byte(mac.Sum(nil))}
}

// Line is a destination for messages in this process. It is safe for concurrent use.
type Line struct {
	busy chan struct{} // holds a value while a delivery runs

	mu     lockwatch.Mutex
	queued time.Time // when a job was last added; zero if no job is known to wait or run
}

// NewLine returns a line for which no job waits or runs.
func NewLine() *Line { return &Line{busy: make(chan struct{}, 1)} }

// Deliver waits until no other delivery runs, and then calls deliver. A nil error ends the line's job.
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

// Release makes the next call of Enqueue add a job at once.
func (l *Line) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queued = time.Time{}
}

// Enqueue adds a job. It adds none if a job was added less than the time again ago and is not known to have ended. If again is
// 0, a job that waits for its next try starts now.
func (l *Line) Enqueue(ctx context.Context, add func(context.Context, ...understudy.Job) ([]int64, error), kind, key string,
	now time.Time, again time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.queued.IsZero() && now.Sub(l.queued) < again {
		return nil
	}
	_, err := add(ctx, understudy.Job{Kind: kind, Key: key, Priority: understudy.PrioritySteady, Hurry: again == 0})
	if err == nil {
		l.queued = now
	}
	return err
}
