// Exchange: a request to a generic source, forwarded unchanged, and its response.

package request

import (
	"io"
	"net/http"
	"time"

	"understudy/spec"
)

// Exchange is one request to a generic source (spec.Spec.IsGeneric). It does not name the caller.
type Exchange struct {
	Target *spec.Target
	Method string
	Header http.Header // end-to-end header fields of the request; they must not be changed
	Host   string      // the host name that the client used for the source, or "" if it is not known
	Body   []byte
	Reason Reason
	Flow   uint64 // the tag of the sender, as in Request.Flow

	// OnInformational receives an informational response (RFC 9110, 15.2) that precedes the response. It is
	// called from another goroutine, but not after the exchange has returned. It may be nil.
	OnInformational func(status int, h http.Header)
	// WantBody reports, when the header was received, whether the complete body is wanted. nil means that it is not
	// wanted. asked is when the request was sent.
	WantBody func(status int, h http.Header, asked, at time.Time) bool
	// MaxBody is the largest complete body, in bytes. A longer body is streamed.
	MaxBody int64
}

// ExchangeResponse is the response to an Exchange. Page contains its status, its body and when its header was
// received. The receiver must close it.
type ExchangeResponse struct {
	Response Response
	Header   http.Header // end-to-end header fields of the response; they must not be changed
	// Stream is the body while it is received. If it is nil, Page.Body is the complete body.
	Stream io.ReadCloser
	Length int64 // the length of Stream in bytes, or -1 if it is not known
	// Trailer contains the trailer fields after Stream was read to its end, and before that the announced
	// names. It is nil if there are none.
	Trailer http.Header
	SentAt  time.Time // when the request was sent to the upstream
}

// Close ends the stream, if there is one.
func (x *ExchangeResponse) Close() error {
	if x.Stream == nil {
		return nil
	}
	return x.Stream.Close()
}
