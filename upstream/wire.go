// This file sends one request within its deadlines, and reads its body completely or not at all.

package upstream

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"understudy"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream/body"
	"understudy/upstream/throttle"
)

// newTransport returns the client's own transport. It uses no proxy from the environment, follows no redirects
// (no RoundTripper does), and limits idle connections.
func newTransport(o *Options) *http.Transport {
	dialer := &net.Dialer{Timeout: o.Connect, KeepAlive: 30 * time.Second}
	return &http.Transport{
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: o.Connect,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:   true,
		// Many requests share one connection, so pings check that it still works.
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: o.Stall, PingTimeout: o.Connect},
		DisableCompression:     true, // the client decodes bodies itself, to detect incomplete ones
		MaxIdleConns:           o.Concurrency,
		MaxIdleConnsPerHost:    o.Concurrency,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}
}

// httpRequest is one request to send.
type httpRequest struct {
	method      string
	uri         string // the request target, as in the key of the page
	body        []byte
	contentType string
	header      http.Header // additional header fields that the spec names; may be nil
	purpose     purpose
	reserve     func(context.Context, int64) error // reserves memory for a body, as Fetch.Reserve does; may be nil
	// If the body is good, its memory stays reserved until this context ends; nil means until the body was read
	bodyInUse context.Context
	park      func()    // gives back the slot in the budget; any goroutine may call it, also several times
	sizeGroup string    // a name shared by requests whose bodies have about the same length
	limits    tryLimits // the time limits of the request; zero means those of the settings
	by        signature // the credential with which the request is sent
	lastData  *moment   // receives the time of the last data; may be nil
}

// purpose is why and for whom a request is sent.
type purpose struct {
	reason request.Reason
	flow   uint64
	target *spec.Target
}

// send sends one request. An error means that there was no answer. sent is true if the upstream may have received the
// request. The deadlines are Connect for the connection, the limits' first from then to the header, the limits' stall
// between two reads, Total for everything, and that of ctx. When ctx ends, the request and its socket are closed.
func (c *Client) send(ctx context.Context, e httpRequest) (a *answer, sent bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if e.limits.first == 0 {
		e.limits = c.settings()
	}
	total := time.AfterFunc(c.o.Total, func() {
		cancel(&throttle.LateError{What: "the answer was not complete", After: c.o.Total, Total: true})
	})
	defer total.Stop()
	// The dialer limits the time of a connection. This deadline is for a transport that does not report its connections.
	quiet := throttle.NewDeadline(cancel, &throttle.LateError{What: "upstream did not start to answer", After: e.limits.first},
		c.o.Connect+e.limits.first)
	defer quiet.Stop()

	var wrote, traced atomic.Bool
	var connected moment
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { traced.Store(true) },
		GotConn:      func(httptrace.GotConnInfo) { connected.set(c.o.Now()); quiet.Reset(e.limits.first) },
		WroteHeaders: func() { wrote.Store(true) },
	})
	if e.by, err = c.credential.take(ctx, c.resources.limitFor(placeOf(e.purpose.target))); err != nil {
		return nil, false, throttle.FindCause(ctx, err)
	}
	quiet.Reset(c.o.Connect + e.limits.first) // restarted, because requesting a token may have taken time
	req, err := c.request(ctx, e)
	if err != nil {
		return nil, false, err
	}
	began, cause := c.o.Now(), request.TraceOf(ctx)
	stage, status := cause.BeginUpstream(req.Header), 0
	defer func() { cause.End(stage, status) }()
	resp, astray, err := c.ask(req, e, quiet)
	if err != nil {
		sent = wrote.Load() || !traced.Load() && !isDial(err)
		return nil, sent, c.credential.clean(throttle.FindCause(ctx, err))
	}
	defer resp.Body.Close()
	status = resp.StatusCode
	quiet.ResetCause(&throttle.LateError{What: "the answer stalled: no more data", After: e.limits.stall}, e.limits.stall)
	a = &answer{status: resp.StatusCode, header: resp.Header, bodyErr: astray, signature: e.by}
	now := c.o.Now()
	e.lastData.set(now)
	c.connections.lastData.set(now)
	a.firstByte, a.longestWait = now.Sub(began), now.Sub(connected.timeAfter(began))
	waited := time.Duration(0) // the time spent waiting for memory, which does not count against the upstream
	if c.isBodyNeeded(resp.StatusCode) {
		s := &body.Quota{Ctx: ctx, Park: e.park, Length: resp.ContentLength, Max: c.o.MaxBody}
		s.Pause = func() func() {
			at := c.o.Now()
			quiet.Stop()
			total.Stop()
			return func() {
				waited += c.o.Now().Sub(at)
				total.Reset(c.o.Total)
				quiet.Reset(e.limits.stall)
			}
		}
		if e.reserve != nil {
			s.Weigh = func(ctx context.Context, bytes int64) error {
				if err := e.reserve(ctx, bytes); err != nil {
					return &body.WeighError{Err: err}
				}
				return nil
			}
		} else { // without Reserve, the body shares the memory for bodies of this client
			weight := body.Room{All: c.o.Bodies}
			defer func() {
				if e.bodyInUse == nil || a == nil || a.bodyErr != nil || a.status != http.StatusOK {
					weight.Release()
					return
				}
				context.AfterFunc(e.bodyInUse, weight.Release)
			}()
			s.Weigh, s.Park = weight.Hold, nil
		}
		in := &deadlineReader{in: resp.Body, c: c, e: &e, quiet: quiet}
		a.body, err = c.bodies.Read(resp, in, s, e.sizeGroup)
		a.longestWait = max(a.longestWait, in.longest)
	}
	if heavy := (*body.WeighError)(nil); errors.As(err, &heavy) {
		return nil, true, err
	}
	if err != nil {
		a.bodyErr = c.credential.clean(throttle.FindCause(ctx, err))
	}
	a.at = c.o.Now()
	a.took = a.at.Sub(began) - waited
	c.readLimits(a, placeOf(e.purpose.target))
	return a, true, nil
}

