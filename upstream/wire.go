// The wire: one request, its deadlines, and its body read whole or not at all.

package upstream

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"syscall"
	"time"

	"understudy"
)

// newTransport is the product's own way out: no proxy from the environment, no
// redirects (a RoundTripper follows none), bounded idle connections.
func newTransport(o *Options) *http.Transport {
	dialer := &net.Dialer{Timeout: o.Connect, KeepAlive: 30 * time.Second}
	return &http.Transport{
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: o.Connect,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:   true,
		// Many requests hang on one connection: whether it is alive is asked.
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: o.Stall, PingTimeout: o.Connect},
		DisableCompression:     true, // we decode ourselves and see when something is cut
		MaxIdleConns:           o.Concurrency,
		MaxIdleConnsPerHost:    o.Concurrency,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}
}

// lateError is a deadline of ours that passed.
type lateError struct {
	what  string
	after time.Duration
}

func (e *lateError) Error() string { return fmt.Sprintf("%s within %v", e.what, e.after) }

// errand is one request to send.
type errand struct {
	method      string
	uri         string // as the key says
	body        []byte
	contentType string
	reason      understudy.Reason
	weigh       func(context.Context, int64) error // of a Fetch; may be nil
}

// send does one request. An error means that no answer came; sent tells
// whether the request may have reached upstream. Deadlines: Connect for the
// connection, FirstByte from then to the answer's head, Stall between two
// reads, Total for all of it, beside the caller's own. The request is over,
// its socket too, when ctx ends.
func (c *Client) send(ctx context.Context, e errand) (a *answer, sent bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	total := time.AfterFunc(c.o.Total, func() { cancel(&lateError{"no whole answer", c.o.Total}) })
	defer total.Stop()
	// The connection is bounded by the dialer; this covers a transport that
	// tells nothing of its connections.
	quiet := newAlarm(cancel, &lateError{"no answer began", c.o.FirstByte}, c.o.Connect+c.o.FirstByte)
	defer quiet.stop()

	var wrote, traced atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { traced.Store(true) },
		GotConn:      func(httptrace.GotConnInfo) { quiet.reset(c.o.FirstByte) },
		WroteHeaders: func() { wrote.Store(true) },
	})
	req, err := c.request(ctx, e)
	if err != nil {
		return nil, false, err
	}
	began := c.o.Now()
	resp, astray, err := c.ask(req, e, quiet)
	if err != nil {
		sent = wrote.Load() || !traced.Load() && !isDial(err)
		return nil, sent, c.clean(causeOf(ctx, err))
	}
	defer resp.Body.Close()
	quiet.next(&lateError{"the answer stalled: nothing more", c.o.Stall}, c.o.Stall)
	a = &answer{status: resp.StatusCode, header: resp.Header, broken: astray}
	if wantsBody(resp.StatusCode) {
		a.body, err = c.read(resp, quiet, newScale(ctx, e.weigh, resp, quiet, c.o.Stall, c.o.MaxBody))
	}
	if heavy := (*heavyError)(nil); errors.As(err, &heavy) {
		return nil, true, err
	}
	if err != nil {
		a.broken = c.clean(causeOf(ctx, err))
	}
	a.at = c.o.Now()
	a.took = a.at.Sub(began)
	return a, true, nil
}

// wantsBody is false for the answers whose body nobody will look at.
func wantsBody(status int) bool {
	return status >= 200 && status != http.StatusNoContent && (status < 300 || status >= 400) &&
		status != http.StatusUnauthorized && status != http.StatusForbidden
}

// request carries the key's URI exactly, and our credential.
func (c *Client) request(ctx context.Context, e errand) (*http.Request, error) {
	to, err := c.source.Spec.URL(understudy.Key{Source: c.source.Name, URI: e.uri}, c.o.Base)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(to)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", understudy.ErrInvalid, clip(e.uri))
	}
	var body io.Reader
	if len(e.body) > 0 {
		body = bytes.NewReader(e.body)
	}
	req, err := http.NewRequestWithContext(ctx, e.method, to, body)
	if err != nil {
		return nil, fmt.Errorf("%w: %s %s", understudy.ErrInvalid, clip(e.method), clip(e.uri))
	}
	req.URL = u
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Accept-Encoding", acceptEncoding)
	req.Header.Set("User-Agent", c.o.UserAgent)
	if e.contentType != "" {
		req.Header.Set("Content-Type", e.contentType)
	}
	switch user, secret := c.credential(); c.source.Spec.Auth.Style {
	case "basic":
		req.SetBasicAuth(user, secret.Reveal())
	case "bearer":
		req.Header.Set("Authorization", "Bearer "+secret.Reveal())
	}
	return req, nil
}

