// This file hands jobs to programs outside the server ("workers"), which wait for them over HTTP.

package jobs

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"understudy"
	"understudy/kit/retry"

	"understudy/kit/lockwatch"
)

// Limits of the desk.
const (
	maxWorkers   = 1000 // the maximum number of waiting workers
	maxHandouts  = 64   // the maximum number of jobs, and of results, in one claim
	blockedPause = 100 * time.Millisecond
	recheckPause = 10 * time.Second // how often the credential of a waiting worker is checked
)

var errRevoked = fmt.Errorf("jobs: %w: the credential is no longer valid", understudy.ErrUnauthorized)

// desk claims jobs for all waiting workers together, one job for each. While there is no job, waiting costs no statement: the desk knows
// from the last claim when the next job is due, and learns of new jobs.
type desk struct {
	r      *Runner
	wake   chan struct{}
	closed chan struct{} // closed when no more jobs are handed out
	close  func()        // closes it, once

	mu      lockwatch.Mutex
	waiting []*worker // the worker that has waited longest comes first
	news    bool      // whether there may be new jobs

	rests map[string]time.Time // until when nothing is due, by request; only the goroutine of run uses it
}

// worker is a waiting worker. It receives a job or an error from got until its context ends.
type worker struct {
	ctx     context.Context
	request string // workers with the same request are served together
	kinds   []understudy.ClaimKind
	got     chan handout
}

type handout struct {
	job understudy.Job
	err error
}

// notify makes the desk look for jobs.
func (d *desk) notify() {
	d.mu.Lock()
	d.news = true
	d.mu.Unlock()
	understudy.Wake(d.wake)
}

// run hands out jobs until ctx ends.
func (d *desk) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	defer d.close()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-d.wake:
		case <-timer.C:
		}
		timer.Reset(max(d.serve(ctx).Sub(d.r.o.Now()), 0))
	}
}

// serve claims jobs for the waiting workers and returns the time of the next claim.
func (d *desk) serve(ctx context.Context) (next time.Time) {
	d.mu.Lock()
	if d.news || len(d.rests) > maxWorkers {
		clear(d.rests)
		d.news = false
	}
	groups := map[string][]*worker{}
	for _, w := range d.waiting {
		groups[w.request] = append(groups[w.request], w)
	}
	d.mu.Unlock()
	next = d.r.o.Now().Add(time.Hour)
	if d.r.o.Paused {
		return next
	}
	for request, all := range groups {
		if !d.r.o.Now().Before(d.rests[request]) {
			d.rests[request] = d.claim(ctx, all[:min(len(all), maxHandouts)])
		}
		if at := d.rests[request]; at.Before(next) {
			next = at
		}
	}
	return next
}

// claim claims jobs for workers with the same request. It returns when there may be another job for this request.
func (d *desk) claim(ctx context.Context, all []*worker) (next time.Time) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	now := d.r.o.Now()
	got, err := d.r.o.Store.ClaimJobs(ctx, understudy.Claim{Worker: understudy.OutsideWorker, Now: now, Kinds: all[0].kinds, Limit: len(all),
		Priority: understudy.PriorityBulk, Weight: math.MaxInt64})
	d.r.countClaimed(&got)
	for i, w := range all {
		var out handout
		switch {
		case err != nil:
			out.err = err
		case i < len(got.Jobs):
			out.job = got.Jobs[i]
		default:
			continue
		}
		d.remove(w)
		select {
		case w.got <- out:
		case <-w.ctx.Done():
			d.giveBack(out.job)
		}
	}
	switch {
	case len(got.Jobs) == len(all):
		return now
	case got.Blocked:
		return now.Add(blockedPause)
	case err != nil || got.Next.IsZero():
		return now.Add(time.Hour)
	}
	return got.Next.Add(time.Millisecond)
}

func (d *desk) remove(w *worker) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = slices.DeleteFunc(d.waiting, func(one *worker) bool { return one == w })
}

// giveBack makes a claimed job wait again. If that fails, the job waits again when its lease ends.
func (d *desk) giveBack(j understudy.Job) {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	_, err := d.r.o.Store.EndJob(ctx, understudy.JobResult{Number: j.Number, Fence: j.Fence, State: understudy.JobWaiting,
		RunAfter: d.r.o.Now(), Uncounted: true})
	if err != nil && j.Number > 0 {
		d.r.o.Logger.Warn("job: its worker has gone, and it begins again when its lease ends", "job", j.Number, "err", err)
	}
	d.notify()
}

// findKind returns a kind whose jobs are for workers.
func (d *desk) findKind(name string) (*Kind, error) {
	if k := d.r.kinds[name]; k != nil && k.Outside {
		return k, nil
	}
	return nil, fmt.Errorf("%w: the settings name no jobs for workers %q; add the kind under jobs.kinds", understudy.ErrNotFound,
		understudy.Clip(name))
}

