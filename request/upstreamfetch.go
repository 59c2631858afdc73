// This file declares Fetch, one request to the upstream, and the reasons for such a request.

package request

import (
	"context"
	"net/http"
	"time"

	"understudy"
	"understudy/spec"
)

// Reason says why a fetch is made. A source's request budget is divided by reason.
type Reason uint8

// The reasons for a fetch, from the highest to the lowest priority.
const (
	ReasonWaiting  Reason = iota // a reader waits for the answer; such a fetch may use all of the budget
	ReasonRefresh                // a stale answer is refreshed in the background
	ReasonPoll                   // a page is polled to keep it fresh
	ReasonSync                   // a crawl reads the pages of a list
	ReasonCheck                  // a sample is compared with records; uses at most 1 % of the budget
	ReasonPrefetch               // a page that a reader will probably request next is fetched early; the first to wait if the budget is short
	reasonEnd
)

// ReasonCount is the number of reasons. Counters are arrays of this length.
const ReasonCount = int(reasonEnd)

// String returns the name that /-/stats uses.
func (r Reason) String() string {
	return [...]string{"waiting", "refresh", "poll", "sync", "check", "prefetch"}[r]
}

// Fetch is one request to the upstream. It does not name the caller.
type Fetch struct {
	Target     *spec.Target
	Reason     Reason
	Generation int64 // the generation of the kind, which is copied into the page

	// Promote, when closed, changes the reason to ReasonWaiting because a reader joined the fetch. It may be nil.
	Promote <-chan struct{}
	// Stored is the stored page of the target, with an ETag, or nil. If the upstream says that the page has not changed,
	// the fetch returns Stored as confirmed now.
	Stored *understudy.Page
	// CanWaitForProbe reports, while the source is down, whether the fetch waits for the next probe instead of
	// failing at once, because its reader has no other answer. The probe must be due within RetryWindow and the
	// context. With RetryWindow 0, only the context limits the wait. It is called only while the source is
	// down, from the fetching goroutine. nil means that it does not wait.
	CanWaitForProbe func() bool
	// RetryWindow is how long after the start of the fetch another attempt may begin; 0 means a single attempt.
	RetryWindow time.Duration
	// Flow is an opaque tag of the reader. Waiting fetches of different flows take turns, so that many of one
	// flow do not delay another. They are also counted by flow.
	Flow uint64
	// MaxQueueWait is how long the fetch may wait for budget while a reader waits; 0 means as long as the
	// context. If its turn would come later, or after Deadline if that is set, it fails at once with FailBusy.
	MaxQueueWait time.Duration
	Deadline     time.Time
	// Reserve receives the expected length of an answer's body before the body is read: from the upstream's
	// header, or from the last similar answer. It is called again if the body is longer. It waits for free
	// memory until ctx ends, while the body stays in the socket. An error ends the fetch. It may be nil.
	Reserve func(ctx context.Context, bytes int64) error
	// BodyInUse ends when the caller no longer needs the body. Without Reserve, the memory for the bodies of such fetches
	// is limited, and the body counts until BodyInUse ends. nil means until the body is read.
	BodyInUse context.Context
	// OnRetry is called after each failed attempt that is followed by another, and for each refusal of the
	// source that the fetch waits out. It runs in the fetching goroutine. It may be nil.
	OnRetry func(*understudy.UpstreamError)
}

// Fill is a page to fetch and save without a reader.
type Fill struct {
	Target *spec.Target
	Reason Reason // the reason for the fetch: ReasonSync, ReasonPoll or ReasonCheck
	// RecordsOnly stores the records but not the page, because a crawl reads pages of another size than readers.
	RecordsOnly bool
	// ForOpenRecords means that the page is fetched because some records are not final. For a caller that must not know
	// this, the page does not count as fresh.
	ForOpenRecords bool
	Reserve        func(ctx context.Context, bytes int64) error // reserves memory for the body, as Fetch.Reserve does
}

// Write is a request that changes something upstream. It is sent once. It is sent again only if its answer was
// lost and it has an Idempotency-Key or is ReadOnly.
type Write struct {
	Target      *spec.Target
	Method      string
	Body        []byte
	ContentType string
	Flow        uint64      // the tag of the caller, as in Fetch
	Header      http.Header // additional header fields that the spec forwards (spec.Headers.Write); nil means none
	ReadOnly    bool        // the request changes nothing upstream, for example because it is a GraphQL query
}
