// Jobs: kinds of jobs, the store of jobs, settings.

// Package jobs runs stored jobs at least once.
//
// A job is a row of the store, leased to the worker that runs it. A worker without
// heartbeats loses its lease. Another worker then begins the job again, and later
// writes of the former worker are refused. An at-most-once job is never begun
// again, whatever its outcome.
package jobs

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math"
	random "math/rand/v2"
	"runtime"
	"time"

	"understudy"
	"understudy/kit/semaphore"
)

// Store keeps jobs; store.DB does. All of it may be shared with runners in other
// processes.
type Store interface {
	Queue
	Leases
	Archive
}

// Queue is where jobs are put and taken.
type Queue interface {
	AddJobs(ctx context.Context, now time.Time, jobs ...understudy.Job) ([]int64, error)
	PlanJob(ctx context.Context, now, since, slot time.Time, job understudy.Job) (number int64, last time.Time, err error)
	ClaimJobs(ctx context.Context, want understudy.Claim) (understudy.Claimed, error)
	CancelJob(ctx context.Context, number int64, now time.Time) (understudy.Job, error)
}

// Leases are jobs that run. A write under an old fence is ErrLost.
type Leases interface {
	BeatJobs(ctx context.Context, beats ...understudy.Heartbeat) ([]understudy.HeartbeatReply, error)
	MarkJob(ctx context.Context, number, fence int64, mark []byte) error
	EndJob(ctx context.Context, e understudy.JobResult) (understudy.JobState, error)
}

// Archive is where jobs are looked up.
type Archive interface {
	Jobs(ctx context.Context, f understudy.JobFilter) ([]understudy.Job, error)
	JobCounts(ctx context.Context) (understudy.JobCounts, error)
	TrimJobs(ctx context.Context, keep int, before time.Time) (removed int, err error)
}

// Kind is one sort of work. Everything but Name and Run has a good zero value.
type Kind struct {
	Name string // verb and noun: "sync calls"
	// Run does the work of one job. It ends soon after ctx does, whose cause says why: the
	// job was cancelled, its lease lost, the runner stopped. A nil error is the end of the
	// job. Otherwise the job is begun again after a while until its attempts are used up.
	// An error that wraps understudy.ErrInvalid fails it at once. An understudy.Snooze says
	// when, and does not count as an attempt; nor does an error that wraps
	// understudy.ErrNotStored. People see the error's text, so it must hold no payload. A
	// panic is an error whose text and stack are in the log alone.
	Run func(ctx context.Context, r *Run) error
	// Once: at most once. A run that broke off is not begun again.
	Once        bool
	Concurrency int                 // how many may run at once, over all processes; 0: any number
	Attempts    int                 // how many runs may begin; 0: 5
	Lane        understudy.Priority // of jobs that are in the first one
	Weight      int64               // bytes of memory of a job that does not say; 0: next to nothing
	Lease       time.Duration       // how long a run is waited for that is not heard of; 0: the runner's
	Limit       time.Duration       // how long one run may take; 0: as long as its heartbeats come
	Backoff     time.Duration       // before the second run, doubled for each further one, with jitter; 0: 1s
	MaxBackoff  time.Duration       // and never more than this; 0: 10m

	// Schedule makes the kind periodic (see Every): it says when the job after the one
	// of slot last is due; a zero last is before the first. The job has the key
	// "periodic". It is added while no other is live, over restarts too. Missed slots
	// are made up for once.
	Schedule func(last time.Time) time.Time
}

// periodicKey is the key of the jobs a runner adds by itself.
const periodicKey = "periodic"

