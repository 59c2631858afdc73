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
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/kit/lockwatch"
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
	mu               lockwatch.Mutex
	runs             map[lease]*Run
	waitingForMemory int    // the number of runs that wait for their memory
	ended            []*Run // the runs that have done their work and whose results are not stored yet
	ending           bool
	counts           Stats
}

// loop is the state of the runner's loop. Only the loop uses it, except endedRuns.
type loop struct {
	firstClaimAlone bool
	light           bool      // whether no job of the last claim has a weight
	claimAt         time.Time // when to claim jobs if nothing wakes the loop earlier
	trimAt          time.Time
	trims           atomic.Bool  // whether the archive is being trimmed
	endedRuns       atomic.Int64 // the number of runs that ended since the archive was last trimmed; requests of workers change it, too
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
	maxUntrimmed     = 5000
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
	if due && !now.Before(r.trouble.pauseEnd()) {
		r.loop.claimAt = now.Add(r.o.Lease)
		// If no job can be planned because the disk is full, results can still be stored.
		if err := errors.Join(r.plan(ctx, now), r.claim(ctx, now)); err != nil {
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

// claim stores the results of ended runs and claims jobs for free workers, in one transaction. If the results cannot be stored, the
// next call tries again. Meanwhile heartbeats keep the leases, if the store can be written.
func (r *Runner) claim(ctx context.Context, now time.Time) error {
	want, ended := r.nextClaim(now)
	if len(ended) > 0 {
		ctx = context.WithoutCancel(ctx)
	} else if want.Limit == 0 {
		return nil // no worker is free; the end of a run will wake the loop
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	got, err := r.o.Store.ClaimJobs(ctx, want)
	r.active.mu.Lock()
	if err != nil && (r.active.ending || errors.Is(err, understudy.ErrClosed)) {
		got.Ended = make([]understudy.JobState, len(ended)) // nobody renews the leases any more, so they expire
	}
	r.active.ended = r.active.ended[len(got.Ended):]
	more := len(r.active.ended) > 0
	r.active.mu.Unlock()
	for i, state := range got.Ended {
		r.logEnd(ended[i], state)
	}
	r.loop.endedRuns.Add(int64(len(got.Ended)))
	if err != nil {
		return err
	}
	r.loop.firstClaimAlone = false
	r.countClaimed(&got)
	r.loop.light = true
	for _, j := range got.Jobs {
		r.loop.light = r.loop.light && j.Weight == 0
		r.begin(ctx, j, now)
	}
	if more || len(got.Jobs) == want.Limit {
		r.wakeLoop(true)
		runtime.Gosched() // so that the next claim stores the results of short runs, too
	} else {
		r.scheduleClaim(now, &got)
	}
	return nil
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

// nextClaim returns what may be claimed now, and the runs whose results it stores. It claims few jobs at a time, so that each claim takes
// the jobs before into account.
func (r *Runner) nextClaim(now time.Time) (understudy.Claim, []*Run) {
	r.active.mu.Lock()
	defer r.active.mu.Unlock()
	ended := r.active.ended[:min(len(r.active.ended), maxHandouts)]
	free := r.o.Workers - len(r.active.runs) + min(len(r.active.ended), 4*r.o.Workers)
	c := understudy.Claim{
		Worker: r.o.Worker, Now: now, Kinds: r.claims, Priority: priorityFor(free, r.o.Workers), Weight: math.MaxInt64,
		OnlyProcess: r.loop.firstClaimAlone,
	}
	for _, u := range ended {
		c.Ends = append(c.Ends, u.result)
	}
	half := max(r.o.Workers/2, 1)
	if !r.active.ending && free > 0 && len(r.claims) > 0 {
		most := half // all claimed jobs may have to wait for memory
		if r.loop.light {
			most = free
		}
		c.Limit = max(min(free-r.o.Workers/4, most-r.active.waitingForMemory), 1)
	}
	if r.active.waitingForMemory >= half {
		// Enough heavy jobs wait for memory. A job claimed now must fit into the free memory.
		c.Weight = max(r.o.Memory-r.memory.Stats().Held, 0)
	}
	return c, ended
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

// trim removes old jobs from the archive, while the loop goes on.
func (r *Runner) trim(ctx context.Context, now time.Time) {
	most := max(trimAfterRuns, min(int64(r.o.Keep/2), maxUntrimmed))
	if now.Before(r.loop.trimAt) && r.loop.endedRuns.Load() < most || !r.loop.trims.CompareAndSwap(false, true) {
		return
	}
	r.loop.trimAt = now.Add(trimInterval)
	r.loop.endedRuns.Store(0)
	r.all.Go(func() {
		defer r.loop.trims.Store(false)
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		if _, err := r.o.Store.TrimJobs(ctx, r.o.Keep, now.Add(-r.o.KeepFor)); err != nil {
			r.recordTrouble(ctx, err)
		}
	})
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
		now := r.o.Now()
		if err := r.claim(ctx, now); err != nil {
			r.recordTrouble(ctx, err)
		}
		unfinished := r.reportUnfinished()
		if unfinished == nil {
			r.all.Wait()
			return nil
		}
		r.sendHeartbeats(ctx, now)
		r.claimWanted.Store(false)
		r.loop.claimAt = end
		if !now.Before(end) {
			return unfinished
		}
		timer.Reset(max(r.next().Sub(now), 0))
		select {
		case <-r.wake:
		case <-timer.C:
		}
	}
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