// ClaimOutside claims a job of one of the kinds for a worker, and waits for one until ctx ends. lease is how long the worker keeps the job
// without a heartbeat; 0 means the lease of its kind. isValid reports whether the worker may still wait for a job. Errors: that of ctx;
// ErrNotFound for an unknown kind; ErrUnavailable if too many workers wait or the server stops; ErrUnauthorized; ErrNotStored.
func (r *Runner) ClaimOutside(ctx context.Context, kinds []string, lease time.Duration, isValid func() bool) (understudy.Job, error) {
	d, w := &r.desk, &worker{ctx: ctx, request: fmt.Sprint(lease, kinds), got: make(chan handout)}
	for _, name := range kinds {
		k, err := r.desk.findKind(name)
		if err != nil {
			return understudy.Job{}, err
		}
		w.kinds = append(w.kinds, understudy.ClaimKind{Name: name, MaxRunning: k.Concurrency, Lease: cmp.Or(lease, k.Lease)})
	}
	d.mu.Lock()
	full := len(d.waiting) >= maxWorkers
	if !full {
		d.waiting = append(d.waiting, w)
	}
	d.mu.Unlock()
	if full {
		return understudy.Job{}, fmt.Errorf("jobs: %w: %d workers wait", understudy.ErrUnavailable, maxWorkers)
	}
	defer d.remove(w)
	understudy.Wake(d.wake)
	recheck := time.NewTicker(recheckPause)
	defer recheck.Stop()
	for {
		select {
		case got := <-w.got:
			if got.err == nil && !isValid() {
				d.giveBack(got.job)
				return understudy.Job{}, errRevoked
			}
			return got.job, got.err
		case <-recheck.C:
			if !isValid() {
				return understudy.Job{}, errRevoked
			}
		case <-d.closed:
			return understudy.Job{}, fmt.Errorf("jobs: %w: the server is stopping", understudy.ErrUnavailable)
		case <-ctx.Done():
			return understudy.Job{}, ctx.Err()
		}
	}
}

// EnqueueOutside stores a job of a kind for workers, unless there is or was one with its Key, and returns the stored job. Errors:
// ErrNotFound for an unknown kind; ErrConflict if the stored job has another payload; ErrInvalid; ErrNotStored.
func (r *Runner) EnqueueOutside(ctx context.Context, j understudy.Job) (understudy.Job, error) {
	k, err := r.desk.findKind(j.Kind)
	if err != nil {
		return j, err
	}
	stored, err := r.o.Store.AddUnique(ctx, r.withKindDefaults(j, k))
	switch {
	case err != nil:
		return j, err
	case !bytes.Equal(stored.Payload, j.Payload):
		return j, fmt.Errorf("jobs: %w: the job with this id has another body", understudy.ErrConflict)
	case stored.State == understudy.JobWaiting:
		r.o.Added()
		r.desk.notify()
	}
	return stored, nil
}

// readOutside returns what is stored of a job that a worker runs, and its kind.
func (d *desk) readOutside(ctx context.Context, j *understudy.Job) (now understudy.Job, k *Kind, err error) {
	if k, err = d.findKind(j.Kind); err == nil {
		now, err = d.r.o.Store.FindJob(ctx, j.Kind, j.Key)
	}
	return now, k, err
}

// RenewOutside renews the lease of a job that a worker runs, and stores its progress. lease is as for ClaimOutside. It returns the new end
// of the lease, and whether the worker is asked to stop. Errors: ErrNotFound; ErrLeaseLost; ErrNotStored.
func (r *Runner) RenewOutside(ctx context.Context, j understudy.Job, lease time.Duration) (end time.Time, stop bool, err error) {
	now, k, err := r.desk.readOutside(ctx, &j)
	if err != nil {
		return end, false, err
	}
	end = r.o.Now().Add(cmp.Or(lease, k.Lease))
	got, err := r.o.Store.RenewLeases(ctx, understudy.Heartbeat{Number: now.Number, Fence: j.Fence, LeaseEnd: end, Progress: j.Progress})
	if err == nil && got[0].Lost {
		err = fmt.Errorf("jobs: %w: the job is %s, or another worker has it", understudy.ErrLeaseLost, now.State)
	}
	return end, err == nil && got[0].StopRequested, err
}

// EndOutside stores how a worker's run of a job ended, and returns the new state. If j.State is JobWaiting, the job runs again after the
// pause, or after the back-off if that is 0; it fails if no attempts are left. A second call with the same result changes nothing. Errors:
// ErrNotFound; ErrLeaseLost; ErrNotStored.
func (r *Runner) EndOutside(ctx context.Context, j understudy.Job, pause time.Duration) (understudy.JobState, error) {
	now, k, err := r.desk.readOutside(ctx, &j)
	switch {
	case err != nil:
		return 0, err
	case now.Fence == j.Fence && now.State == j.State && j.State != understudy.JobWaiting:
		return j.State, nil // the worker did not receive the first answer
	case j.State == understudy.JobWaiting && (now.AtMostOnce || now.Attempt >= now.MaxAttempts):
		j.State = understudy.JobFailed
	}
	at := r.o.Now()
	pause = cmp.Or(pause, r.jitter(retry.Backoff(k.Backoff, k.MaxBackoff, now.Attempt-1)))
	state, err := r.o.Store.EndJob(ctx, understudy.JobResult{Number: now.Number, Fence: j.Fence, At: at, State: j.State, Error: j.Error,
		RunAfter: at.Add(pause), Progress: now.Progress})
	if err == nil && (state == understudy.JobWaiting || k.Concurrency < math.MaxInt32) {
		r.desk.notify()
	}
	r.loop.endedRuns.Add(1) // so that the archive is trimmed
	return state, err
}
