// Media: the content of a record, bytes rather than rows.

package request

import (
	"io"
	"time"

	"understudy"
	"understudy/spec"
)

// MediaRequest is one request for a record's content. It does not name the caller.
type MediaRequest struct {
	Target  *spec.Target // with Media set
	Head    bool         // only what it is, not the bytes
	Range   string       // the request's Range, verbatim; "" = all of it
	IfRange string       // the request's If-Range, verbatim
	NoCache bool         // the request said no-cache: upstream is asked
	// MaxStale is the oldest content the caller accepts without upstream being
	// asked; nil: the usual fresh time.
	MaxStale     *time.Duration
	OnlyIfCached bool // what is held, else ErrNotHeld; upstream is not asked
	// IfNoneMatch goes upstream verbatim. The answer is 304 when it holds.
	IfNoneMatch string
	Reason      Reason // of a request upstream
	Flow        uint64 // as in Request
}

// Content describes a content that is held whole.
type Content struct {
	Key  understudy.Key
	Kind string
	ID   string
	// Within are the other ids in its path: a message's, an account's. The content goes
	// when one of them goes.
	Within      []string
	ContentType string
	Size        int64
	Sum         [32]byte  // SHA-256 of the bytes
	ETag        string    // upstream's, verbatim; "" = none
	Modified    time.Time // as upstream said; zero = not
	At          time.Time // when upstream last confirmed it
}

// MediaResponse is the content of a record for one reader, from a file or straight from
// upstream. The reader must Close it.
type MediaResponse struct {
	io.ReadCloser // the bytes of this answer; empty for HEAD

	// File, when not nil, is the whole content, which is held. The frontend itself handles
	// ranges and conditions. Without File, Status and ContentRange are upstream's.
	File io.ReadSeeker

	Status       int    // 200, 206, 304, 404, 410, 416
	ContentType  string // as upstream said
	Size         int64  // of the bytes of this answer; -1 = not known
	ContentRange string
	ETag         string // quoted; of the content where it is held, else upstream's
	Modified     time.Time

	Outcome  Outcome       // Warm from a file, Stale from a file while upstream is down, Cold from upstream
	Age      time.Duration // of what a file holds
	TTL      time.Duration // fresh time left of it; negative when past
	Stored   bool          // Cold, and kept: the next reader gets it from a file
	Joined   bool          // by a fetch of another reader
	Detail   string        // "stale: upstream 503"; may be empty
	Upstream time.Duration // until upstream's first byte
}
