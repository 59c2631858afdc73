// Fetch: one request to upstream, and the reason for it.

package request

import (
	"context"
	"net/http"
	"time"

	"understudy"
	"understudy/spec"
)

// Reason says why a fetch is made. The budget of a source is shared out by it.
type Reason uint8

// The reasons, in falling order of their claim on the budget.
const (
	Waiting  Reason = iota // a reader waits; may use all of the budget
	Refresh                // an answer past fresh, refreshed in the background
	Poll                   // a page kept warm
	Sync                   // a crawl
	Check                  // a fidelity sample; at most 1 %
	Prefetch               // a prefetch candidate; pauses first
	reasons
)

// Reasons is how many reasons there are; counters are arrays of this length.
const Reasons = int(reasons)

// String is the name used in /-/stats.
func (r Reason) String() string {
	return [...]string{"waiting", "refresh", "poll", "sync", "check", "prefetch"}[r]
}

// Fetch is one request to upstream. It does not name the caller.
type Fetch struct {
	Target     *spec.Target
	Reason     Reason
	Generation int64 // copied into the page

	// Promote, when closed, makes the reason Waiting: a reader joined the fetch. May be
	// nil.
	Promote <-chan struct{}
	// Held is the page that is held of the target, with an ETag: when upstream says that it
	// has not changed, the fetch returns it as confirmed. nil: none.
	Held *understudy.Page
	// Patient reports whether the fetch, while the source is down, waits for the next probe
	// that is due within Retry and the context, instead of failing at once: its reader has
	// no other answer. With Retry 0 the context alone bounds the wait. It is called only
	// while the source is down, from the fetching goroutine. nil: it does not wait.
	Patient func() bool
	// Retry is how long after the start another try may begin; 0 = one try.
	Retry time.Duration
	// Flow is an opaque tag of the reader. Waiting fetches of different flows take turns, so
	// that many of one flow do not delay another, and are counted by it.
	Flow uint64
	// Queue is how long the fetch may wait for budget while a reader waits for it; 0 = as
	// long as the context. A fetch whose turn would come later (or later than By, when that
	// is set) fails at once with FailBusy.
	Queue time.Duration
	By    time.Time
	// Reserve gets the length of an answer's body before the body is read: as upstream says
	// it, or as the last answer like it had. It is called again when the body grows beyond
	// that. It waits until there is memory, as long as ctx lasts; the body stays in the
	// socket. An error ends the fetch. May be nil.
	Reserve func(ctx context.Context, bytes int64) error
	// Keeps ends when the caller has no more use for the body: without Reserve the memory for
	// bodies under way is bounded, and this one counts until then. nil: until it is read.
	Keeps context.Context
	// Tried is called at once with each failed try that is followed by another, and with each
	// refusal of the source's that the fetch waits out, from the fetching goroutine. May be nil.
	Tried func(*understudy.UpstreamError)
}

// Fill is a page to be fetched and saved without a reader.
type Fill struct {
	Target *spec.Target
	Reason Reason // Sync, Poll or Check
	// RecordsOnly keeps the records and not the page: a crawl reads pages of another size
	// than readers.
	RecordsOnly bool
	// Look says that the page is fetched since records are not final: to a caller to whom that is hidden it makes none fresh.
	Look    bool
	Reserve func(ctx context.Context, bytes int64) error // see Fetch
}

// Write is a request that changes something upstream. It is passed on once, and once more
// when its answer was lost and it has an Idempotency-Key or Reads.
type Write struct {
	Target      *spec.Target
	Method      string
	Body        []byte
	ContentType string
	Flow        uint64      // of its caller, as in Fetch
	Header      http.Header // beside that, what the spec passes on (spec.Headers.Write); nil: nothing
	Reads       bool        // it changes nothing, whatever becomes of it: a GraphQL query
}
