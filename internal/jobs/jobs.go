// Package jobs runs stored jobs at least once.
//
// A job is a row of the store and is leased to the worker that runs it. A worker that sends no heartbeats loses
// its lease. Another worker then runs the job again, and later writes of the first worker are refused. An
// at-most-once job is never run again, whatever its outcome.
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
	"sync"
	"time"

	"understudy"
	"understudy/kit/semaphore"
)

// Store stores jobs; store.DB implements it. Runners in other processes may share the store.
type Store interface {
	Queue
	Leases
	Archive
}

// Queue adds, claims and cancels jobs.
type Queue interface {
	AddJobs(ctx context.Context, now time.Time, jobs ...understudy.Job) ([]int64, error)
	AddUnique(ctx context.Context, j understudy.Job) (stored understudy.Job, err error)
	FindJob(ctx context.Context, kind, key string) (understudy.Job, error)
	PlanJob(ctx context.Context, now, since, slot time.Time, job understudy.Job) (number int64, last time.Time, err error)
	ClaimJobs(ctx context.Context, want understudy.Claim) (understudy.Claimed, error)
	CancelJob(ctx context.Context, number int64, now time.Time) (understudy.Job, error)
}

// Leases are the writes of running jobs. A write with an old fence returns ErrLeaseLost.
type Leases interface {
	RenewLeases(ctx context.Context, beats ...understudy.Heartbeat) ([]understudy.HeartbeatReply, error)
	MarkJob(ctx context.Context, number, fence int64, mark []byte) error
	EndJob(ctx context.Context, e understudy.JobResult) (understudy.JobState, error)
}

// Archive reads and counts jobs, and removes old ones.
type Archive interface {
	ReadJobs(ctx context.Context, f understudy.JobFilter) ([]understudy.Job, error)
	CountJobs(ctx context.Context) (understudy.JobCounts, error)
	TrimJobs(ctx context.Context, keep int, before time.Time) (removed int, err error)
}

// Kind is a kind of work. Every field except Name, and Run or Outside, has a usable zero value.
type Kind struct {
	Name string // a verb and a noun, such as "sync calls"
	// Run does the work of one job. It must return soon after ctx ends; the cause of ctx says why: the job was
	// cancelled, its lease was lost, or the runner stops. If Run returns nil, the job is done. After an error
	// the job runs again after a back-off, until its attempts are used up. An error that wraps
	// understudy.ErrInvalid fails the job at once. An understudy.Snooze says when the job runs again and does
	// not count as an attempt, nor does an error that wraps understudy.ErrNotStored. People see the error's
	// text, so it must not contain payload. The text and stack of a panic are written only to the log.
	Run func(ctx context.Context, r *Run) error
	// Outside means that programs outside the server run the jobs of this kind. Run is then nil.
	Outside bool
	// Once means that a job of this kind runs at most once. An interrupted run is not repeated.
	Once bool
	// Local means that the jobs of this kind send nothing out of the server, so that they also run while Options.Paused is set.
	Local       bool
	Concurrency int                 // the maximum number of concurrent runs in all processes; 0 means no limit
	Attempts    int                 // the maximum number of runs of a job; 0 means 5
	Lane        understudy.Priority // the priority of jobs that set no priority
	Weight      int64               // the memory in bytes of jobs that set no weight; 0 means almost none
	Lease       time.Duration       // how long a run keeps its job without heartbeats; 0 means Options.Lease
	Limit       time.Duration       // the longest duration of a run; 0 means no limit as long as the run sends heartbeats
	Backoff     time.Duration       // the wait before the second run, doubled for each further run, with jitter; 0 means 1s
	MaxBackoff  time.Duration       // the longest wait between two runs of a job; 0 means 10m

	// Schedule makes the kind periodic (see Every). It returns when the next job is due after the slot last;
	// last is zero before the first job. The job has the key "periodic". It is added unless such a job is
	// waiting or running, also after a restart. For any number of missed slots one job is added.
	Schedule func(last time.Time) time.Time
}

// periodicKey is the key of the periodic jobs that a runner adds.
const periodicKey = "periodic"

