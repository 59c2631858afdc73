// This file adds, cancels, replays and lists jobs.

package jobs

import (
	"cmp"
	"context"
	"fmt"

	"understudy"
)

// withKindDefaults returns the job with the values of its kind for all fields that it leaves empty.
func (r *Runner) withKindDefaults(j understudy.Job, k *Kind) understudy.Job {
	j.AtMostOnce = j.AtMostOnce || k.Once
	j.MaxAttempts = cmp.Or(max(j.MaxAttempts, 0), k.Attempts)
	if j.AtMostOnce {
		j.MaxAttempts = 1
	}
	j.Weight = cmp.Or(j.Weight, k.Weight)
	j.Priority = cmp.Or(j.Priority, k.Lane)
	return j
}

// Enqueue stores jobs, all or none, at most 1,000 at once, and returns their numbers. If a job of the same kind
// and key is waiting or running, Enqueue returns that job's number instead. Once Enqueue has returned nil, the
// jobs survive restarts. Errors: understudy.ErrInvalid for an unknown kind, a payload that is too long, or a
// job heavier than Options.Memory; understudy.ErrNotStored.
func (r *Runner) Enqueue(ctx context.Context, jobs ...understudy.Job) ([]int64, error) {
	all := make([]understudy.Job, len(jobs))
	for i, j := range jobs {
		k := r.kinds[j.Kind]
		if k == nil {
			return nil, fmt.Errorf("jobs: %w: no kind is called %q", understudy.ErrInvalid, j.Kind)
		}
		all[i] = r.withKindDefaults(j, k)
		if all[i].Weight > r.o.Memory {
			return nil, fmt.Errorf("jobs: %w: %s: %w", understudy.ErrInvalid, j.Kind, &overQuotaError{all[i].Weight, r.o.Memory})
		}
	}
	numbers, err := r.o.Store.AddJobs(ctx, r.o.Now(), all...)
	if err != nil {
		return nil, err
	}
	r.o.Added()
	r.wakeLoop(true)
	r.desk.notify()
	return numbers, nil
}

// Cancel archives a waiting job at once. For a running job it ends the context of the run, in another process with the next
// heartbeat; the job is then not retried. Errors: understudy.ErrNotFound; understudy.ErrInvalid for an archived job.
func (r *Runner) Cancel(ctx context.Context, number int64) error {
	j, err := r.o.Store.CancelJob(ctx, number, r.o.Now())
	if err != nil {
		return err
	}
	r.active.mu.Lock()
	if j.State == understudy.JobCancelled {
		r.active.counts.Cancelled++
	}
	if u := r.active.runs[lease{number, j.Fence}]; u != nil {
		u.cancel(errCancelled)
	}
	r.active.mu.Unlock()
	return nil
}

// Replay adds the work of an archived job as a new job. A job that was not done continues at its mark. Replay
// returns the new number, or the number of a waiting or running job of the same kind and key. Errors:
// understudy.ErrNotFound; understudy.ErrInvalid for a job that is not archived, or whose kind no longer exists.
func (r *Runner) Replay(ctx context.Context, number int64) (int64, error) {
	found, err := r.o.Store.ReadJobs(ctx, understudy.JobFilter{Number: number, Limit: 1})
	if err != nil {
		return 0, err
	}
	if len(found) == 0 {
		return 0, fmt.Errorf("jobs: replay job %d: %w", number, understudy.ErrNotFound)
	}
	j := found[0]
	if j.State <= understudy.JobRunning {
		return 0, fmt.Errorf("jobs: replay job %d: %w: it is %s; cancel it first", number, understudy.ErrInvalid, j.State)
	}
	again := understudy.Job{
		Kind: j.Kind, Key: j.Key, Payload: j.Payload, Priority: j.Priority, AtMostOnce: j.AtMostOnce,
		MaxAttempts: j.MaxAttempts, Weight: j.Weight,
	}
	if j.State != understudy.JobDone {
		again.Checkpoint = j.Checkpoint
	}
	numbers, err := r.Enqueue(ctx, again)
	if err != nil {
		return 0, err
	}
	return numbers[0], nil
}

// ListJobs returns jobs, the newest first. For jobs that run in this process it adds their current progress and
// the estimated time of their end.
func (r *Runner) ListJobs(ctx context.Context, f understudy.JobFilter) ([]understudy.Job, error) {
	all, err := r.o.Store.ReadJobs(ctx, f)
	if err != nil {
		return nil, err
	}
	now := r.o.Now()
	r.active.mu.Lock()
	defer r.active.mu.Unlock()
	for i := range all {
		if u := r.active.runs[lease{all[i].Number, all[i].Fence}]; u != nil && all[i].State == understudy.JobRunning {
			all[i].Progress = u.estimateProgress(now)
		}
	}
	return all, nil
}

// CountJobs returns the number of jobs in each state, of all processes.
func (r *Runner) CountJobs(ctx context.Context) (understudy.JobCounts, error) {
	return r.o.Store.CountJobs(ctx)
}
