// This file contains the runner: one loop sends heartbeats, plans periodic jobs and claims jobs. Each run has its
// own goroutine.
//
//	 Enqueue --row--> [store] <--claim-- loop --go--> run --end--> [store]
//	    '------------- wake ------------> |  <---- wake -----------'
//	                            one timer: the next job due, the next heartbeat

package jobs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/kit/semaphore"
)

// Runner runs jobs. It is safe for concurrent use.
type Runner struct {
	o           Options
	kinds       map[string]*Kind
	claims      []understudy.ClaimKind
	plans       []*plan // used only by the loop
	memory      *semaphore.Weighted
	wake        chan struct{}
	claimWanted atomic.Bool  // whether there may be a job to claim
	garbage     atomic.Int64 // the bytes that parts released since the last garbage collection

	active  active
	loop    loop
	desk    desk
	trouble trouble
	all     sync.WaitGroup
}

// active holds the runs that have not ended.
type active struct {
	mu               sync.Mutex
	runs             map[lease]*Run
	waitingForMemory int // the number of runs that wait for their memory
	storing          int // the number of runs that have done their work and store their result
	ending           bool
	counts           Stats
}

// loop is the state of the runner's loop. Only the loop uses it, except endedRuns.
type loop struct {
	firstClaimAlone bool
	claimAt         time.Time // when to claim jobs if nothing wakes the loop earlier
	trimAt          time.Time
	endedRuns       atomic.Int64 // the number of runs that ended since the archive was last trimmed; the goroutines of the runs change it
}

// lease identifies a run. A job whose lease was lost may run again in this process before its former run has ended.
type lease struct{ number, fence int64 }

// Stats counts jobs. Waiting, Running and Archived count the jobs of the store now. Begun to Lost count since the
// runner was created.
type Stats struct {
	Waiting   int64  `json:"waiting"` // waiting jobs in all processes; CountJobs sets this number, Running and Archived, Stats does not
	Running   int64  `json:"running"` // running jobs in all processes
	Archived  int64  `json:"archived"`
	Gathering int    `json:"gathering"` // runs in this process that wait for their memory
	Weight    int64  `json:"weight"`    // the memory that runs in this process hold, in bytes
	Memory    int64  `json:"memory"`    // the maximum of Weight in bytes
	Begun     int64  `json:"begun"`     // number of started runs
	Done      int64  `json:"done"`      // number of jobs that ended well
	Failed    int64  `json:"failed"`
	Cancelled int64  `json:"cancelled"`
	Expired   int64  `json:"expired"`
	Again     int64  `json:"again"`             // runs after which the job waits for another run
	Lost      int64  `json:"lost"`              // leases that expired or that another worker took
	Trouble   string `json:"trouble,omitempty"` // why no job can be claimed, or ""
}

// Stats returns the counters. It reads only memory.
func (r *Runner) Stats() Stats {
	r.active.mu.Lock()
	defer r.active.mu.Unlock()
	s := r.active.counts
	s.Gathering, s.Memory = r.active.waitingForMemory, r.o.Memory
	s.Weight = r.memory.Stats().Held
	s.Trouble = r.trouble.text()
	return s
}

// Intervals and limits of the runner's loop.
const (
	writeTimeout     = 10 * time.Second // the longest time of one write
	retryInterval    = time.Second      // the wait before the loop tries again to claim a due job
	trimInterval     = 10 * time.Minute
	trimAfterRuns    = 100 // the number of ended runs after which the archive is trimmed, or half of Options.Keep if that is more
	progressInterval = time.Second
)

