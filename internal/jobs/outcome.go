// This file decides what happens to a job after a run. It looks at the error of the run and at why the run's context ended.

package jobs

import (
	"context"
	"errors"
	"time"

	"understudy"
	"understudy/kit/retry"
)

const (
	// maxMemoryRetries is how many runs of a job may end because they got no memory in time. Further such runs
	// count as attempts.
	maxMemoryRetries = 8
	// storeRetryWait is the wait before the next run of a job whose work could not be stored.
	storeRetryWait = 10 * time.Second
)

// outcome returns the result of a run that returned err. A run without an error is done, whatever else happened.
func (u *Run) outcome(ctx context.Context, err error) understudy.JobResult {
	u.mu.Lock()
	job, working := u.job, u.weights.working
	u.mu.Unlock()
	now := u.r.o.Now()
	e := understudy.JobResult{Number: job.Number, Fence: job.Fence, At: now, State: understudy.JobDone, Progress: job.Progress}
	if err == nil {
		return e
	}
	cause := context.Cause(ctx)
	once := job.AtMostOnce && working // even an at-most-once job is repeated if the run has not begun its work
	fail := func(text string) understudy.JobResult {
		e.State, e.Error = understudy.JobFailed, text
		return e
	}
	again := func(wait time.Duration, counted bool) understudy.JobResult {
		e.State, e.Error, e.RunAfter, e.Uncounted = understudy.JobWaiting, err.Error(), now.Add(wait), !counted
		return e
	}
	var heavy *overQuotaError
	var later *understudy.Snooze
	switch {
	case errors.Is(cause, errCancelled):
		e.State, e.Error = understudy.JobCancelled, errCancelled.Error()
		return e
	case errors.Is(cause, errStopping) && once:
		return fail("interrupted when the server stopped; not repeated, because it must run at most once")
	case errors.Is(cause, errStopping):
		e = again(0, false)
		e.Error = "" // the runner stopped the run, which is no error of the job
		return e
	case errors.As(err, &heavy) && heavy.bytes > heavy.limit:
		return fail(heavy.Error())
	case errors.Is(err, understudy.ErrInvalid), once:
		return fail(err.Error())
	case errors.As(err, &heavy):
		e.Weight = heavy.bytes
		if job.UncountedRuns < maxMemoryRetries {
			return again(0, false)
		}
	case errors.As(err, &later):
		return again(max(later.Wait, 0), false)
	case errors.Is(err, understudy.ErrNotStored):
		return again(u.r.jitter(storeRetryWait), false)
	case !working:
		return again(0, false)
	}
	if job.Attempt >= job.MaxAttempts {
		return fail(err.Error())
	}
	return again(u.backoff(job.Attempt, err), true)
}

// backoff returns how long to wait after the given number of runs. The wait is doubled each time up to the
// kind's maximum, with jitter. It is never shorter than the Retry-After of the upstream.
func (u *Run) backoff(attempt int, err error) time.Duration {
	wait := u.r.jitter(retry.Backoff(u.kind.Backoff, u.kind.MaxBackoff, attempt-1))
	var up *understudy.UpstreamError
	if errors.As(err, &up) {
		wait = max(wait, up.RetryAfter)
	}
	return wait
}

// jitter returns a random duration between half of d and d.
func (r *Runner) jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(r.o.Rand()*float64(d-d/2))
}
