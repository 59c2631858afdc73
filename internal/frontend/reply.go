// Reply: the answers of the express lane.

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

// reply is an http.ResponseWriter for answers to requests in HTTP/1.1. One whose Content-Length
// the handler does not say goes out in chunks, with its trailer (RFC 9112, 7.1). Several answers to
// requests that came together go out in one write.
type reply struct {
	to      io.Writer
	lane    *lane // of its connection
	now     time.Time
	request http.Request // that the answer under way is to
	found   any          // of its answer, in memory
	header  http.Header
	names   []string
	out     []byte
	broken  error

	head, begun, chunked, closes bool
}

// What is written goes out when it is more than this, at the latest.
const maxReply = 64 << 10

// replies are those that no connection has.
var replies = sync.Pool{New: func() any { return &reply{header: http.Header{}} }}

// release gives a reply back. Nothing of it may be used any more.
func (w *reply) release() {
	if cap(w.out) <= maxReply {
		clear(w.header)
		*w = reply{header: w.header, names: w.names, out: w.out[:0]}
		replies.Put(w)
	}
}

func (w *reply) begin(to io.Writer, now time.Time, head bool) {
	clear(w.header)
	w.to, w.now, w.head, w.begun, w.chunked, w.found = to, now, head, false, false, nil
}

// Found returns what the handler's Known found of the answer, so that it is not looked up again; nil: nothing.
func (w *reply) Found() any { return w.found }

// serve has a handler answer a request. When it panics the connection ends, and nothing more
// of its answer is sent.
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

// Header is that of the answer.
func (w *reply) Header() http.Header { return w.header }

// WriteHeader writes the header.
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
	w.order()
	for _, name := range w.names {
		if status == http.StatusNotModified && (name == "Content-Type" || name == "Content-Length") {
			continue // as net/http does
		}
		w.field(name, w.header[name])
	}
	w.out = append(w.out, "\r\n"...)
}

func (w *reply) field(name string, values []string) {
	for _, value := range values {
		w.out = append(append(w.out, name...), ": "...)
		w.out = append(appendValue(w.out, value), "\r\n"...)
	}
}

// order puts the fields' names in order. Most answers of a connection have those of the one
// before.
func (w *reply) order() {
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

// appendValue appends a field's value: no value begins another field.
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
		all, err := w.both(p)
		n = max(int(all)-len(w.out), 0)
		w.out, w.broken = w.out[:0], err
	}
	if w.chunked {
		w.out = append(w.out, "\r\n"...)
	}
	return n, w.broken
}

// both writes what is to go out, and p.
func (w *reply) both(p []byte) (int64, error) {
	defer w.lane.count(len(w.out) + len(p))()
	if s, ok := w.to.(*socket); ok {
		return s.both(w.out, p)
	}
	return (&net.Buffers{w.out, p}).WriteTo(w.to)
}

// end is the end of one answer.
func (w *reply) end() {
	if !w.begun {
		w.header["Content-Length"] = []string{"0"}
		w.WriteHeader(http.StatusOK)
	}
	if w.chunked {
		w.out = append(w.out, "0\r\n"...)
		for name := range w.header {
			if trailer, ok := strings.CutPrefix(name, http.TrailerPrefix); ok || slices.Contains(w.header["Trailer"], name) {
				w.field(trailer, w.header[name])
			}
		}
		w.out = append(w.out, "\r\n"...)
	}
	if len(w.out) > maxReply {
		_ = w.flush()
	}
}

// FlushError sends what is written, in its turn (http.ResponseController).
func (w *reply) FlushError() error {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	return w.flush()
}

// SetWriteDeadline is until when the client may take what is sent (http.ResponseController). An
// answer that was in memory has no deadline of its own.
func (w *reply) SetWriteDeadline(t time.Time) error {
	if h, ok := w.to.(*hold); ok {
		return h.SetWriteDeadline(t)
	}
	return http.ErrNotSupported
}

func (w *reply) flush() error {
	if len(w.out) > 0 && w.broken == nil {
		defer w.lane.count(len(w.out))()
		_, w.broken = w.to.Write(w.out)
	}
	w.out = w.out[:0]
	return w.broken
}

// dates is the value of Date, made once a second.
var dates struct {
	sync.Mutex
	at   int64
	text string
}

func dateOf(now time.Time) string {
	dates.Lock()
	defer dates.Unlock()
	if at := now.Unix(); at != dates.at {
		dates.at, dates.text = at, now.UTC().Format(http.TimeFormat)
	}
	return dates.text
}
