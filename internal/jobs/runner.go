// Runner: one loop that beats, plans and claims; a goroutine for each run.
//
//	 Enqueue --row--> [store] <--claim-- loop --go--> run --end--> [store]
//	    '------------- wake ------------> |  <---- wake -----------'
//	                            one timer: the next job due, the next sign of life

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

// Runner does jobs. It is safe for concurrent use.
type Runner struct {
	o       Options
	kinds   map[string]*Kind
	claims  []understudy.ClaimKind
	plans   []*plan // the loop's
	scale   *semaphore.Weighted
	wake    chan struct{}
	want    atomic.Bool  // something may have become possible to claim
	garbage atomic.Int64 // bytes given back by parts since the last collection

	active  active
	loop    loop
	trouble trouble
	all     sync.WaitGroup
}

// active are the runs of now.
type active struct {
	mu        sync.Mutex
	runs      map[lease]*Run
	gathering int // of these, those that wait for their weight
	ending    bool
	counts    Stats
}

// loop is the state of the runner's loop, which alone uses it.
type loop struct {
	alone   bool
	claimAt time.Time // when the loop looks again without being woken
	trimAt  time.Time
	ended   atomic.Int64 // since the archive was trimmed; runs count, too
}

// lease names a run: a job that was lost may be begun again here before the
// former run has ended.
type lease struct{ number, fence int64 }

// Stats count jobs. Begun to Lost count since the runner was made.
type Stats struct {
	Waiting   int64  `json:"waiting"` // over all processes, as Running and Archived; Counts has them, Stats leaves them 0
	Running   int64  `json:"running"` // over all processes
	Archived  int64  `json:"archived"`
	Gathering int    `json:"gathering"` // runs here that wait for their weight
	Weight    int64  `json:"weight"`    // bytes held by runs here
	Memory    int64  `json:"memory"`    // bytes they may hold
	Begun     int64  `json:"begun"`     // runs
	Done      int64  `json:"done"`      // jobs
	Failed    int64  `json:"failed"`
	Cancelled int64  `json:"cancelled"`
	Expired   int64  `json:"expired"`
	Again     int64  `json:"again"`             // runs that ended with the job waiting again
	Lost      int64  `json:"lost"`              // leases taken back from this runner or found lost
	Trouble   string `json:"trouble,omitempty"` // why nothing can be claimed; "": nothing is wrong
}

// Stats returns the counters; it reads memory only.
func (r *Runner) Stats() Stats {
	r.active.mu.Lock()
	defer r.active.mu.Unlock()
	s := r.active.counts
	s.Gathering, s.Memory = r.active.gathering, r.o.Memory
	s.Weight = r.scale.Stats().Held
	s.Trouble = r.trouble.text()
	return s
}

// Times of the loop.
const (
	writeTime  = 10 * time.Second // for one write
	heldAgain  = time.Second      // until a due job is tried again that could not be claimed
	trimEvery  = 10 * time.Minute
	trimAfter  = 100 // ends
	progressAt = time.Second
)

