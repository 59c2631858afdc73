// This file declares Job, work that is stored and will be run, and Lease, the right of one worker to run a job.

package understudy

import (
	"time"
)

// Priority is the order in which waiting jobs start. Lower values start first.
type Priority uint8

// The priorities, from the most urgent to the least urgent.
const (
	PrioritySoon   Priority = iota // for work that a person or a request waits for
	PrioritySteady                 // for work that keeps records fresh
	PriorityBulk                   // for work that adds records that the mirror does not have yet
	priorityEnd
)

// PriorityCount is the number of priorities.
const PriorityCount = int(priorityEnd)

// String returns "soon", "steady" or "bulk".
func (l Priority) String() string {
	if int(l) < PriorityCount {
		return [...]string{"soon", "steady", "bulk"}[l]
	}
	return "unknown"
}

// JobState is the state of a job.
type JobState uint8

// The states of a job. A waiting or running job is live. A job in any other state is archived.
const (
	JobWaiting JobState = iota + 1 // the job waits for its start time, its place in the queue or its next attempt
	JobRunning
	JobDone
	JobFailed    // all attempts failed, or the job may run only once and was interrupted
	JobCancelled // the job was cancelled by a person
	JobExpired   // the job was not started before its time ExpiresAt
)

// String returns the word that pages and JSON use.
func (s JobState) String() string {
	if s >= JobWaiting && s <= JobExpired {
		return [...]string{"waiting", "running", "done", "failed", "cancelled", "expired"}[s-JobWaiting]
	}
	return "unknown"
}

// Job is a piece of work as the store keeps it.
type Job struct {
	Number int64
	Kind   string // what the job does, as a verb and a noun: "sync calls", "deliver changes"
	// Key identifies the work among jobs of its Kind. While a job with the same key is live, no second one is
	// accepted. Jobs with an empty key are always accepted.
	Key      string
	Payload  []byte // JSON that describes the work; at most MaxJobPayload bytes
	Priority Priority
	// AtMostOnce jobs run at most once. An interrupted run (crash, lost lease) makes the job JobFailed and is
	// not repeated. Other jobs run at least once.
	AtMostOnce  bool
	MaxAttempts int   // the number of runs that may start; 0 means the default of the job's kind
	Weight      int64 // the expected memory use of a run in bytes
	RunAfter    time.Time
	Hurry       bool // a job that waits with the same Kind and Key runs at RunAfter, if that is earlier; it is not stored
	// ExpiresAt is the time after which no run starts. The zero time means never.
	ExpiresAt time.Time

	State         JobState
	Attempt       int    // the number of runs that were started
	Fence         int64  // the number of the current lease; it grows with every run
	Worker        string // the name of the worker that runs the job
	Error         string // the error of the last run
	Created       time.Time
	Started       time.Time // when the last run was started
	Ended         time.Time // when the job was archived; zero while it is live
	LeaseEnd      time.Time // when the current run counts as lost, unless a heartbeat arrives before
	StopRequested bool      // the run was asked to stop
	UncountedRuns int       // the number of runs that did not count as attempts

	Progress Progress
	// Checkpoint says where the next run continues. The run itself sets it.
	Checkpoint []byte
}

// MaxJobPayload is the maximum size of Payload and of Checkpoint, in bytes.
const MaxJobPayload = 64 << 10

// Progress tells people how far a run is.
type Progress struct {
	Done, Total int64 // the units of work that are done, and of all work; a Total of 0 means that the total is not known
	Note        string
	// End is the estimated end of the run. The zero time means unknown. It is never stored.
	End time.Time
}

// Claim is a request to the store for jobs that may start now.
type Claim struct {
	Worker   string    // the name of the worker, unique among all workers
	Now      time.Time // the current time by the worker's clock
	Kinds    []ClaimKind
	Limit    int      // the maximum number of jobs to return
	Priority Priority // the lowest priority to return; jobs of higher priority are included
	Weight   int64    // the maximum Weight of a job to return, in bytes
	// OnlyProcess says that no other process runs jobs, so that a lease of another worker was lost with its
	// process.
	OnlyProcess bool
	// Ends are results to store before jobs are claimed, at most 64.
	Ends []JobResult
}

// ClaimKind is a kind of job that the worker can run.
type ClaimKind struct {
	Name       string
	MaxRunning int           // the maximum number of jobs of the kind that run at once, in all processes together
	Lease      time.Duration // the length of the lease of each job of the kind
}

// Claimed is the result of a Claim.
type Claimed struct {
	Jobs []Job // the claimed jobs, which are now running, each with a new fence
	// Next is when the next job of the claimed kinds is due, expires or loses its lease. The zero time means that nothing
	// is planned. If Claim.Limit jobs were claimed, neither Next nor Blocked is set.
	Next time.Time
	// Blocked says that a job is due and was not claimed only because of MaxRunning, its priority or its
	// weight.
	Blocked bool
	// The numbers of other jobs that the claim changed. Failed and Cancelled jobs were archived because their lease ended
	// without a heartbeat. Expired jobs were archived because their time was over. Returned jobs were interrupted and wait
	// again.
	Failed, Cancelled, Expired, Returned int
	// Ended has the new state of the job of each of Claim.Ends, as EndJob returns it; 0 means that the run had lost its lease.
	Ended []JobState
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

// OutsideWorker is the Worker of a job that a program outside the server runs. Its lease lasts when the server starts again.
const OutsideWorker = "outside"

// Heartbeat tells the store that a run is still alive.
type Heartbeat struct {
	Number, Fence int64
	LeaseEnd      time.Time // the new end of the lease
	Progress      Progress
}

// HeartbeatReply is the store's answer to a heartbeat.
type HeartbeatReply struct {
	Lost          bool // the worker no longer has the lease of the job
	StopRequested bool // the run was asked to stop
}

// JobResult says how a run ended. State is the job's next state.
type JobResult struct {
	Number, Fence int64
	At            time.Time
	State         JobState // the next state of the job; JobWaiting means that it runs again, at RunAfter or later
	Error         string
	RunAfter      time.Time
	Uncounted     bool  // the run does not count as an attempt
	Weight        int64 // the measured memory use of the run in bytes; 0 keeps the former value
	Progress      Progress
}

// JobFilter selects jobs. The result begins with the newest job.
type JobFilter struct {
	Kind   string     // the kind of the jobs; "" means every kind
	States []JobState // the states of the jobs; an empty list means every state
	Number int64      // the number of the only job to return; 0 means every job
	Before int64      // only jobs with a smaller number are returned; 0 starts at the newest job
	Limit  int        // the maximum number of jobs; 0 means 100; never more than MaxJobs
}

// MaxJobs is the maximum number of jobs that one query returns.
const MaxJobs = 500

// JobCounts counts jobs by state.
type JobCounts struct{ Waiting, Running, Archived int64 }

// Snooze is the error of a run that cannot continue now. The job runs again after Wait, and the run does not
// count as an attempt. A job with AtMostOnce fails instead.
type Snooze struct {
	Wait time.Duration
	Err  error // the cause for which the run cannot continue
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