// wakeLoop wakes the loop. claim is true if there may be a job to claim.
func (r *Runner) wakeLoop(claim bool) {
	if claim {
		r.claimWanted.Store(true)
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Wake looks for jobs that another process has given up.
func (r *Runner) Wake() { r.wakeLoop(true) }

// WakeWorkers looks for jobs of waiting workers that another process has added.
func (r *Runner) WakeWorkers() { r.desk.notify() }

// EndWaits sends waiting workers away, because the server stops.
func (r *Runner) EndWaits() { r.desk.close() }

// Run runs jobs until ctx ends. Then the contexts of all runs end. At-least-once jobs wait again, and the
// interrupted run does not count as an attempt. Runs that do not end within Options.Grace keep their leases
// until these expire; Run then returns an error. Run must be called only once.
func (r *Runner) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	r.claimWanted.Store(true)
	r.all.Go(func() { r.desk.run(ctx) })
	for ctx.Err() == nil {
		timer.Reset(r.step(ctx))
		select {
		case <-ctx.Done():
		case <-r.wake:
		case <-timer.C:
		}
	}
	return r.finish(context.WithoutCancel(ctx), timer)
}

// step does what is due and returns the time until the next step.
func (r *Runner) step(ctx context.Context) time.Duration {
	now := r.o.Now()
	r.sendHeartbeats(ctx, now)
	due := r.claimWanted.Swap(false) || !now.Before(r.loop.claimAt)
	if due && !r.trouble.isPaused(now) {
		r.loop.claimAt = now.Add(r.o.Lease)
		if err := r.claim(ctx, now); err != nil {
			r.claimWanted.Store(true)
			r.recordTrouble(ctx, err)
		} else {
			r.clearTrouble()
		}
		r.trim(ctx, now)
	} else if due {
		r.claimWanted.Store(true)
	}
	return max(r.next().Sub(r.o.Now()), 0)
}

// next returns the time when the loop has to act if nothing wakes it earlier.
func (r *Runner) next() time.Time {
	at := r.loop.claimAt
	if r.claimWanted.Load() {
		at = r.trouble.pauseEnd()
	}
	r.active.mu.Lock()
	defer r.active.mu.Unlock()
	for _, u := range r.active.runs {
		if b := u.nextHeartbeat(); b.Before(at) {
			at = b
		}
	}
	return at
}

// claim plans periodic jobs and claims jobs while there are free workers.
func (r *Runner) claim(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := r.plan(ctx, now); err != nil {
		return err
	}
	for {
		want, ok := r.nextClaim(now)
		if !ok {
			return nil // no worker is free; the end of a run will wake the loop
		}
		got, err := r.o.Store.ClaimJobs(ctx, want)
		if err != nil {
			return err
		}
		r.loop.firstClaimAlone = false
		r.countClaimed(&got)
		for _, j := range got.Jobs {
			r.begin(ctx, j, now)
		}
		if len(got.Jobs) < want.Limit {
			r.scheduleClaim(now, &got)
			return nil
		}
	}
}

// scheduleClaim sets the time of the next claim, from what the last claim returned.
func (r *Runner) scheduleClaim(now time.Time, got *understudy.Claimed) {
	sooner := func(t time.Time) {
		if t.Before(r.loop.claimAt) {
			r.loop.claimAt = t
		}
	}
	if !got.Next.IsZero() {
		sooner(got.Next.Add(time.Millisecond)) // a millisecond later, because the lease counts as expired only after its end
	}
	if got.Blocked {
		sooner(now.Add(retryInterval))
	}
	for _, p := range r.plans {
		sooner(p.due)
	}
}

// nextClaim returns what may be claimed now. It claims few jobs at a time, so that each claim takes the jobs
// before into account.
func (r *Runner) nextClaim(now time.Time) (understudy.Claim, bool) {
	r.active.mu.Lock()
	defer r.active.mu.Unlock()
	free := r.o.Workers - len(r.active.runs) + min(r.active.storing, 4*r.o.Workers)
	if r.active.ending || free <= 0 || len(r.claims) == 0 {
		return understudy.Claim{}, false
	}
	half := max(r.o.Workers/2, 1)
	limit := max(min(free-r.o.Workers/4, half-r.active.waitingForMemory), 1)
	c := understudy.Claim{
		Worker: r.o.Worker, Now: now, Kinds: r.claims, Limit: limit, Priority: priorityFor(free, r.o.Workers),
		Weight: math.MaxInt64, OnlyProcess: r.loop.firstClaimAlone,
	}
	if r.active.waitingForMemory >= half {
		// Enough heavy jobs wait for memory. A job claimed now must fit into the free memory.
		c.Weight = max(r.o.Memory-r.memory.Stats().Held, 0)
	}
	return c, true
}

// priorityFor returns the lowest priority that may use one of the free workers. A few workers are reserved for
// work that a caller waits for.
func priorityFor(free, workers int) understudy.Priority {
	switch {
	case workers > 1 && free <= workers/8:
		return understudy.PrioritySoon
	case workers > 1 && free <= workers/4:
		return understudy.PrioritySteady
	}
	return understudy.PriorityBulk
}

func (r *Runner) countClaimed(got *understudy.Claimed) {
	r.active.mu.Lock()
	defer r.active.mu.Unlock()
	r.active.counts.Failed += int64(got.Failed)
	r.active.counts.Cancelled += int64(got.Cancelled)
	r.active.counts.Expired += int64(got.Expired)
	r.active.counts.Lost += int64(got.Returned + got.Failed + got.Cancelled)
	if n := got.Returned + got.Failed + got.Cancelled; n > 0 {
		r.o.Logger.Warn("jobs: leases were lost", "begin_again", got.Returned, "failed", got.Failed, "cancelled", got.Cancelled)
	}
}

// trim removes old jobs from the archive.
func (r *Runner) trim(ctx context.Context, now time.Time) {
	if now.Before(r.loop.trimAt) && r.loop.endedRuns.Load() < max(trimAfterRuns, int64(r.o.Keep/2)) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	r.loop.trimAt = now.Add(trimInterval)
	r.loop.endedRuns.Store(0)
	if _, err := r.o.Store.TrimJobs(ctx, r.o.Keep, now.Add(-r.o.KeepFor)); err != nil {
		r.recordTrouble(ctx, err)
	}
}

// finish ends all runs and sends their heartbeats until they have ended.
func (r *Runner) finish(ctx context.Context, timer *time.Timer) error {
	end := r.o.Now().Add(r.o.Grace)
	r.active.mu.Lock()
	r.active.ending = true
	for _, u := range r.active.runs {
		u.cancel(errStopping)
	}
	r.active.mu.Unlock()
	for {
		if r.isIdle() {
			r.all.Wait() // an ended run may still be writing its log line
			return nil
		}
		now := r.o.Now()
		r.sendHeartbeats(ctx, now)
		r.claimWanted.Store(false)
		r.loop.claimAt = end
		if !now.Before(end) {
			return r.reportUnfinished()
		}
		timer.Reset(max(r.next().Sub(now), 0))
		select {
		case <-r.wake:
		case <-timer.C:
		}
	}
}

func (r *Runner) isIdle() bool {
	r.active.mu.Lock()
	defer r.active.mu.Unlock()
	return len(r.active.runs) == 0
}

// reportUnfinished returns an error that names the runs that did not end.
func (r *Runner) reportUnfinished() error {
	r.active.mu.Lock()
	defer r.active.mu.Unlock()
	var errs []error
	for l, u := range r.active.runs {
		errs = append(errs, fmt.Errorf("jobs: job %d, %s, did not end within %v; it starts again when its lease expires",
			l.number, u.kind.Name, r.o.Grace))
	}
	return errors.Join(errs...)
}
