// This file sends the heartbeats of all runs, and pauses when the store cannot be written.

package jobs

import (
	"context"
	"errors"
	"time"

	"understudy"
	"understudy/kit/lockwatch"
	"understudy/kit/retry"
)

// nextHeartbeat returns when the run's next heartbeat is due.
func (u *Run) nextHeartbeat() time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.dirty {
		return u.heartbeatAt.Add(min(progressInterval, u.kind.Lease/3))
	}
	return u.heartbeatAt.Add(u.kind.Lease / 3)
}

// sendHeartbeats writes all heartbeats that are due, in one transaction.
func (r *Runner) sendHeartbeats(ctx context.Context, now time.Time) {
	var runs []*Run
	var beats []understudy.Heartbeat
	r.active.mu.Lock()
	for _, u := range r.active.runs {
		if !u.nextHeartbeat().After(now) {
			runs = append(runs, u)
			beats = append(beats, u.newHeartbeat(now))
		}
	}
	r.active.mu.Unlock()
	if len(beats) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	found, err := r.o.Store.RenewLeases(ctx, beats...)
	if err != nil {
		r.recordTrouble(ctx, err)
		now = r.o.Now()
		for _, u := range runs {
			u.endIfLapsed(now)
		}
		return
	}
	for i, u := range runs {
		switch {
		case found[i].Lost:
			u.cancel(understudy.ErrLeaseLost)
		case found[i].StopRequested:
			u.cancel(errCancelled)
		}
		u.mu.Lock()
		u.leaseEnd = beats[i].LeaseEnd
		u.mu.Unlock()
	}
}

// newHeartbeat returns a heartbeat of the run at the time now.
func (u *Run) newHeartbeat(now time.Time) understudy.Heartbeat {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.heartbeatAt, u.dirty = now, false
	return understudy.Heartbeat{Number: u.job.Number, Fence: u.job.Fence, LeaseEnd: now.Add(u.kind.Lease), Progress: u.job.Progress}
}

// endIfLapsed ends a run whose lease has probably expired. Another process may have started the same job again.
func (u *Run) endIfLapsed(now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.dirty = true
	if now.After(u.leaseEnd) {
		u.cancel(understudy.ErrLeaseLost)
	}
}

// trouble counts failed writes to the store. After each failure the runner pauses, each time longer.
type trouble struct {
	mu     lockwatch.Mutex
	err    error
	pauses int // the number of consecutive pauses
	end    time.Time
}

// The pauses after a failed write. They are short, because the store may only have been locked by another process.
const (
	firstPause = 200 * time.Millisecond
	maxPause   = 5 * time.Second
)

// recordTrouble begins a pause, longer than the previous pause. Only the first of consecutive errors is logged.
func (r *Runner) recordTrouble(ctx context.Context, err error) {
	if errors.Is(ctx.Err(), context.Canceled) || errors.Is(err, understudy.ErrClosed) {
		return // the write failed because the runner or the store is closing
	}
	now := r.o.Now()
	t := &r.trouble
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		r.o.Logger.Error("jobs: paused, because the database cannot be written", "err", err)
	}
	if now.Before(t.end) {
		return
	}
	t.err, t.end = err, now.Add(r.jitter(retry.Backoff(firstPause, maxPause, t.pauses)))
	t.pauses++
}

// clearTrouble ends the pauses after a successful write.
func (r *Runner) clearTrouble() {
	t := &r.trouble
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		r.o.Logger.Info("jobs: continuing, because the database can be written again")
	}
	t.err, t.pauses, t.end = nil, 0, time.Time{}
}

func (t *trouble) pauseEnd() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.end
}

func (t *trouble) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var short interface{ ShortString() string }
	switch {
	case t.err == nil:
		return ""
	case errors.As(t.err, &short):
		return short.ShortString()
	}
	return "the database cannot be written"
}
