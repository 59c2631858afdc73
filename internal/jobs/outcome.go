// Outcome: what a job becomes after a run, by what the run returned and why its
// context ended.

package jobs

import (
	"context"
	"errors"
	"time"

	"understudy"
	"understudy/kit/retry"
)

const (
	// there was no memory for what they turned out to weigh.
	maxAgain = 8
	// storeWait is before the next run of a job whose work could not be stored.
	storeWait = 10 * time.Second
)

// outcome decides. A run that ended well is done, whatever else happened.
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
	once := job.Once && working // one that has not begun may begin
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
		return fail("broke off: the server was stopped; it runs at most once")
	case errors.Is(cause, errStopping):
		e = again(0, false)
		e.Error = "" // nothing went wrong
		return e
	case errors.As(err, &heavy) && heavy.bytes > heavy.most:
		return fail(heavy.Error())
	case errors.Is(err, understudy.ErrInvalid), once:
		return fail(err.Error())
	case errors.As(err, &heavy):
		e.Weight = heavy.bytes
		if job.Again < maxAgain {
			return again(0, false)
		}
	case errors.As(err, &later):
		return again(max(later.Wait, 0), false)
	case errors.Is(err, understudy.ErrNotStored):
		return again(u.r.jitter(storeWait), false)
	case !working:
		return again(0, false)
	}
	if job.Attempt >= job.Attempts {
		return fail(err.Error())
	}
	return again(u.backoff(job.Attempt, err), true)
}

// backoff is how long to wait after so many runs: doubled each time, up to the
// kind's bound, with jitter, and never less than upstream asked for.
func (u *Run) backoff(attempt int, err error) time.Duration {
	wait := u.r.jitter(retry.Backoff(u.kind.Backoff, u.kind.MaxBackoff, attempt-1))
	var up *understudy.UpstreamError
	if errors.As(err, &up) {
		wait = max(wait, up.RetryAfter)
	}
	return wait
}

// jitter is between half of d and all of it.
func (r *Runner) jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(r.o.Rand()*float64(d-d/2))
}
