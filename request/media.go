// Media: the content of a record, which is bytes instead of rows.

package request

import (
	"io"
	"time"

	"understudy"
	"understudy/spec"
)

// MediaRequest is a request for a record's content. It does not name the caller.
type MediaRequest struct {
	Target  *spec.Target // target with Media set
	Head    bool         // return only the description, not the bytes
	Range   string       // the request's Range header, unchanged; "" means all
	IfRange string       // the request's If-Range header, unchanged
	NoCache bool         // the request said no-cache: ask the upstream
	// MaxStale is the oldest content that the caller accepts without a request to the upstream. nil means the
	// usual fresh time.
	MaxStale     *time.Duration
	OnlyIfCached bool // answer from the store or with ErrNoStoredAnswer; the upstream is not asked
	// IfNoneMatch goes upstream unchanged. The answer is 304 if it matches.
	IfNoneMatch string
	Reason      Reason // reason of an upstream request
	Flow        uint64 // the same as Request.Flow
}

// Content describes a completely stored content.
type Content struct {
	Key  understudy.Key
	Kind string
	ID   string
	// ParentIDs are the other ids in its path, such as a message's or an account's. The content is deleted with
	// any of them.
	ParentIDs   []string
	ContentType string
	Size        int64
	Sum         [32]byte  // SHA-256 of the bytes
	ETag        string    // the upstream's ETag, unchanged; "" if none
	Modified    time.Time // time that the upstream stated; zero if none
	At          time.Time // when the upstream last confirmed it
}

// MediaResponse is the content of a record for one reader, from a file or directly from the upstream. The
// reader must close it.
type MediaResponse struct {
	io.ReadCloser // bytes of this answer; empty for HEAD

	// File, if not nil, is the complete stored content. The frontend then handles ranges and conditions itself.
	// Without File, Status and ContentRange are the upstream's.
	File io.ReadSeeker

	Status       int    // 200, 206, 304, 404, 410 or 416
	ContentType  string // the value of Content-Type that upstream sent
	Size         int64  // length of this answer in bytes; -1 if not known
	ContentRange string
	ETag         string // quoted; of the stored content, or else the upstream's
	Modified     time.Time

	Outcome  Outcome       // Warm from a file, Stale from a file while the upstream is down, Cold from the upstream
	Age      time.Duration // age of the file's content
	TTL      time.Duration // remaining fresh time of the file's content; negative if stale
	Stored   bool          // Cold and now stored: the next reader gets it from a file
	Joined   bool          // shared the fetch of another reader
	Detail   string        // "stale: upstream 503"; may be empty
	Upstream time.Duration // time until the upstream's first byte
}
