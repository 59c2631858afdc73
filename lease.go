// Lease: the right of one worker to run a job, and the messages between worker and store.

package understudy

import "time"

// Claim asks the store for jobs that may start now.
type Claim struct {
	Worker   string    // name of the worker, unique among all workers
	Now      time.Time // current time by the worker's clock
	Kinds    []ClaimKind
	Limit    int      // largest number of jobs to return
	Priority Priority // lowest priority to return; more urgent jobs are included
	Weight   int64    // largest Weight of a job to return, in bytes
	// OnlyProcess says that no other process runs jobs, so that a lease of another worker was lost with its
	// process.
	OnlyProcess bool
}

// ClaimKind is a kind of job that the worker can run.
type ClaimKind struct {
	Name       string
	MaxRunning int           // how many jobs of the kind may run at once in all processes together
	Lease      time.Duration // length of the lease of each job
}

// Claimed is the result of a Claim.
type Claimed struct {
	Jobs []Job // the claimed jobs, now running, each with a new fence
	// Next is when the next job of those kinds is due, expires or loses its lease. The zero time means that
	// nothing is planned.
	Next time.Time
	// Blocked says that a job is due and was not claimed only because of MaxRunning, its priority or its
	// weight.
	Blocked bool
	// Numbers of other jobs that the claim changed. Failed and Cancelled jobs were archived because their lease
	// ended without a heartbeat. Expired jobs were archived because their time was over. Returned jobs wait
	// again.
	Failed, Cancelled, Expired, Returned int
}

// Count adds one job with the new state s to the counters.
func (c *Claimed) Count(s JobState) {
	switch s {
	case JobWaiting:
		c.Returned++
	case JobFailed:
		c.Failed++
	case JobCancelled:
		c.Cancelled++
	case JobExpired:
		c.Expired++
	}
}

// Heartbeat tells the store that a run is still alive.
type Heartbeat struct {
	Number, Fence int64
	LeaseEnd      time.Time // new end of the lease
	Progress      Progress
}

// HeartbeatReply is the store's answer to a heartbeat.
type HeartbeatReply struct {
	Lost          bool // the worker no longer has the lease
	StopRequested bool // the run was asked to end
}

// JobResult says how a run ended. State is the job's next state.
type JobResult struct {
	Number, Fence int64
	At            time.Time
	State         JobState // JobWaiting means that the job runs again, at RunAfter or later
	Error         string
	RunAfter      time.Time
	Uncounted     bool  // the run does not count as an attempt
	Weight        int64 // measured memory use in bytes; 0 keeps the former value
	Progress      Progress
}

// JobFilter selects jobs. The newest come first.
type JobFilter struct {
	Kind   string     // kind of the jobs; "" means all
	States []JobState // states of the jobs; an empty list means all
	Number int64      // number of the only job to return; 0 means all
	Before int64      // only jobs with a smaller number; 0 starts at the newest
	Limit  int        // largest number of jobs; 0 means 100; never more than MaxJobs
}

// MaxJobs is the largest number of jobs that one query returns.
const MaxJobs = 500

// JobCounts counts jobs by state.
type JobCounts struct{ Waiting, Running, Archived int64 }

// Snooze is the error of a run that cannot continue now. The job runs again after Wait, and the run does not
// count as an attempt. A job with AtMostOnce fails instead.
type Snooze struct {
	Wait time.Duration
	Err  error // the reason
}

// Error returns the text of the reason.
func (e *Snooze) Error() string {
	if e.Err == nil {
		return "later"
	}
	return e.Err.Error()
}

// Unwrap returns the reason.
func (e *Snooze) Unwrap() error { return e.Err }