// ring wakes the loop; claim says that there may be something to claim.
func (r *Runner) ring(claim bool) {
	if claim {
		r.want.Store(true)
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run does jobs until ctx ends. Then the contexts of all runs end. Jobs that run at
// least once wait again, and the run does not count as an attempt. Runs that have not
// ended after Options.Grace keep their leases until these run out; that is an error.
// Run is called once.
func (r *Runner) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	r.want.Store(true)
	for ctx.Err() == nil {
		timer.Reset(r.look(ctx))
		select {
		case <-ctx.Done():
		case <-r.wake:
		case <-timer.C:
		}
	}
	return r.finish(context.WithoutCancel(ctx), timer)
}

// look does what is due and returns how long there is nothing to do.
func (r *Runner) look(ctx context.Context) time.Duration {
	now := r.o.Now()
	r.heartbeat(ctx, now)
	due := r.want.Swap(false) || !now.Before(r.loop.claimAt)
	if due && !r.trouble.waits(now) {
		r.loop.claimAt = now.Add(r.o.Lease)
		if err := r.claim(ctx, now); err != nil {
			r.want.Store(true)
			r.stumble(ctx, err)
		} else {
			r.recovered()
		}
		r.trim(ctx, now)
	} else if due {
		r.want.Store(true)
	}
	return max(r.next().Sub(r.o.Now()), 0)
}

// next returns when the loop has something to do without being woken.
func (r *Runner) next() time.Time {
	at := r.loop.claimAt
	if r.want.Load() {
		at = r.trouble.until()
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

// claim plans what is periodic and takes what may begin, as long as there are
// workers.
func (r *Runner) claim(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	if err := r.plan(ctx, now); err != nil {
		return err
	}
	for {
		want, ok := r.wanted(now)
		if !ok {
			return nil // a run that ends wakes the loop
		}
		got, err := r.o.Store.ClaimJobs(ctx, want)
		if err != nil {
			return err
		}
		r.loop.alone = false
		r.found(&got)
		for _, j := range got.Jobs {
			r.begin(ctx, j, now)
		}
		if len(got.Jobs) < want.Limit {
			r.lookAgain(now, &got)
			return nil
		}
	}
}

// lookAgain sets when the loop looks again without being woken.
func (r *Runner) lookAgain(now time.Time, got *understudy.Claimed) {
	sooner := func(t time.Time) {
		if t.Before(r.loop.claimAt) {
			r.loop.claimAt = t
		}
	}
	if !got.Next.IsZero() {
		sooner(got.Next.Add(time.Millisecond)) // a lease is over after its end
	}
	if got.Held {
		sooner(now.Add(heldAgain))
	}
	for _, p := range r.plans {
		sooner(p.due)
	}
}

// wanted is what may be claimed: a few jobs at a time, so that each decision
// knows of those before.
func (r *Runner) wanted(now time.Time) (understudy.Claim, bool) {
	r.active.mu.Lock()
	defer r.active.mu.Unlock()
	free := r.o.Workers - len(r.active.runs)
	if r.active.ending || free <= 0 || len(r.claims) == 0 {
		return understudy.Claim{}, false
	}
	half := max(r.o.Workers/2, 1)
	limit := max(min(free-r.o.Workers/4, half-r.active.gathering), 1)
	c := understudy.Claim{
		Worker: r.o.Worker, Now: now, Kinds: r.claims, Limit: limit, Priority: priorityFor(free, r.o.Workers),
		Weight: math.MaxInt64, Alone: r.loop.alone,
	}
	if r.active.gathering >= half {
		// Enough heavy jobs wait for memory. A job claimed now has to fit beside them.
		c.Weight = max(r.o.Memory-r.scale.Stats().Held, 0)
	}
	return c, true
}

// priorityFor returns the last priority class that may use one of the free workers. A
// few workers are reserved for work that a caller waits for.
func priorityFor(free, workers int) understudy.Priority {
	switch {
	case workers > 1 && free <= workers/8:
		return understudy.Soon
	case workers > 1 && free <= workers/4:
		return understudy.Steady
	}
	return understudy.Bulk
}

func (r *Runner) found(got *understudy.Claimed) {
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

// trim keeps the archive short.
func (r *Runner) trim(ctx context.Context, now time.Time) {
	if now.Before(r.loop.trimAt) && r.loop.ended.Load() < trimAfter {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	r.loop.trimAt = now.Add(trimEvery)
	r.loop.ended.Store(0)
	if _, err := r.o.Store.TrimJobs(ctx, r.o.Keep, now.Add(-r.o.KeepFor)); err != nil {
		r.stumble(ctx, err)
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
		if r.idle() {
			r.all.Wait() // for the last words of runs that have ended
			return nil
		}
		now := r.o.Now()
		r.heartbeat(ctx, now)
		r.want.Store(false)
		r.loop.claimAt = end
		if !now.Before(end) {
			return r.left()
		}
		timer.Reset(max(r.next().Sub(now), 0))
		select {
		case <-r.wake:
		case <-timer.C:
		}
	}
}

func (r *Runner) idle() bool {
	r.active.mu.Lock()
	defer r.active.mu.Unlock()
	return len(r.active.runs) == 0
}

// left names the runs that did not end.
func (r *Runner) left() error {
	r.active.mu.Lock()
	defer r.active.mu.Unlock()
	var errs []error
	for l, u := range r.active.runs {
		errs = append(errs, fmt.Errorf("jobs: job %d, %s, did not end within %v; its lease ends by itself", l.number, u.kind.Name, r.o.Grace))
	}
	return errors.Join(errs...)
}
