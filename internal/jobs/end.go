// This file runs a claimed job: the run waits for its memory, does its work, and its result is stored.

package jobs

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"runtime/pprof"
	"time"

	"understudy"
)

// begin starts a run of a claimed job.
func (r *Runner) begin(ctx context.Context, j understudy.Job, now time.Time) {
	kind := r.kinds[j.Kind]
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	u := &Run{r: r, kind: kind, cancel: cancel, job: j, heartbeatAt: now, leaseEnd: j.LeaseEnd}
	// The memory is requested here without waiting, so that the next claim knows how much is left.
	u.weights.working = j.Weight <= 0 // a run without weight needs no memory, so it does not wait behind heavy runs
	if j.Weight > 0 && j.Weight <= r.o.Memory {
		u.weights.load = r.memory.TryAcquire(j.Weight)
		u.weights.working = u.weights.load != nil
	}
	gathers := !u.weights.working
	r.active.mu.Lock()
	r.active.runs[lease{j.Number, j.Fence}] = u
	r.active.counts.Begun++
	if gathers {
		r.active.waitingForMemory++
	}
	r.active.mu.Unlock()
	r.all.Go(func() {
		defer cancel(nil)
		var err error
		if gathers {
			err = u.waitForMemory(ctx)
		}
		if err == nil {
			err = u.execute(ctx)
		}
		r.end(ctx, u, err)
	})
}

// addWaiting adds by to the number of runs that wait for their memory.
func (r *Runner) addWaiting(by int) {
	r.active.mu.Lock()
	r.active.waitingForMemory += by
	r.active.mu.Unlock()
	if by < 0 {
		r.wakeLoop(true) // another run may have enough memory now
	}
}

// waitForMemory waits until the run has the memory of its weight.
func (u *Run) waitForMemory(ctx context.Context) error {
	r, bytes := u.r, u.job.Weight
	defer r.addWaiting(-1)
	if bytes > r.o.Memory {
		return &overQuotaError{bytes, r.o.Memory}
	}
	load, err := r.memory.Acquire(ctx, bytes)
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.weights.load = load
	if u.weights.working = ctx.Err() == nil; !u.weights.working {
		return context.Cause(ctx) // ctx ended before the run could begin
	}
	return nil
}

// execute calls the kind's Run function. A panic becomes an error. Its text is written only to the log, because
// it may contain any data.
func (u *Run) execute(ctx context.Context) (err error) {
	if u.kind.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, u.kind.Limit, fmt.Errorf("the run took longer than %v", u.kind.Limit))
		defer cancel()
	}
	defer func() {
		if p := recover(); p != nil {
			u.r.o.Logger.Error("job: panic", "job", u.job.Number, "kind", u.kind.Name, "panic", p, "stack", string(debug.Stack()))
			err = errors.New("internal error; the server log has the details")
		}
	}()
	pprof.Do(ctx, pprof.Labels("job", u.kind.Name), func(ctx context.Context) { err = u.kind.Run(ctx, u) })
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = context.Cause(ctx)
	}
	return err
}

// end releases the memory of a run and hands its result to the loop, which stores it.
func (r *Runner) end(ctx context.Context, u *Run, err error) {
	u.mu.Lock()
	loads := u.weights.parts
	if u.weights.load != nil {
		loads = append(loads, u.weights.load)
	}
	u.weights.load, u.weights.parts, u.ended = nil, nil, true
	u.mu.Unlock()
	for _, l := range loads {
		l.Release()
	}
	u.result = u.outcome(ctx, err)
	r.active.mu.Lock()
	r.active.ended = append(r.active.ended, u)
	r.active.mu.Unlock()
	r.wakeLoop(true)
}

// logEnd counts and logs the end of a run, which is then no longer active. A state of 0 means that the run had lost its lease.
func (r *Runner) logEnd(u *Run, state understudy.JobState) {
	e, lost := &u.result, state == 0
	r.active.mu.Lock()
	delete(r.active.runs, lease{e.Number, e.Fence})
	switch {
	case lost:
		r.active.counts.Lost++
	case state == understudy.JobDone:
		r.active.counts.Done++
	case state == understudy.JobFailed:
		r.active.counts.Failed++
	case state == understudy.JobCancelled:
		r.active.counts.Cancelled++
	default:
		r.active.counts.Again++
	}
	r.active.mu.Unlock()
	log := r.o.Logger.With("job", e.Number, "kind", u.kind.Name, "key", u.job.Key, "attempt", u.job.Attempt)
	switch {
	case lost:
		log.Warn("job: the lease was lost; another run may repeat its work")
	case state == understudy.JobFailed:
		log.Error("job failed", "err", e.Error)
	case state == understudy.JobWaiting && !e.Uncounted:
		log.Warn("job: a run failed and will be repeated", "err", e.Error, "at", e.RunAfter)
	default:
		log.Debug("job: a run ended", "state", state.String(), "err", e.Error)
	}
}
