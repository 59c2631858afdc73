// Connection: what is expected before a body, and what becomes of the
// connection after an answer.

package proxy

import (
	"net/http"
	"strings"
	"time"

	"understudy/kit/header"
)

// expectation refuses what a request expects of us beyond being invited to send
// its body (RFC 9110, 10.1.1). net/http itself refuses a single other one.
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

// part decides, before the header goes out, whether the connection goes on.
// What follows a request on it is read as the next one, so it ends wherever
// somebody between us and the caller may think otherwise of where this one
// ends: after HTTP/1.0, whose Transfer-Encoding net/http does not heed; after a
// chunked body, because its Content-Length, if it had one, is no longer to be
// seen here (RFC 9112, 6.1); after a request line that is none of this API's;
// and where a body was not read that is long, of unknown length, or waits to be
// invited.
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
		_ = http.NewResponseController(v.w).SetReadDeadline(v.now().Add(drainTime))
	}
}

var closed = []string{"close"}
