// Job: a promise to do work later.

package understudy

import "time"

// Priority is the order in which waiting jobs start: lower ones first.
type Priority uint8

// The lanes.
const (
	Soon   Priority = iota // somebody waits for it
	Steady                 // what keeps records fresh
	Bulk                   // what fills up
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
	JobWaiting JobState = iota + 1 // for its time, its turn or its next try
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

// Job is a promise to do work later, as the store keeps it.
type Job struct {
	Number int64
	Kind   string // verb and noun: "sync calls", "deliver changes"
	// Key names the work among jobs of its Kind: while one with the same key
	// is live, another is not taken. "": any number may be.
	Key      string
	Payload  []byte // what the work is about; JSON; at most MaxJobPayload
	Priority Priority
	// Once: at most once. A run that broke off (a crash, a lost lease) is not
	// begun again, it is JobFailed. Otherwise the job runs at least once.
	Once     bool
	Attempts int   // how many runs may begin; 0 = the kind's default
	Weight   int64 // bytes of memory it is expected to take
	RunAfter time.Time
	// ExpiresAt: not begun after that; zero: never expires.
	ExpiresAt time.Time

	State    JobState
	Attempt  int    // runs begun
	Fence    int64  // the number of the lease that has it; rises with every run
	Worker   string // who has it
	Error    string // how the last run failed
	Created  time.Time
	Started  time.Time // the last run's
	Ended    time.Time // when it was archived
	LeaseEnd time.Time // when the run counts as lost unless it is heard of
	Stop     bool      // somebody asked for the run to end
	Again    int       // runs that did not count as attempts

	Progress Progress
	// Mark is where the next run goes on, kept by the run itself.
	Mark []byte
}

// MaxJobPayload bounds Payload and Mark, in bytes.
const MaxJobPayload = 64 << 10

// Progress is how far a run has come, for people.
type Progress struct {
	Done, Total int64 // in the unit of the work; Total 0 = not known
	Note        string
	// End is when the run is expected to be through; zero: not known. It is
	// reckoned, never stored.
	End time.Time
}
