// What others ask of a runner: add, cancel, replay, look.

package jobs

import (
	"cmp"
	"context"
	"fmt"

	"understudy"
)

// filled is a job with what its kind says where it says nothing itself.
func (r *Runner) filled(j understudy.Job, k *Kind) understudy.Job {
	j.Once = j.Once || k.Once
	j.Attempts = cmp.Or(max(j.Attempts, 0), k.Attempts)
	if j.Once {
		j.Attempts = 1
	}
	j.Weight = cmp.Or(j.Weight, k.Weight)
	j.Priority = cmp.Or(j.Priority, k.Lane)
	return j
}

// Enqueue promises jobs, all or none, at most 1,000 at once, and returns their
// numbers: of one whose kind and key a live job has, that job's number. When it
// has returned nil the promise is kept over restarts. Errors:
// understudy.ErrInvalid (a kind this runner does not know, a payload that is too
// long, a job heavier than Options.Memory), understudy.ErrNotStored.
func (r *Runner) Enqueue(ctx context.Context, jobs ...understudy.Job) ([]int64, error) {
	all := make([]understudy.Job, len(jobs))
	for i, j := range jobs {
		k := r.kinds[j.Kind]
		if k == nil {
			return nil, fmt.Errorf("jobs: %w: no kind is called %q", understudy.ErrInvalid, j.Kind)
		}
		all[i] = r.filled(j, k)
		if all[i].Weight > r.o.Memory {
			return nil, fmt.Errorf("jobs: %w: %s: %w", understudy.ErrInvalid, j.Kind, &overQuotaError{all[i].Weight, r.o.Memory})
		}
	}
	numbers, err := r.o.Store.AddJobs(ctx, r.o.Now(), all...)
	if err != nil {
		return nil, err
	}
	r.ring(true)
	return numbers, nil
}

// Cancel archives a waiting job at once. The context of a running one ends,
// here at once, in another process with its next sign of life; what it returns
// then is not tried again. Errors: understudy.ErrNotFound; understudy.ErrInvalid
// for one that is archived.
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

// Replay promises the work of an archived job again, as a new job; one that was
// not done goes on at its mark. It returns the new number, or that of a live
// job with the same kind and key. Errors: understudy.ErrNotFound;
// understudy.ErrInvalid for a job that is not archived or a kind that is not
// known any more.
func (r *Runner) Replay(ctx context.Context, number int64) (int64, error) {
	found, err := r.o.Store.Jobs(ctx, understudy.JobFilter{Number: number, Limit: 1})
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
		Kind: j.Kind, Key: j.Key, Payload: j.Payload, Priority: j.Priority, Once: j.Once, Attempts: j.Attempts, Weight: j.Weight,
	}
	if j.State != understudy.JobDone {
		again.Mark = j.Mark
	}
	numbers, err := r.Enqueue(ctx, again)
	if err != nil {
		return 0, err
	}
	return numbers[0], nil
}

// Jobs returns jobs as they stand, the newest first; those that run here with
// their progress of this moment and the time they are expected to be through.
func (r *Runner) Jobs(ctx context.Context, f understudy.JobFilter) ([]understudy.Job, error) {
	all, err := r.o.Store.Jobs(ctx, f)
	if err != nil {
		return nil, err
	}
	now := r.o.Now()
	r.active.mu.Lock()
	defer r.active.mu.Unlock()
	for i := range all {
		if u := r.active.runs[lease{all[i].Number, all[i].Fence}]; u != nil && all[i].State == understudy.JobRunning {
			all[i].Progress = u.progress(now)
		}
	}
	return all, nil
}

// Counts counts jobs by where they stand, over all processes.
func (r *Runner) Counts(ctx context.Context) (understudy.JobCounts, error) {
	return r.o.Store.JobCounts(ctx)
}
