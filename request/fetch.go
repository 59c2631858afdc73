// Fetch: one errand to upstream, and why it is run.

package request

import (
	"context"
	"time"

	"understudy"
	"understudy/spec"
)

// Reason says who wants a fetch; the budget of a source is shared out by it.
type Reason uint8

// The reasons, in falling order of their claim on the budget.
const (
	Waiting  Reason = iota // a reader waits; may use all of the budget
	Refresh                // an answer past fresh, refilled behind its reader
	Poll                   // a page kept warm
	Sync                   // a promised walk
	Check                  // a fidelity sample; at most 1 %
	Prefetch               // a hope; pauses first
	reasons
)

// Reasons is how many reasons there are; counters are arrays of this length.
const Reasons = int(reasons)

// String is the name used in /-/stats.
func (r Reason) String() string {
	return [...]string{"waiting", "refresh", "poll", "sync", "check", "prefetch"}[r]
}

// Fetch is one errand to upstream. Upstream's room reads it; nothing in it
// says who asked.
type Fetch struct {
	Target     *spec.Target
	Reason     Reason
	Generation int64 // copied into the page

	// Promote, when closed, turns an errand nobody waited for into one
	// somebody waits for (a reader joined it). May be nil.
	Promote <-chan struct{}
	// Patient: nothing is held, so while the source is down wait for the next
	// probe, if it is due within Retry and the context, instead of failing at
	// once. With Retry 0 the context alone bounds it.
	Patient bool
	// Retry is how long, from the start, new tries may begin; 0 = one try.
	Retry time.Duration
	// Turn is an opaque tag: errands with different ones take turns in the
	// waiting lane, so that many of one do not hold up another.
	Flow uint64
	// Queue is how long the errand may wait for budget while a reader waits
	// for it; 0 = as long as the context. One whose place would come later
	// (or later than By, when that is set) fails at once, as FailBusy.
	Queue time.Duration
	By    time.Time
	// Weigh is told the length of an answer's body before it is read, when
	// upstream says it or the last one like it was as long, and as it grows
	// when it outgrows that; it waits for room while its ctx lasts, and the body
	// stays in the socket. An error ends the fetch with it. May be nil.
	Reserve func(ctx context.Context, bytes int64) error
	// Tried is told each failed try that will be followed by another, at
	// once, from the fetching goroutine. May be nil.
	Tried func(*understudy.UpstreamError)
}

// Fill is a page to be fetched and saved though no reader asks for it.
type Fill struct {
	Target *spec.Target
	Reason Reason // Sync, Poll or Check
	// RecordsOnly keeps the records and not the page itself: a walk by pages
	// of another size than readers ask for.
	RecordsOnly bool
	Reserve     func(ctx context.Context, bytes int64) error // see Fetch
}

// Write is a request that changes something upstream, passed on once and never
// retried.
type Write struct {
	Target      *spec.Target
	Method      string
	Body        []byte
	ContentType string
}
