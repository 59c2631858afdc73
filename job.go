// Job: promised work.

package understudy

import "time"

// Priority is the order in which waiting jobs start: lower ones first.
type Priority uint8

// The priorities.
const (
	Soon   Priority = iota // a person or a reader waits for it
	Steady                 // work that keeps records fresh
	Bulk                   // work that fills the mirror
	lanes
)

// Priorities is how many there are.
const Priorities = int(lanes)

// String is "soon", "steady" or "bulk".
func (l Priority) String() string {
	if int(l) < Priorities {
		return [...]string{"soon", "steady", "bulk"}[l]
	}
	return "unknown"
}

// JobState says where a job stands.
type JobState uint8

// The states. A job is live in the first two and archived in the others.
const (
	JobWaiting JobState = iota + 1 // for its time, its place in the queue or its next try
	JobRunning
	JobDone
	JobFailed    // its tries are used up, or it is at most once and broke off
	JobCancelled // by a person
	JobExpired   // its ExpiresAt came before it could begin
)

// String is the word in pages and JSON.
func (s JobState) String() string {
	if s >= JobWaiting && s <= JobExpired {
		return [...]string{"waiting", "running", "done", "failed", "cancelled", "expired"}[s-JobWaiting]
	}
	return "unknown"
}

// Job is promised work, as the store keeps it.
type Job struct {
	Number int64
	Kind   string // verb and noun: "sync calls", "deliver changes"
	// Key names the work among jobs of its Kind: while a job with the same key is live, no
	// other is taken. With "" any number of jobs is.
	Key      string
	Payload  []byte // what the work is about; JSON; at most MaxJobPayload
	Priority Priority
	// Once: the job runs at most once. A run that broke off (a crash, a lost lease) is not
	// begun again: the job is JobFailed. Without Once it runs at least once.
	Once     bool
	Attempts int   // how many runs may begin; 0 = the kind's default
	Weight   int64 // bytes of memory it is expected to take
	RunAfter time.Time
	// ExpiresAt is the time after which no run begins; zero: never.
	ExpiresAt time.Time

	State    JobState
	Attempt  int    // runs begun
	Fence    int64  // number of its lease; rises with every run
	Worker   string // the worker that runs it
	Error    string // how the last run failed
	Created  time.Time
	Started  time.Time // the last run's
	Ended    time.Time // when it was archived
	LeaseEnd time.Time // when the run counts as lost without a heartbeat
	Stop     bool      // the run was asked to end
	Again    int       // runs that did not count as attempts

	Progress Progress
	// Mark is where the next run continues. The run itself keeps it.
	Mark []byte
}

// MaxJobPayload bounds Payload and Mark, in bytes.
const MaxJobPayload = 64 << 10

// Progress is how far a run has come, for people.
type Progress struct {
	Done, Total int64 // in the unit of the work; Total 0 = not known
	Note        string
	// End is when the run is expected to end; zero: not known. It is estimated and never
	// stored.
	End time.Time
}
