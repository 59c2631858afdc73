// Exchange: a request to a generic source, passed on as it came, and what came back.

package request

import (
	"io"
	"net/http"
	"time"

	"understudy/spec"
)

// Exchange is one request to a generic source (spec.Spec.Generic). It does not name the
// caller.
type Exchange struct {
	Target *spec.Target
	Method string
	Header http.Header // end to end; it is not changed
	Host   string      // as which the source was asked; "" = not known
	Body   []byte
	Reason Reason
	Flow   uint64 // as in Request

	// Early gets an informational answer (RFC 9110, 15.2) that comes before the answer. It is
	// called from another goroutine, and not after the exchange has returned. nil: nobody
	// wants them.
	Early func(status int, h http.Header)
	// Whole reports, when the header has come, whether the body is wanted whole; nil: it is
	// not. asked is when the request was sent.
	Whole func(status int, h http.Header, asked, at time.Time) bool
	// Most is the bytes of a body that is wanted whole. One that is longer is streamed.
	Most int64
}

// Exchanged is the answer to an Exchange. Page has its status, its body and when its header
// came. It must be closed.
type Exchanged struct {
	Response Response
	Header   http.Header // end to end; not to be changed
	// Stream is the body as it comes; nil: Page.Body is all of it.
	Stream io.ReadCloser
	Length int64 // of Stream; -1 = not known
	// Trailer has the fields behind the body, once Stream has been read to its end. Before
	// that it has the names that were announced. nil: there are none.
	Trailer http.Header
	Asked   time.Time // when the request was sent
}

// Close ends the stream, if there is one.
func (x *Exchanged) Close() error {
	if x.Stream == nil {
		return nil
	}
	return x.Stream.Close()
}
