// Lease: a job in the hands of one worker, and what passes between the worker and the
// store.

package understudy

import "time"

// Claim asks for jobs that may begin now.
type Claim struct {
	Worker   string    // the claimant; unique among workers
	Now      time.Time // of the worker's clock
	Kinds    []ClaimKind
	Limit    int      // most jobs
	Priority Priority // and the priorities before it
	Weight   int64    // of the heaviest job wanted, in bytes
	// Alone: no other process runs jobs, so a lease of another worker was lost with its
	// process.
	Alone bool
}

// ClaimKind is a kind that the worker can run.
type ClaimKind struct {
	Name  string
	Most  int           // how many may run at once, in all processes together
	Lease time.Duration // of each
}

// Claimed is what a Claim brought.
type Claimed struct {
	Jobs []Job // running now, each under a fence of its own
	// Next is when the next job of those kinds is due, expires, or loses its
	// lease; zero: nothing is planned.
	Next time.Time
	// Held: a job is due and not claimed only because of its kind's Most, its priority or
	// its weight.
	Held bool
	// Jobs that the claim found beside its own: archived because their lease ended without
	// a heartbeat (Failed, Cancelled) or their time was over (Expired), or waiting again
	// (Returned).
	Failed, Cancelled, Expired, Returned int
}

// Count notes the state of a job that the claim found beside its own.
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

// Heartbeat is a sign of life of a run.
type Heartbeat struct {
	Number, Fence int64
	LeaseEnd      time.Time // the new one
	Progress      Progress
}

// HeartbeatReply answers a heartbeat.
type HeartbeatReply struct {
	Lost bool // the worker no longer has the lease
	Stop bool // the run was asked to end
}

// JobResult is how a run ended: State is what the job becomes.
type JobResult struct {
	Number, Fence int64
	At            time.Time
	State         JobState // JobWaiting: it is to run again, from RunAfter on
	Error         string
	RunAfter      time.Time
	Uncounted     bool  // the run does not count as an attempt
	Weight        int64 // what the job turned out to weigh; 0: as before
	Progress      Progress
}

// JobFilter chooses jobs, the newest first.
type JobFilter struct {
	Kind   string     // "": all
	States []JobState // none: all
	Number int64      // just this one; 0: all
	Before int64      // numbers below it; 0: from the newest
	Limit  int        // at most; 0: 100; never more than MaxJobs
}

// MaxJobs is the most jobs that one query returns.
const MaxJobs = 500

// JobCounts are jobs by where they stand.
type JobCounts struct{ Waiting, Running, Archived int64 }

// Snooze is the error of a run that cannot go on now: the job runs again after Wait. It
// does not count as an attempt. A job that runs at most once fails.
type Snooze struct {
	Wait time.Duration
	Err  error // why
}

// Error is the reason's text.
func (e *Snooze) Error() string {
	if e.Err == nil {
		return "later"
	}
	return e.Err.Error()
}

// Unwrap is the reason.
func (e *Snooze) Unwrap() error { return e.Err }
