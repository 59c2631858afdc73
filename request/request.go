// Request and response: the questions to the mirror, and its answers.

// Package request defines the messages between frontends, mirror, upstream and store: requests, responses,
// fetches, fills, writes and contents.
package request

import (
	"time"

	"understudy"
	"understudy/spec"
)

// Request is one request to the mirror. It does not name the caller. If several limits of the answer's age are
// set, the strictest applies.
type Request struct {
	Target     *spec.Target
	AgeLimit   *time.Duration // oldest answer that the grant accepts; nil means the mirror's ages, 0 means as fresh as the upstream
	NoCache    bool           // the request said no-cache: join or start a fetch
	SkipStored bool           // whether stored answers are ignored
	JoinOnly   bool           // whether a request with NoCache joins a running fetch; without such a fetch NoCache is ignored

	// The directives of the request (RFC 9111, 5.2.1). nil means not given.
	MaxAge       *time.Duration // max-age: oldest accepted answer
	MinFresh     *time.Duration // min-fresh: the answer must stay fresh for this time
	MaxStale     *time.Duration // max-stale: accepted staleness, in place of the mirror's limit; negative means any
	OnlyIfCached bool           // only-if-cached: a stored answer or ErrNoStoredAnswer; no upstream request, not even in the background

	// NotFinal treats every record as one that may still change. The reader does not see what makes it final,
	// and must not learn it from the answer's freshness.
	NotFinal bool
	// CanSee, if not nil, reports whether the reader sees a field, by its dotted name. A list in which only
	// hidden fields changed stays fresh, because a new upstream request would reveal the change.
	CanSee func(field string) bool

	// AsOf, if not zero, asks for the state at that time. The answer is made from history without an upstream
	// request.
	AsOf time.Time
	// FillGaps replaces a version whose body is not stored by the following version, as if that had begun
	// earlier. The reader may not know of a withdrawn text, and a gap would reveal it.
	FillGaps bool
	// Local, if not nil, asks for an answer composed from records. The error is ErrNotMirrored if coverage is
	// not known.
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
	Warm     Outcome = iota // fresh from memory or store
	Stale                   // a stale answer from memory or the store
	Cold                    // fetched from the upstream
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
	Gzip    []byte // Page.Body compressed with gzip if the mirror has it ready; otherwise nil
	Outcome Outcome
	Age     time.Duration
	// Newest is the age of the newest page on which a composed list rests, while Age is that of the oldest
	// walk. 0 means none.
	Newest        time.Duration
	TTL           time.Duration // remaining fresh time; negative if stale
	ForwardReason string        // why the upstream was asked, as in Cache-Status (RFC 9211): "uri-miss", "stale", "request"; "" for a hit
	Stored        bool          // the answer is in the store
	Joined        bool          // it shared a fetch that another reader had started
	Detail        string        // "stale: upstream 503", "not stored: disk full"; may be empty
	UpstreamTime  time.Duration // time that the upstream took; 0 for a hit
	StoreTime     time.Duration // time that the store took; 0 from memory
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
