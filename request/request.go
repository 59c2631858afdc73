// This file declares the requests that frontends send to the mirror, and its responses.

// Package request defines the messages between frontends, mirror, upstream and store: requests, responses,
// fetches, fills, writes and contents.
package request

import (
	"time"

	"understudy"
	"understudy/spec"
)

// Request is one request to the mirror. It does not name the caller. It may limit the age of the answer in several
// ways. Then the strictest limit applies.
type Request struct {
	Target *spec.Target
	// The maximum age of an answer that the grant accepts; nil means the mirror's ages, 0 means as fresh as the upstream
	AgeLimit   *time.Duration
	NoCache    bool // the request said no-cache, so it joins or starts a fetch
	SkipStored bool // whether stored answers are ignored
	JoinOnly   bool // whether a request with NoCache only joins a running fetch; if there is no such fetch, NoCache is ignored

	// The Cache-Control directives of the request (RFC 9111, 5.2.1). nil means that the directive is absent.
	MaxAge   *time.Duration // directive max-age: the maximum age of an answer
	MinFresh *time.Duration // directive min-fresh: the answer must stay fresh for this time
	MaxStale *time.Duration // directive max-stale: the accepted staleness, in place of the mirror's limit; negative means any
	// Directive only-if-cached: a stored answer or ErrNoStoredAnswer, without a request to the upstream, not even in the
	// background
	OnlyIfCached bool

	// NotFinal makes the mirror treat every record as a record that may still change. It is set if the reader does not see
	// what makes a record final, because the answer's freshness would reveal it.
	NotFinal bool
	// CanSee, if not nil, reports whether the reader sees a field, by its dotted name. A list in which only
	// hidden fields changed stays fresh, because a new upstream request would reveal the change.
	CanSee func(field string) bool

	// AsOf, if not zero, asks for the state at that time. The answer is made from history without an upstream request.
	AsOf time.Time
	// FillGaps replaces a version whose body is not stored by the following version, as if that had begun
	// earlier. The reader may not know of a withdrawn text, and a gap would reveal it.
	FillGaps bool
	// Local, if not nil, asks for an answer composed from records. The error is ErrNotMirrored if coverage is not known.
	Local *LocalQuery

	// ReadyResult is what the mirror's Ready has just found in memory for the target, so that it is not looked
	// up again. It may be nil.
	ReadyResult any
	// ResponseBuffer is memory for the response to a hit, used only by this caller. nil means that new memory
	// is allocated.
	ResponseBuffer *Response

	// Flow is an opaque tag. Requests of different flows take turns when they wait for the upstream, so that
	// many requests of one flow do not starve another. It does not affect what is stored.
	Flow uint64
}

// Outcome says how an answer was obtained.
type Outcome uint8

// The outcomes.
const (
	Warm     Outcome = iota // a fresh answer from memory or from the store
	Stale                   // a stale answer from memory or the store
	Cold                    // an answer that was fetched from the upstream
	Composed                // an answer that was composed from records
)

// String returns the word that logs, stats and pages use.
func (h Outcome) String() string {
	if int(h) < len(outcomeNames) {
		return outcomeNames[h]
	}
	return "unknown"
}

var outcomeNames = [...]string{"warm", "stale", "cold", "composed"}

// Response is a page and how it was obtained. All readers of one flight share it. It never changes, unless it
// is in a caller's own memory (Request.ResponseBuffer).
type Response struct {
	Page    *understudy.Page
	Gzip    []byte // the body of Page compressed with gzip, if the mirror has it ready; otherwise nil
	Outcome Outcome
	Age     time.Duration
	// Newest is the age of the newest page on which a composed list rests, while Age is that of the oldest
	// walk. 0 means none.
	Newest time.Duration
	TTL    time.Duration // the remaining time for which the answer is fresh; negative if it is stale
	// Why the upstream was asked, in the words of Cache-Status (RFC 9211): "uri-miss", "stale", "request"; "" for a hit
	ForwardReason string
	Stored        bool          // the answer is in the store
	Joined        bool          // the request shared a fetch that another reader had started
	Detail        string        // details of the outcome, such as "stale: upstream 503" or "not stored: disk full"; may be empty
	UpstreamTime  time.Duration // the time that the upstream took to answer; 0 for a hit
	StoreTime     time.Duration // the time that the store took to read the answer; 0 if it was in memory
}

// CurrentAge returns how old the data are (RFC 9111, 4.2.3): the time since the upstream sent them, plus their
// age in the upstream's own caches. It is never negative.
func (a *Response) CurrentAge() time.Duration {
	age := max(a.Age, 0)
	if a.Page != nil {
		age += a.Page.InitialAge
	}
	return age
}
