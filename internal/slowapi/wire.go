// Sending a response: headers, compression, and the damage that a fault causes.
package slowapi

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
)

// reply sends the response to one request.
type reply struct {
	w     http.ResponseWriter
	r     *http.Request
	s     *Server
	fault *rule
	began time.Time
	busy  int64 // the number of requests that were running when this one began, including this one
}

// wireBody is a response body. After the first byte of data it has pad bytes of white space.
type wireBody struct {
	data []byte
	pad  int64
}

func (b wireBody) size() int64 { return int64(len(b.data)) + b.pad }

// send sends the response, changed as the fault says.
func (o *reply) send(a format.Answer) {
	f := o.fault
	if a.Content != nil && f != nil {
		a = a.Content.Answer(o.r)
	}
	if f != nil {
		f.apply(&a)
	}
	if a.Content != nil {
		o.setHeader(a, false)
		a.Content.Serve(o.w, o.r)
		return
	}
	body := wireBody{data: a.Body}
	if f != nil && f.PadMB != nil && len(a.Body) > 0 {
		body.pad = *f.PadMB << 20
	}
	packed := len(a.Body) > 0 && isGzipAccepted(o.r) && !a.Plain || f != nil && f.GzipCut != nil
	if packed {
		body = wireBody{data: o.s.pack(o.r.Context(), body)}
	}
	if f != nil && f.GzipCut != nil {
		body.data = body.data[:min(*f.GzipCut, int64(len(body.data)))]
	}
	o.setHeader(a, packed)
	if f != nil && (f.Reset || f.Truncate != nil || f.StallAfter != nil || f.Length != nil) {
		o.writeBroken(a.Status, body)
		return
	}
	if a.Status != http.StatusNoContent && a.Status != http.StatusNotModified {
		o.w.Header().Set("Content-Length", strconv.FormatInt(body.size(), 10))
	}
	o.w.WriteHeader(a.Status)
	if o.r.Method != http.MethodHead {
		_ = body.write(o.w, body.size()) // an error means that the client has closed the connection
	}
}

// setHeader sets the headers of a response.
func (o *reply) setHeader(a format.Answer, packed bool) {
	h := o.w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	if o.s.twilio != nil {
		o.setTwilioHeader(h)
	}
	h.Set("Vary", "Accept-Encoding")
	if a.Status != http.StatusNoContent {
		h.Set("Content-Type", "application/json")
	}
	if packed {
		h.Set("Content-Encoding", "gzip")
	}
	for name, value := range a.Header {
		h.Set(name, value)
	}
}

// setTwilioHeader sets the headers that all of Twilio's responses have.
func (o *reply) setTwilioHeader(h http.Header) {
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
	h.Set("Access-Control-Allow-Headers", "Accept, Authorization, Content-Type, If-Match, If-Modified-Since, If-None-Match, "+
		"If-Unmodified-Since")
	h.Set("Access-Control-Allow-Credentials", "true")
	h.Set("Access-Control-Expose-Headers", "ETag, Twilio-Request-Id")
	h.Set("Twilio-Concurrent-Requests", strconv.FormatInt(o.busy, 10))
	h.Set("Twilio-Request-Duration", fmt.Sprintf("%.3f", o.s.now().Sub(o.began).Seconds()))
	id := fake.Rng(rand.Uint64())
	h.Set("Twilio-Request-Id", string(id.Hex([]byte("RQ"), 16)))
}

// writeBroken sends a response over the raw connection: with a wrong length, cut off, stalled, or ended by a TCP
// reset. It then closes the connection.
func (o *reply) writeBroken(status int, body wireBody) {
	f, promised, sent := o.fault, body.size(), body.size()
	if f.Length != nil {
		promised = max(promised+*f.Length, 0)
	}
	if f.Truncate != nil {
		sent = min(sent, *f.Truncate)
	}
	stalls := f.StallAfter != nil && *f.StallAfter <= sent
	if stalls {
		sent = *f.StallAfter
	}
	conn, rest, err := http.NewResponseController(o.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // without a raw connection, the response can only be aborted
	}
	defer conn.Close()
	defer o.s.closeWithServer(conn)()
	if f.Reset && f.Truncate == nil && f.StallAfter == nil {
		reset(conn)
		return
	}
	var head bytes.Buffer
	fmt.Fprintf(&head, "HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Length: %d\r\n", status, http.StatusText(status),
		o.s.now().UTC().Format(http.TimeFormat), promised)
	_ = o.w.Header().Write(&head)
	head.WriteString("\r\n")
	if _, err := conn.Write(head.Bytes()); err != nil {
		return
	}
	if o.r.Method != http.MethodHead {
		if err := body.write(conn, sent); err != nil {
			return
		}
	}
	if stalls {
		// Nothing more is sent until the client closes the connection, which ends the reading.
		_, _ = io.Copy(io.Discard, rest)
		return
	}
	if f.Reset {
		reset(conn)
	}
}

// closeWithServer closes the connection when the server closes. The caller must call stop when it no longer needs the
// connection.
func (s *Server) closeWithServer(conn net.Conn) (stop func()) {
	stopped := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-s.closing:
			_ = conn.Close()
		case <-stopped:
		}
	})
	return func() { close(stopped); watch.Wait() }
}

// reset closes a connection by a TCP reset.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// write writes the first n bytes of the body, which include the white space.
func (b wireBody) write(to io.Writer, n int64) error {
	put := func(p []byte) error {
		p = p[:min(int64(len(p)), n)]
		n -= int64(len(p))
		if len(p) == 0 {
			return nil
		}
		_, err := to.Write(p)
		return err
	}
	first := min(len(b.data), 1)
	if err := put(b.data[:first]); err != nil {
		return err
	}
	spaces := bytes.Repeat([]byte(" "), int(min(b.pad, 64<<10)))
	for pad := b.pad; pad > 0 && n > 0; pad -= int64(len(spaces)) {
		if err := put(spaces[:min(pad, int64(len(spaces)))]); err != nil {
			return err
		}
	}
	return put(b.data[first:])
}

// untilDone writes to w until ctx ends.
type untilDone struct {
	ctx context.Context
	w   io.Writer
}

func (u untilDone) Write(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.w.Write(p)
}

// pack compresses a body with gzip. If ctx ends first, which means that nobody reads the response, it returns a part.
func (s *Server) pack(ctx context.Context, b wireBody) []byte {
	var out bytes.Buffer
	z, ok := s.packers.Get().(*gzip.Writer)
	if !ok {
		z = gzip.NewWriter(&out)
	}
	z.Reset(&out)
	_ = b.write(untilDone{ctx, z}, b.size()) // a write to a buffer never fails
	_ = z.Close()
	s.packers.Put(z)
	return out.Bytes()
}

// isGzipAccepted reports whether the Accept-Encoding header allows gzip.
func isGzipAccepted(r *http.Request) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(part, ";")
		if name = strings.TrimSpace(name); name != "gzip" && name != "*" {
			continue
		}
		value, weighted := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
		q, err := strconv.ParseFloat(value, 64)
		return !weighted || err == nil && q > 0
	}
	return false
}
