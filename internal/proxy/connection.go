// This file handles the Expect header, and decides whether a connection stays open after a response.

package proxy

import (
	"net/http"
	"strings"
	"time"

	"understudy/kit/header"
)

// checkExpectation returns an error if a request expects something other than 100-continue (RFC 9110, 10.1.1).
// net/http itself refuses a single other expectation.
func checkExpectation(r *http.Request) error {
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

// expectationError is the error for a request whose Expect header is unknown.
type expectationError struct{}

func (expectationError) Error() string { return "proxy: an unknown expectation" }

const (
	// maxDrain is the maximum size of an unread request body that is discarded so that the connection can stay
	// open, in bytes.
	maxDrain = 64 << 10
	// drainTime is the maximum time for discarding an unread request body.
	drainTime = time.Second
)

// decideClose sets "Connection: close" before the header is sent, if the connection must end. The bytes after a request
// are read as the next request. So the connection must end wherever a proxy in front of this server may see another end
// of the request. This is so after an HTTP/1.0 request, whose Transfer-Encoding net/http ignores, and after a chunked
// body, whose Content-Length is not visible here (RFC 9112, 6.1). It is also so after a request line that is not of
// this API, and after an unread body that is long, of unknown length, or waits for 100 (Continue).
func (v *exchange) decideClose() {
	r := v.r
	unread := r.ContentLength != 0 && !v.read
	if v.foreign || !r.ProtoAtLeast(1, 1) || len(r.TransferEncoding) > 0 ||
		unread && (r.ContentLength > maxDrain || len(r.Header["Expect"]) > 0) {
		v.w.Header()["Connection"] = connectionClose
	}
	if unread {
		// A slow body must not delay the response. The writers of tests do not support this deadline, and the
		// server's own limits apply.
		_ = http.NewResponseController(v.w).SetReadDeadline(v.proxy.o.Now().Add(drainTime))
	}
}

var connectionClose = []string{"close"}