// isBodyNeeded reports whether the body of an answer with this status is used.
func (c *Client) isBodyNeeded(status int) bool {
	s := c.o.Source.Spec
	return status >= 200 && status != http.StatusNoContent && (status < 300 || status >= 400) &&
		(!s.Auth.IsRefusal(status) || slices.Contains(s.Limits.Statuses, status))
}

// request returns a request with exactly the key's URI, and the source's credential.
func (c *Client) request(ctx context.Context, e httpRequest) (*http.Request, error) {
	key := understudy.Key{Source: c.o.Source.Name, URI: e.uri}
	to, err := c.o.Source.Spec.BuildURL(key, c.o.Base)
	if err != nil {
		return nil, err
	}
	fields, err := understudy.ParseQuery(key.Header())
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(to)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", understudy.ErrInvalid, understudy.Clip(e.uri))
	}
	var content io.Reader
	if len(e.body) > 0 {
		content = bytes.NewReader(e.body)
	}
	req, err := http.NewRequestWithContext(ctx, e.method, to, content)
	if err != nil {
		return nil, fmt.Errorf("%w: %s %s", understudy.ErrInvalid, understudy.Clip(e.method), understudy.Clip(e.uri))
	}
	req.URL = u
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Accept-Encoding", body.AcceptEncoding)
	req.Header.Set("User-Agent", c.o.UserAgent)
	req.Header.Set("Via", via)
	for name, value := range c.o.Source.Spec.Headers.Send {
		req.Header.Set(name, value)
	}
	for _, field := range fields {
		req.Header.Set(field.Name, field.Value)
	}
	maps.Copy(req.Header, e.header)
	if e.contentType != "" {
		req.Header.Set("Content-Type", e.contentType)
	}
	e.by.sign(req)
	return req, nil
}

// via is the value of the header Via, which shows that this server forwards requests (RFC 9110, 7.6.3). If such a
// request reaches an Understudy frontend, the frontend knows that the sender is not a person at this machine.
const via = "1.1 understudy"

// settings returns the time limits of the settings, which are used without measured answer times.
func (c *Client) settings() tryLimits { return tryLimits{first: c.o.FirstByte, stall: c.o.Stall} }

// lostError means that a connection, or a stream in it, was lost while a body was read.
type lostError struct{ error }

func (e lostError) Unwrap() error { return e.error }

// deadlineReader extends the deadline with every read and measures the longest wait. It distinguishes a lost
// connection from a body that ended too early.
type deadlineReader struct {
	in      io.Reader
	c       *Client
	e       *httpRequest
	quiet   *throttle.Deadline
	longest time.Duration
}

// Read reads from the body.
func (r *deadlineReader) Read(p []byte) (int, error) {
	began := r.c.o.Now()
	n, err := r.in.Read(p)
	if n > 0 {
		now := r.c.o.Now()
		r.longest = max(r.longest, now.Sub(began))
		r.e.lastData.set(now)
		r.c.connections.lastData.set(now)
		r.quiet.Reset(r.e.limits.stall)
	}
	if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		err = lostError{err}
	}
	return n, err
}

// isDial reports whether an error means that no connection could be made.
func isDial(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// resets are the errors of a connection that the upstream has closed: those of POSIX, and WSAECONNABORTED and
// WSAECONNRESET of Windows (Windows Sockets Error Codes).
var resets = [...]syscall.Errno{syscall.ECONNRESET, syscall.EPIPE, 10053, 10054}

func isReset(err error) bool {
	return slices.ContainsFunc(resets[:], func(e syscall.Errno) bool { return errors.Is(err, e) })
}
