// Request and response: what the mirror is asked, and what it answers.

// Package request has what frontends, mirror, upstream and store ask each other, and
// what comes back: requests, responses, fetches, fills, writes and contents.
package request

import (
	"time"

	"understudy"
	"understudy/spec"
)

// Request is one request to the mirror. It does not name the caller. Of all its limits
// on the answer's age the narrowest counts.
type Request struct {
	Target   *spec.Target
	AgeLimit *time.Duration // how old an answer the grant accepts; nil: the mirror's ages; 0: as fresh as upstream
	NoCache  bool           // the request said no-cache: join or start a fetch
	SkipHeld bool           // what is held is not looked at, and is no answer
	JoinOnly bool           // with NoCache: join a fetch; without one under way NoCache does not count

	// The directives of the request (RFC 9111, 5.2.1); nil: not given.
	MaxAge       *time.Duration // max-age: no older than this
	MinFresh     *time.Duration // min-fresh: fresh for this much longer
	MaxStale     *time.Duration // max-stale: past fresh by no more than this, in place of the mirror's own limit; negative: by any time
	OnlyIfCached bool           // only-if-cached: what is held, else ErrNotHeld; upstream is not asked, not even behind the answer

	// NotFinal treats each record as one that may still change: the reader does not see
	// what makes it final, and must not learn it from how long the answer is fresh.
	NotFinal bool
	// Shown, when it is not nil, reports whether the reader sees a field, by its dotted
	// name. A list in which only hidden fields changed stays fresh: a new request upstream
	// would tell of the change.
	Shown func(field string) bool

	// AsOf, when it is not zero, asks for the state at that time. The answer is made from
	// history, and upstream is not asked.
	AsOf time.Time
	// Folded answers a version that is not kept with the one after it, as if that had begun
	// earlier. What was taken back may be hidden from the reader, and a gap would tell of
	// it.
	Folded bool
	// Local, when it is not nil, asks for an answer composed from records. The error is
	// ErrNotMirrored when coverage is not known.
	Local *LocalQuery

	// Found is what the mirror's Ready found of the target in memory just now, which is not looked up again; nil: it is.
	Found any
	// Into is memory for the response to a hit, which only this caller gets; nil: it is new.
	Into *Response

	// Flow is an opaque tag. Requests of different flows take turns when they wait for
	// upstream, so that a flood of one does not starve another. It affects nothing that is
	// kept.
	Flow uint64
}

// Outcome says how an answer came.
type Outcome uint8

// The outcomes.
const (
	Warm     Outcome = iota // fresh from memory or store
	Stale                   // past fresh
	Cold                    // fetched
	Composed                // made from records
)

// String is the word in logs, stats and pages.
func (h Outcome) String() string {
	if int(h) < len(hows) {
		return hows[h]
	}
	return "unknown"
}

var hows = [...]string{"warm", "stale", "cold", "composed"}

// Response is a page and how it came. All readers of one flight share it. It never changes,
// but for what is in a caller's own memory (Request.Into).
type Response struct {
	Page    *understudy.Page
	Gzip    []byte // Page.Body compressed, when the mirror has it ready; else nil
	Outcome Outcome
	Age     time.Duration
	// Newest is, of a composed list, the age of the newest page it rests on, while Age is
	// that of the oldest walk; 0: none.
	Newest   time.Duration
	TTL      time.Duration // how long it stays fresh; negative: past fresh by that much
	Fwd      string        // why upstream was asked, as in Cache-Status (RFC 9211): "uri-miss", "stale", "request"; "" for a hit
	Stored   bool          // the store has it
	Joined   bool          // it shared a fetch another reader began
	Detail   string        // "stale: upstream 503", "not stored: disk full"; may be empty
	Upstream time.Duration // upstream's own time, 0 for a hit
	Store    time.Duration // the store's, 0 from memory
}

// CurrentAge is how old the data are (RFC 9111, 4.2.3): the time since upstream
// gave them, and what they had waited in upstream's own caches. Never negative.
func (a *Response) CurrentAge() time.Duration {
	age := max(a.Age, 0)
	if a.Page != nil {
		age += a.Page.InitialAge
	}
	return age
}
