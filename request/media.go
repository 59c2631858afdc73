// This file declares requests for the content of a record, such as audio or an image, and their responses.

package request

import (
	"io"
	"time"

	"understudy"
	"understudy/spec"
)

// MediaRequest is a request for a record's content. It does not name the caller.
type MediaRequest struct {
	Target  *spec.Target // the target of the request, with Media set
	Head    bool         // return only the description of the content, not its bytes
	Range   string       // the request's Range header, unchanged; "" means all
	IfRange string       // the request's If-Range header, unchanged
	NoCache bool         // the request's header said no-cache, so the upstream is asked
	// MaxStale is the maximum age of a content that the caller accepts without a request to the upstream. nil means the
	// usual fresh time.
	MaxStale     *time.Duration
	OnlyIfCached bool // answer from the store or with ErrNoStoredAnswer, without a request to the upstream
	// IfNoneMatch is the request's If-None-Match header, which is sent to the upstream unchanged. The answer is 304 if it
	// matches.
	IfNoneMatch string
	Reason      Reason // the reason for a request to the upstream
	Flow        uint64 // the tag of the sender, as in Request.Flow
}

// Content describes a completely stored content.
type Content struct {
	Key  understudy.Key
	Kind string
	ID   string
	// ParentIDs are the other ids in the path of the content, such as a message's or an account's. If one of these records
	// is deleted, so is the content.
	ParentIDs   []string
	ContentType string
	Size        int64
	Sum         [32]byte  // the SHA-256 of the bytes of the content
	ETag        string    // the upstream's ETag, unchanged, or "" if there is none
	Modified    time.Time // the time of the last modification, as the upstream stated it; zero if it stated none
	At          time.Time // when the upstream last confirmed the content
}

// MediaResponse is the content of a record for one reader, from a file or directly from the upstream. The
// reader must close it.
type MediaResponse struct {
	io.ReadCloser // the bytes of this answer; empty for a HEAD request

	// File, if not nil, is the complete stored content. The frontend then handles ranges and conditions itself.
	// Without File, Status and ContentRange are the upstream's.
	File io.ReadSeeker

	Status       int    // the HTTP status: 200, 206, 304, 404, 410 or 416
	ContentType  string // the value of Content-Type that the upstream sent
	Size         int64  // the length of this answer in bytes, or -1 if it is not known
	ContentRange string
	ETag         string // the ETag in quotes, of the stored content or else the upstream's
	Modified     time.Time

	Outcome  Outcome       // Warm if read from a file, Stale if read from a file while the upstream is down, Cold if read from the upstream
	Age      time.Duration // the age of the content in the file
	TTL      time.Duration // the remaining time for which the content in the file is fresh; negative if it is stale
	Stored   bool          // Outcome is Cold and the content is now stored, so that the next reader gets it from a file
	Joined   bool          // this request shared the upstream request of another reader
	Detail   string        // details of the outcome, such as "stale: upstream 503"; may be empty
	Upstream time.Duration // the time until the first byte from the upstream
}
