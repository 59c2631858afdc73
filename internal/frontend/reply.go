// This file contains the response writer of the express lane.

package frontend

import (
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// reply is an http.ResponseWriter for HTTP/1.1. It sends an answer in chunks with a trailer if the handler sets no
// Content-Length (RFC 9112, 7.1). The answers to pipelined requests are sent in one write.
type reply struct {
	to      io.Writer
	lane    *lane // the lane of the reply's connection
	now     time.Time
	request http.Request // the request being answered
	traced  tracedHeader // the header of the request if it has traces
	found   any          // the answer to the request if it was found in memory, for the handler
	header  http.Header
	names   []string
	out     []byte
	broken  error

	head, begun, chunked, closes bool
}

// maxReply is the maximum number of bytes that are collected before they are sent.
const maxReply = 64 << 10

// replies is a pool of replies for reuse.
var replies = sync.Pool{New: func() any { return &reply{header: http.Header{}} }}

// release makes a reply reusable. The caller must not use any part of it afterwards.
func (w *reply) release() {
	if cap(w.out) <= maxReply {
		clear(w.header)
		*w = reply{header: w.header, names: w.names, traced: w.traced, out: w.out[:0]}
		replies.Put(w)
	}
}

func (w *reply) begin(to io.Writer, now time.Time, head bool) {
	clear(w.header)
	w.to, w.now, w.head, w.begun, w.chunked, w.found = to, now, head, false, false, nil
}

// StoredAnswer returns the answer that Known found, so that the handler need not find it again. It returns nil if
// no answer was found.
func (w *reply) StoredAnswer() any { return w.found }

// serve calls a handler for a request. If the handler panics, the rest of its answer is not sent and the connection
// is closed.
func (w *reply) serve(h http.Handler, r *http.Request) {
	from := len(w.out)
	defer func() {
		if why := recover(); why != nil {
			w.closes, w.out = true, w.out[:min(from, len(w.out))]
		}
	}()
	h.ServeHTTP(w, r)
	w.end()
}

// Header returns the header of the response.
func (w *reply) Header() http.Header { return w.header }

// WriteHeader writes the status line and the header.
func (w *reply) WriteHeader(status int) {
	if w.begun {
		return
	}
	w.begun = true
	w.out = append(w.out, "HTTP/1.1 "...)
	w.out = strconv.AppendInt(w.out, int64(status), 10)
	w.out = append(append(append(w.out, ' '), http.StatusText(status)...), "\r\n"...)
	if w.header["Date"] == nil {
		w.out = append(append(append(w.out, "Date: "...), dateOf(w.now)...), "\r\n"...)
	}
	w.closes = w.closes || w.header["Connection"] != nil
	if w.header["Content-Length"] == nil && !w.head && status != http.StatusNotModified && status != http.StatusNoContent {
		w.chunked, w.header["Transfer-Encoding"] = true, []string{"chunked"}
	}
	w.sortNames()
	for _, name := range w.names {
		if status == http.StatusNotModified && (name == "Content-Type" || name == "Content-Length") {
			continue // net/http leaves these fields out as well
		}
		w.appendField(name, w.header[name])
	}
	w.out = append(w.out, "\r\n"...)
}

func (w *reply) appendField(name string, values []string) {
	for _, value := range values {
		w.out = append(append(w.out, name...), ": "...)
		w.out = append(appendValue(w.out, value), "\r\n"...)
	}
}

// sortNames sorts the header field names. It is fast because most answers have the same fields as the previous answer.
func (w *reply) sortNames() {
	if len(w.names) == len(w.header) && !slices.ContainsFunc(w.names, func(name string) bool { return w.header[name] == nil }) {
		return
	}
	w.names = w.names[:0]
	for name, values := range w.header {
		if values != nil {
			w.names = append(w.names, name)
		}
	}
	slices.Sort(w.names)
}

// appendValue appends the value of a header field. It replaces line breaks, so that no value can begin another field.
func appendValue(dst []byte, value string) []byte {
	if strings.IndexByte(value, '\n') < 0 && strings.IndexByte(value, '\r') < 0 {
		return append(dst, value...)
	}
	for i := range len(value) {
		if c := value[i]; c == '\n' || c == '\r' {
			dst = append(dst, ' ')
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

// Write writes a part of the body.
func (w *reply) Write(p []byte) (int, error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	switch {
	case w.broken != nil:
		return 0, w.broken
	case w.head || len(p) == 0:
		return len(p), nil
	}
	if w.chunked {
		w.out = append(strconv.AppendInt(w.out, int64(len(p)), 16), "\r\n"...)
	}
	n := len(p)
	if len(w.out)+n <= maxReply/2 {
		w.out = append(w.out, p...)
	} else {
		all, err := w.writeBoth(p)
		n = max(int(all)-len(w.out), 0)
		w.out, w.broken = w.out[:0], err
	}
	if w.chunked {
		w.out = append(w.out, "\r\n"...)
	}
	return n, w.broken
}

// writeBoth sends the collected bytes and p.
func (w *reply) writeBoth(p []byte) (int64, error) {
	defer w.lane.countUnread(len(w.out) + len(p))()
	if s, ok := w.to.(socket); ok {
		return s.writeBoth(w.out, p)
	}
	return (&net.Buffers{w.out, p}).WriteTo(w.to)
}

// end writes the end of a response.
func (w *reply) end() {
	if !w.begun {
		w.header["Content-Length"] = []string{"0"}
		w.WriteHeader(http.StatusOK)
	}
	if w.chunked {
		w.out = append(w.out, "0\r\n"...)
		for name := range w.header {
			if trailer, ok := strings.CutPrefix(name, http.TrailerPrefix); ok || slices.Contains(w.header["Trailer"], name) {
				w.appendField(trailer, w.header[name])
			}
		}
		w.out = append(w.out, "\r\n"...)
	}
	if len(w.out) > maxReply {
		_ = w.flush()
	}
}

// FlushError sends the collected bytes when it is the request's turn (http.ResponseController).
func (w *reply) FlushError() error {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	return w.flush()
}

// SetWriteDeadline sets the time by which the client must have received the response (http.ResponseController). An
// answer from memory has no deadline of its own.
func (w *reply) SetWriteDeadline(t time.Time) error {
	if h, ok := w.to.(*heldWriter); ok {
		return h.SetWriteDeadline(t)
	}
	return http.ErrNotSupported
}

func (w *reply) flush() error {
	if len(w.out) > 0 && w.broken == nil {
		defer w.lane.countUnread(len(w.out))()
		_, w.broken = w.to.Write(w.out)
	}
	w.out = w.out[:0]
	return w.broken
}

// dateCache contains the value of the Date header, which is formatted once a second.
var dateCache struct {
	sync.Mutex
	at   int64
	text string
}

func dateOf(now time.Time) string {
	dateCache.Lock()
	defer dateCache.Unlock()
	if at := now.Unix(); at != dateCache.at {
		dateCache.at, dateCache.text = at, now.UTC().Format(http.TimeFormat)
	}
	return dateCache.text
}
