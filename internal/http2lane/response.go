// This file contains the response writer of the lane.

package http2lane

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Response is an http.ResponseWriter that makes the frames of an answer. It is valid until Serve returns.
type Response struct {
	lane   *Lane
	stream uint32
	window int64
	found  any   // the answer in memory
	broken error // why nothing more can be sent

	isHead    bool // whether the request is a HEAD request
	begun     bool // whether the header is made
	hasNoBody bool // whether the header ends the stream

	header  http.Header
	trailer []string // the names of the fields behind the body
	fields  int      // the number of fields when the header was made
	block   []byte   // the header as it is sent, until it is collected
	body    []byte   // the part of the body that is not collected yet
}

func (w *Response) begin(l *Lane, stream uint32, isHead bool) {
	clear(w.header)
	*w = Response{lane: l, stream: stream, isHead: isHead, header: w.header, body: w.body[:0], block: w.block[:0]}
}

// StoredAnswer returns the answer that was found in memory, so that the handler need not find it again.
func (w *Response) StoredAnswer() any { return w.found }

// Serve calls a handler for a request, whose answer was found in memory. If the handler panics, the stream is reset.
func (w *Response) Serve(h http.Handler, r *http.Request, found any) {
	w.found = found
	l := w.lane
	defer func() {
		if recover() != nil {
			l.mu.Lock()
			l.remove(w.stream)
			l.out = appendWord(l.out, kindReset, w.stream, codeInternal)
			l.mu.Unlock()
		}
		if cap(w.body) > maxOut {
			w.body = nil
		}
		w.found = nil
	}()
	h.ServeHTTP(w, r)
	w.end()
}

// Header returns the header of the response.
func (w *Response) Header() http.Header { return w.header }

// WriteHeader makes the header. It sends no preliminary responses, because the answer follows at once.
func (w *Response) WriteHeader(status int) {
	if w.begun || status < http.StatusOK {
		return
	}
	w.begun = true
	w.hasNoBody = w.isHead || status == http.StatusNoContent || status == http.StatusNotModified
	w.block = appendText(appendText(append(w.block[:0], 0), ":status"), strconv.Itoa(status))
	w.trailer, w.fields = w.header["Trailer"], len(w.header)
	for name, values := range w.header {
		switch name {
		case "Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade": // HTTP/2 has none (RFC 9113, 8.2.2)
			continue
		}
		if !w.isTrailer(name) {
			w.block = appendHeader(w.block, name, values)
		}
	}
}

func (w *Response) isTrailer(name string) bool {
	return strings.HasPrefix(name, http.TrailerPrefix) || slices.Contains(w.trailer, name)
}

// appendHeader appends a field, with its name in lower case and without control characters in its values.
func appendHeader(dst []byte, name string, values []string) []byte {
	for _, value := range values {
		dst = appendText(append(dst, 0), name)
		for i := len(dst) - len(name); i < len(dst); i++ {
			if 'A' <= dst[i] && dst[i] <= 'Z' {
				dst[i] |= 0x20
			}
		}
		if !isPlain(value) {
			value = strings.Map(func(r rune) rune {
				if r < ' ' && r != '\t' || r == 0x7f {
					return ' '
				}
				return r
			}, value)
		}
		dst = appendText(dst, value)
	}
	return dst
}

// Write collects a part of the body.
func (w *Response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.broken != nil {
		return 0, w.broken
	}
	if w.body = append(w.body, p...); len(w.body) >= maxOut {
		w.collect(false)
	}
	return len(p), w.broken
}

// collect collects the frames of the header and of the body, and sends them if there are many.
func (w *Response) collect(isEnd bool) {
	l := w.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(w.block) > 0 {
		flags := byte(0)
		if w.hasNoBody {
			flags = flagEndStream
		}
		l.out = appendHeaders(l.out, w.stream, flags, w.block)
		w.window, w.block = l.flow.initial, w.block[:0]
	}
	if !w.hasNoBody {
		d := &data{stream: w.stream, window: w.window, isOwn: true, payload: w.body, isEnd: isEnd}
		l.sendData(d)
		w.window = d.window
	}
	if w.body = w.body[:0]; len(l.out) >= maxOut {
		w.broken = l.send()
	}
}

// FlushError sends what has been written (http.ResponseController).
func (w *Response) FlushError() error {
	w.WriteHeader(http.StatusOK)
	if w.collect(false); w.broken == nil {
		w.broken = w.lane.flush()
	}
	return w.broken
}

// maxCounted is the maximum length of a body whose length net/http says, in bytes.
const maxCounted = 4 << 10

// end collects the end of the answer.
func (w *Response) end() {
	if !w.begun {
		w.header["Content-Length"] = []string{"0"}
		w.WriteHeader(http.StatusOK)
	}
	if n := len(w.body); len(w.block) > 0 && 0 < n && n <= maxCounted && w.header["Content-Length"] == nil {
		w.block = appendHeader(w.block, "Content-Length", []string{strconv.Itoa(n)})
	}
	var trailer []byte
	if !w.hasNoBody && (w.trailer != nil || w.fields != len(w.header)) {
		for name, values := range w.header {
			if w.isTrailer(name) {
				trailer = appendHeader(trailer, strings.TrimPrefix(name, http.TrailerPrefix), values)
			}
		}
	}
	if w.collect(trailer == nil); trailer == nil {
		return
	}
	w.lane.mu.Lock()
	defer w.lane.mu.Unlock()
	to := &w.lane.out
	if d := w.lane.find(w.stream); d != nil {
		to = &d.frames
	}
	*to = appendHeaders(*to, w.stream, flagEndStream, trailer)
}