// Options are a runner's settings.
type Options struct {
	Store   Store
	Kinds   []Kind // more are added by Add
	Workers int    // runs at once; 0: 8
	Memory  int64  // bytes all runs together may weigh; 0: 256 MiB
	// Lease is how long a run without heartbeats keeps its job. Every run sends three
	// heartbeats in this time. 0: 30s.
	Lease time.Duration
	// Keep is how many archived jobs of each state are kept, and KeepFor how
	// long; 0: 1,000 and 30 days.
	Keep    int
	KeepFor time.Duration
	// Grace is how long runs may take to end once the runner is to; 0: 8s.
	Grace time.Duration
	// Alone means that no other process runs jobs of this store. Leases found at the
	// start are then lost for certain, and their end is not waited for.
	Alone  bool
	Worker string           // names this runner; "": a random name
	Now    func() time.Time // nil: time.Now
	Rand   func() float64   // for jitter, in [0, 1), safe for concurrent use; nil: math/rand/v2
	// Collect collects garbage, now and then when heavy work is done; nil:
	// runtime.GC.
	Collect func()
	Logger  *slog.Logger // nil: discard
}

func (o Options) withDefaults() Options {
	o.Workers = cmp.Or(max(o.Workers, 0), 8)
	o.Memory = cmp.Or(max(o.Memory, 0), 256<<20)
	o.Lease = cmp.Or(max(o.Lease, 0), 30*time.Second)
	o.Keep = cmp.Or(max(o.Keep, 0), 1000)
	o.KeepFor = cmp.Or(max(o.KeepFor, 0), 30*24*time.Hour)
	o.Grace = cmp.Or(max(o.Grace, 0), 8*time.Second)
	o.Worker = cmp.Or(o.Worker, rand.Text())
	if o.Collect == nil {
		o.Collect = runtime.GC
	}
	if o.Rand == nil {
		o.Rand = random.Float64
	}
	understudy.SetDefaults(&o.Logger, &o.Now)
	return o
}

// maxKinds is how many kinds the store takes in one claim.
const maxKinds = 2048

// New makes a runner; it runs nothing before Run. Kinds are known by their
// names: no two have the same, and every one has a Run.
func New(o Options) (*Runner, error) {
	o = o.withDefaults()
	if o.Store == nil {
		return nil, errors.New("jobs: a runner has a store")
	}
	r := &Runner{
		o: o, kinds: map[string]*Kind{}, active: active{runs: map[lease]*Run{}}, wake: make(chan struct{}, 1),
		scale: semaphore.New(semaphore.Options{Limit: o.Memory, Refuse: true}), loop: loop{alone: o.Alone},
	}
	return r, r.Add(o.Kinds...)
}

// Add adds kinds of jobs. Call it before any other method.
func (r *Runner) Add(kinds ...Kind) error {
	if n := len(r.kinds) + len(kinds); n > maxKinds {
		return fmt.Errorf("jobs: there are %d kinds, and at most %d can be claimed together", n, maxKinds)
	}
	for _, k := range kinds {
		if err := r.add(k); err != nil {
			return fmt.Errorf("jobs: kind %q: %w", k.Name, err)
		}
	}
	return nil
}

func (r *Runner) add(k Kind) error {
	switch {
	case k.Name == "" || k.Run == nil:
		return errors.New("it has a name and a run")
	case r.kinds[k.Name] != nil:
		return errors.New("there are two of that name")
	case k.Weight > r.o.Memory:
		return fmt.Errorf("it weighs %s; raise jobs.memory, which is %s", bytesOf(k.Weight), bytesOf(r.o.Memory))
	}
	k.Attempts = cmp.Or(k.Attempts, 5)
	if k.Once {
		k.Attempts = 1
	}
	k.Concurrency = cmp.Or(k.Concurrency, math.MaxInt32)
	k.Lease = cmp.Or(k.Lease, r.o.Lease)
	k.Backoff = cmp.Or(k.Backoff, time.Second)
	k.MaxBackoff = max(cmp.Or(k.MaxBackoff, 10*time.Minute), k.Backoff)
	r.kinds[k.Name] = &k
	r.claims = append(r.claims, understudy.ClaimKind{Name: k.Name, Most: k.Concurrency, Lease: k.Lease})
	if k.Schedule != nil {
		r.plans = append(r.plans, &plan{kind: &k})
	}
	return nil
}

// bytesOf is a size in words.
func bytesOf(n int64) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", n)
}