// Options are the options of a runner.
type Options struct {
	Store   Store
	Kinds   []Kind // the kinds of jobs; Runner.Add can add more
	Workers int    // the maximum number of concurrent runs; 0 means 8
	Memory  int64  // the maximum weight of all runs together, in bytes; 0 means 256 MiB
	// Lease is how long a run keeps its job without heartbeats. Every run sends three heartbeats in this time. 0 means 30s.
	Lease time.Duration
	// Keep is the number of archived jobs that are kept in each state (0 means 1,000). KeepFor is how long they are
	// kept (0 means 30 days).
	Keep    int
	KeepFor time.Duration
	// Grace is how long running jobs may take to end when the runner stops; 0 means 8s.
	Grace time.Duration
	// Paused means that only jobs of local kinds run, and that workers get no job. Other jobs wait.
	Paused bool
	// OnlyProcess means that no other process runs jobs of this store. The runner then takes over leases found at the
	// start at once, without waiting for their expiry.
	OnlyProcess bool
	Worker      string           // the name of this runner; "" means a random name
	Now         func() time.Time // the clock; nil means time.Now
	Rand        func() float64   // returns a random number in [0, 1) for jitter, safe for concurrent use; nil means math/rand/v2
	// CollectGarbage runs a garbage collection. The runner calls it from time to time after heavy work. nil means runtime.GC.
	CollectGarbage func()
	// Added is called after jobs were added, so that other processes learn of them. It must not wait. It may be nil.
	Added  func()
	Logger *slog.Logger // nil means no log
}

// withDefaults returns the options with default values in place of zero values.
func (o Options) withDefaults() Options {
	o.Workers = cmp.Or(max(o.Workers, 0), 8)
	o.Memory = cmp.Or(max(o.Memory, 0), 256<<20)
	o.Lease = cmp.Or(max(o.Lease, 0), 30*time.Second)
	o.Keep = cmp.Or(max(o.Keep, 0), 1000)
	o.KeepFor = cmp.Or(max(o.KeepFor, 0), 30*24*time.Hour)
	o.Grace = cmp.Or(max(o.Grace, 0), 8*time.Second)
	o.Worker = cmp.Or(o.Worker, rand.Text())
	if o.CollectGarbage == nil {
		o.CollectGarbage = runtime.GC
	}
	if o.Rand == nil {
		o.Rand = random.Float64
	}
	if o.Added == nil {
		o.Added = func() {}
	}
	understudy.SetDefaults(&o.Logger, &o.Now)
	return o
}

// maxKinds is the maximum number of kinds in one claim.
const maxKinds = 2048

// New returns a runner that runs nothing before Run is called. The names of kinds must be unique, and every
// kind needs a Run function.
func New(o Options) (*Runner, error) {
	o = o.withDefaults()
	if o.Store == nil {
		return nil, errors.New("jobs: a runner needs a store")
	}
	r := &Runner{
		o: o, kinds: map[string]*Kind{}, active: active{runs: map[lease]*Run{}}, wake: make(chan struct{}, 1),
		memory: semaphore.New(semaphore.Options{Limit: o.Memory, Refuse: true}), loop: loop{firstClaimAlone: o.OnlyProcess},
	}
	r.desk = desk{r: r, wake: make(chan struct{}, 1), closed: make(chan struct{}), rests: map[string]time.Time{}}
	r.desk.close = sync.OnceFunc(func() { close(r.desk.closed) })
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

// add checks a kind, sets its defaults and adds it.
func (r *Runner) add(k Kind) error {
	switch {
	case k.Name == "" || (k.Run == nil) != k.Outside:
		return errors.New("it needs a name and a Run function")
	case r.kinds[k.Name] != nil:
		return errors.New("the name is used twice")
	case k.Weight > r.o.Memory:
		return fmt.Errorf("the job needs %s of memory; raise jobs.memory, which is %s", sizeText(k.Weight), sizeText(r.o.Memory))
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
	if k.Outside || r.o.Paused && !k.Local {
		return nil
	}
	r.claims = append(r.claims, understudy.ClaimKind{Name: k.Name, MaxRunning: k.Concurrency, Lease: k.Lease})
	if k.Schedule != nil {
		r.plans = append(r.plans, &plan{kind: &k})
	}
	return nil
}

// sizeText returns a size as text, such as "3 MiB".
func sizeText(n int64) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", n)
}
