// Job: work that is stored and will be run.

package understudy

import "time"

// Priority is the order in which waiting jobs start. Lower values start first.
type Priority uint8

// The priorities.
const (
	PrioritySoon   Priority = iota // a person or a request waits for the work
	PrioritySteady                 // work that keeps records fresh
	PriorityBulk                   // work that fills the mirror
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

// The states. A waiting or running job is live. A job in any other state is archived.
const (
	JobWaiting JobState = iota + 1 // waits for its start time, its place in the queue or its next attempt
	JobRunning
	JobDone
	JobFailed    // all attempts failed, or the job may run only once and was interrupted
	JobCancelled // cancelled by a person
	JobExpired   // ExpiresAt passed before the job could start
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
	Kind   string // verb and noun: "sync calls", "deliver changes"
	// Key identifies the work among jobs of its Kind. While a job with the same key is live, no second one is
	// accepted. Jobs with an empty key are always accepted.
	Key      string
	Payload  []byte // JSON that describes the work; at most MaxJobPayload bytes
	Priority Priority
	// AtMostOnce jobs run at most once. An interrupted run (crash, lost lease) makes the job JobFailed and is
	// not repeated. Other jobs run at least once.
	AtMostOnce  bool
	MaxAttempts int   // how many runs may start; 0 means the kind's default
	Weight      int64 // expected memory use in bytes
	RunAfter    time.Time
	// ExpiresAt is the time after which no run starts. The zero time means never.
	ExpiresAt time.Time

	State         JobState
	Attempt       int    // number of runs started
	Fence         int64  // number of the current lease; grows with every run
	Worker        string // name of the worker that runs the job
	Error         string // error of the last run
	Created       time.Time
	Started       time.Time // when the last run started
	Ended         time.Time // when the job was archived
	LeaseEnd      time.Time // when the run counts as lost unless a heartbeat arrives
	StopRequested bool      // the run was asked to end
	UncountedRuns int       // number of runs that did not count as attempts

	Progress Progress
	// Checkpoint says where the next run continues. The run itself sets it.
	Checkpoint []byte
}

// MaxJobPayload is the largest size of Payload and of Checkpoint, in bytes.
const MaxJobPayload = 64 << 10

// Progress tells people how far a run is.
type Progress struct {
	Done, Total int64 // units of work; a Total of 0 means that the total is not known
	Note        string
	// End is the estimated end of the run. The zero time means unknown. It is never stored.
	End time.Time
}
