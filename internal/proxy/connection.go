// Connection: what is expected before a body, and what becomes of the
// connection after an answer.

package proxy

import (
	"net/http"
	"strings"
	"time"

	"understudy/kit/header"
)

// expectation refuses a request that expects more than an invitation to send its body
// (RFC 9110, 10.1.1). net/http itself refuses a single other expectation.
func expectation(r *http.Request) error {
	if len(r.Header["Expect"]) == 0 || !r.ProtoAtLeast(1, 1) {
		return nil
	}
	for item := range header.Items(r.Header["Expect"]) {
		if !strings.EqualFold(item, "100-continue") {
			return expectationError{}
		}
	}
	return nil
}

// expectationError: the request expects what we cannot do.
type expectationError struct{}

func (expectationError) Error() string { return "proxy: an unknown expectation" }

const (
	// maxDrain is the longest body that is taken in and thrown away so that
	// the connection can go on.
	maxDrain = 64 << 10
	// drainTime bounds how long that may take.
	drainTime = time.Second
)

// part decides, before the header goes out, whether the connection goes on. The bytes
// behind a request are read as the next request. So the connection ends wherever
// another server before this one may see another end of the request: after HTTP/1.0,
// whose Transfer-Encoding net/http ignores; after a chunked body, whose Content-Length,
// if it had one, is not visible here (RFC 9112, 6.1); after a request line that is not
// of this API; and after a body that was not read and is long, of unknown length, or
// waits to be invited.
func (v *exchange) part() {
	r := v.r
	unread := r.ContentLength != 0 && !v.read
	if v.odd || !r.ProtoAtLeast(1, 1) || len(r.TransferEncoding) > 0 ||
		unread && (r.ContentLength > maxDrain || len(r.Header["Expect"]) > 0) {
		v.w.Header()["Connection"] = closed
	}
	if unread {
		// A body that comes slowly holds up neither the answer nor us. Where
		// there is no such deadline (in tests), the server's own bounds it.
		_ = http.NewResponseController(v.w).SetReadDeadline(v.proxy.o.Now().Add(drainTime))
	}
}

var closed = []string{"close"}
