// Media: the content of a record, bytes rather than rows.

package understudy

import (
	"io"
	"time"
)

// MediaAsk is one question for a record's content. It does not say who asks.
type MediaAsk struct {
	Target  *Target // with Media set
	Head    bool    // only what it is, not the bytes
	Range   string  // the request's Range, verbatim; "" = all of it
	IfRange string  // the request's If-Range, verbatim
	NoCache bool    // the request said no-cache: upstream is asked
}

// Medium is the content of a record on its way to one reader, from a file of
// ours or straight from upstream. The reader must Close it.
type Medium struct {
	io.ReadCloser // the bytes of this answer; empty for HEAD

	// File, when not nil, is the whole content, held by us: the face itself
	// does ranges and conditions. Else Status and ContentRange are upstream's.
	File io.ReadSeeker

	Status       int    // 200, 206, 304, 404, 410, 416
	ContentType  string // as upstream said
	Size         int64  // of the bytes of this answer; -1 = not known
	ContentRange string
	ETag         string // quoted; of the content where it is held, else upstream's
	Modified     time.Time

	How      How           // Warm from a file, Stale from a file while upstream is down, Cold from upstream
	Age      time.Duration // of what a file holds
	Detail   string        // "stale: upstream 503"; may be empty
	Upstream time.Duration // until upstream's first byte
}
