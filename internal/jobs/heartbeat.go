// Heartbeats: those of all runs, and a runner whose store cannot be written.

package jobs

import (
	"context"
	"errors"
	"sync"
	"time"

	"understudy"
	"understudy/kit/retry"
)

// nextHeartbeat is when the run's next heartbeat is due.
func (u *Run) nextHeartbeat() time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.dirty {
		return u.heartbeatAt.Add(min(progressAt, u.kind.Lease/3))
	}
	return u.heartbeatAt.Add(u.kind.Lease / 3)
}

// beat writes the heartbeats that are due, all in one transaction.
func (r *Runner) heartbeat(ctx context.Context, now time.Time) {
	var runs []*Run
	var beats []understudy.Heartbeat
	r.active.mu.Lock()
	for _, u := range r.active.runs {
		if !u.nextHeartbeat().After(now) {
			runs = append(runs, u)
			beats = append(beats, u.sign(now))
		}
	}
	r.active.mu.Unlock()
	if len(beats) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	found, err := r.o.Store.BeatJobs(ctx, beats...)
	if err != nil {
		r.stumble(ctx, err)
		now = r.o.Now()
		for _, u := range runs {
			u.lapse(now)
		}
		return
	}
	for i, u := range runs {
		switch {
		case found[i].Lost:
			u.cancel(understudy.ErrLost)
		case found[i].Stop:
			u.cancel(errCancelled)
		}
		u.heartbeatReply(beats[i].LeaseEnd)
	}
}

// sign is the run's heartbeat.
func (u *Run) sign(now time.Time) understudy.Heartbeat {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.heartbeatAt, u.dirty = now, false
	return understudy.Heartbeat{Number: u.job.Number, Fence: u.job.Fence, LeaseEnd: now.Add(u.kind.Lease), Progress: u.job.Progress}
}

func (u *Run) heartbeatReply(end time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.leaseEnd = end
}

// lapse ends a run whose lease has probably ended: another process may have begun the
// job.
func (u *Run) lapse(now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.dirty = true
	if now.After(u.leaseEnd) {
		u.cancel(understudy.ErrLost)
	}
}

// trouble is a store that cannot be written: a pause that grows.
type trouble struct {
	mu     sync.Mutex
	err    error
	pauses int // in a row
	end    time.Time
}

// A pause is short: what kept the store from being written may only have been
// another process at work, and one more try costs next to nothing.
const (
	firstPause = 200 * time.Millisecond
	maxPause   = 5 * time.Second
)

// stumble begins a pause, or a longer one; it is logged once.
func (r *Runner) stumble(ctx context.Context, err error) {
	if errors.Is(ctx.Err(), context.Canceled) || errors.Is(err, understudy.ErrClosed) {
		return // the end has come
	}
	now := r.o.Now()
	t := &r.trouble
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		r.o.Logger.Error("jobs pause: the store cannot be written", "err", err)
	}
	if now.Before(t.end) {
		return
	}
	t.err, t.end = err, now.Add(r.jitter(retry.Backoff(firstPause, maxPause, t.pauses)))
	t.pauses++
}

// recovered ends the pauses.
func (r *Runner) recovered() {
	t := &r.trouble
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		r.o.Logger.Info("jobs go on: the store can be written again")
	}
	t.err, t.pauses, t.end = nil, 0, time.Time{}
}

func (t *trouble) waits(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return now.Before(t.end)
}

func (t *trouble) until() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.end
}

func (t *trouble) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var short interface{ Short() string }
	switch {
	case t.err == nil:
		return ""
	case errors.As(t.err, &short):
		return short.Short()
	}
	return "the store cannot be written"
}