// errTooLarge is a body above MaxBody, on the wire or decompressed.
var errTooLarge = errors.New("the body is larger than the limit")

// read reads a body whole. It never holds more than MaxBody of it.
func (c *Client) read(resp *http.Response, quiet *alarm, s *scale) ([]byte, error) {
	if resp.ContentLength > c.o.MaxBody {
		return nil, errTooLarge
	}
	wire := &bounded{in: &punctual{resp.Body, quiet, c.o.Stall}, left: c.o.MaxBody}
	in, err := c.codings.decoded(resp.Header, s.wire(wire))
	if err != nil {
		return nil, err
	}
	defer in.done()
	if err := s.announced(in.coding == ""); err != nil {
		return nil, err
	}
	buf := c.buffers.Get().(*bytes.Buffer)
	defer c.keep(buf)
	buf.Reset()
	if n := resp.ContentLength; n > 0 {
		buf.Grow(int(min(n, s.trusted())) + bytes.MinRead)
	}
	if _, err := buf.ReadFrom(s.body(&bounded{in: in, left: c.o.MaxBody})); err != nil {
		return nil, fmt.Errorf("the %sbody: %w", in.coding, whole(err))
	}
	// What follows a coded stream, and a length that lied, shows only here.
	if _, err := io.Copy(io.Discard, wire); err != nil {
		return nil, fmt.Errorf("the body: %w", whole(err))
	}
	if err := s.done(int64(buf.Len())); err != nil {
		return nil, err
	}
	if b := buf.Bytes(); cap(b) > maxKept && cap(b)-len(b) < len(b)/4 {
		return b[:len(b):len(b)], nil // keep lets go of it
	}
	return bytes.Clone(buf.Bytes()), nil
}

// maxKept is the largest buffer that is used again, in bytes.
const maxKept = 1 << 20

// keep puts a buffer back for the next body, unless it has grown large.
func (c *Client) keep(buf *bytes.Buffer) {
	if buf.Cap() <= maxKept {
		c.buffers.Put(buf)
	}
}

// whole renames the end that came too early.
func whole(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}

var errCut = errors.New("it was cut")

// bounded gives errTooLarge instead of more than left bytes.
type bounded struct {
	in   io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooLarge
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.in.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// lostError is a connection, or a stream of one, that was lost in a body.
type lostError struct{ error }

func (e lostError) Unwrap() error { return e.error }

// punctual sets the alarm again whenever something came, and tells a lost
// connection from a body that ended too early.
type punctual struct {
	in    io.Reader
	quiet *alarm
	stall time.Duration
}

func (r *punctual) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	if n > 0 {
		r.quiet.reset(r.stall)
	}
	if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		err = lostError{err}
	}
	return n, err
}

// alarm ends a request with a cause when it is not set again in time.
type alarm struct {
	cause atomic.Pointer[lateError]
	timer *time.Timer
}

func newAlarm(cancel context.CancelCauseFunc, cause *lateError, after time.Duration) *alarm {
	a := &alarm{}
	a.cause.Store(cause)
	a.timer = time.AfterFunc(after, func() { cancel(a.cause.Load()) })
	return a
}

func (a *alarm) reset(after time.Duration) { a.timer.Reset(after) }

func (a *alarm) next(cause *lateError, after time.Duration) {
	a.cause.Store(cause)
	a.timer.Reset(after)
}

func (a *alarm) stop() { a.timer.Stop() }

// causeOf is why a request ended: our own deadline, or err.
func causeOf(ctx context.Context, err error) error {
	var late *lateError
	if errors.As(context.Cause(ctx), &late) {
		return late
	}
	return err
}

// isDial reports errors of connections that never came about.
func isDial(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
