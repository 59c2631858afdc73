// The wire: one request, its deadlines, and its body read whole or not at all.

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

// newTransport is the product's own way out: no proxy from the environment, no
// redirects (a RoundTripper follows none), bounded idle connections.
func newTransport(o *Options) *http.Transport {
	dialer := &net.Dialer{Timeout: o.Connect, KeepAlive: 30 * time.Second}
	return &http.Transport{
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: o.Connect,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:   true,
		// Many requests share one connection: pings check that it is alive.
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: o.Stall, PingTimeout: o.Connect},
		DisableCompression:     true, // we decode ourselves and see when something is cut
		MaxIdleConns:           o.Concurrency,
		MaxIdleConnsPerHost:    o.Concurrency,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}
}

// httpRequest is one request to send.
type httpRequest struct {
	method      string
	uri         string // as the key says
	body        []byte
	contentType string
	header      http.Header // more of it, by the spec; may be nil
	purpose     purpose
	weigh       func(context.Context, int64) error // of a Fetch; may be nil
	keeps       context.Context                    // until it ends a good body counts; nil: until it is read
	park        func()                             // gives the place in the budget back; may be called from another goroutine, and twice
	like        string                             // bodies of the same are about as long
	limits      limits                             // zero: the settings'
	by          signature                          // what it is signed with
	came        *moment                            // noted at its answer; nil: not noted
}

// purpose is why a request is sent, and for whom.
type purpose struct {
	reason request.Reason
	flow   uint64
	target *spec.Target
}

// send does one request. An error means that no answer came; sent tells
// whether the request may have reached upstream. Deadlines: Connect for the
// connection, the limits' first from then to the answer's head and stall
// between two reads, Total for all of it, beside the caller's own. The request is over,
// its socket too, when ctx ends.
func (c *Client) send(ctx context.Context, e httpRequest) (a *answer, sent bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if e.limits.first == 0 {
		e.limits = c.settings()
	}
	total := time.AfterFunc(c.o.Total, func() { cancel(&throttle.LateError{What: "no whole answer", After: c.o.Total, Total: true}) })
	defer total.Stop()
	// The connection is bounded by the dialer; this covers a transport that
	// tells nothing of its connections.
	quiet := throttle.NewDeadline(cancel, &throttle.LateError{What: "no answer began", After: e.limits.first}, c.o.Connect+e.limits.first)
	defer quiet.Stop()

	var wrote, traced atomic.Bool
	var connected moment
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { traced.Store(true) },
		GotConn:      func(httptrace.GotConnInfo) { connected.set(c.o.Now()); quiet.Reset(e.limits.first) },
		WroteHeaders: func() { wrote.Store(true) },
	})
	if e.by, err = c.credential.take(ctx, c.resources.of(placeOf(e.purpose.target))); err != nil {
		return nil, false, throttle.CauseOf(ctx, err)
	}
	quiet.Reset(c.o.Connect + e.limits.first) // a token may have been made
	req, err := c.request(ctx, e)
	if err != nil {
		return nil, false, err
	}
	began := c.o.Now()
	resp, astray, err := c.ask(req, e, quiet)
	if err != nil {
		sent = wrote.Load() || !traced.Load() && !isDial(err)
		return nil, sent, c.credential.clean(throttle.CauseOf(ctx, err))
	}
	defer resp.Body.Close()
	quiet.Next(&throttle.LateError{What: "the answer stalled: nothing more", After: e.limits.stall}, e.limits.stall)
	a = &answer{status: resp.StatusCode, header: resp.Header, broken: astray, by: e.by}
	now := c.o.Now()
	e.came.set(now)
	c.connections.came.set(now)
	a.first, a.silence = now.Sub(began), now.Sub(connected.since(began))
	waited := time.Duration(0) // for memory; it does not count against upstream
	if c.wantsBody(resp.StatusCode) {
		s := &body.Quota{Ctx: ctx, Park: e.park, Length: resp.ContentLength, Most: c.o.MaxBody}
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
		if e.weigh != nil {
			s.Weigh = func(ctx context.Context, bytes int64) error {
				if err := e.weigh(ctx, bytes); err != nil {
					return &body.WeighError{Err: err}
				}
				return nil
			}
		} else { // the fetch's own Reserve bounds it together with others
			weight := body.Room{All: c.o.Bodies}
			defer func() {
				if e.keeps == nil || a == nil || a.broken != nil || a.status != http.StatusOK {
					weight.Release()
					return
				}
				context.AfterFunc(e.keeps, weight.Release)
			}()
			s.Weigh, s.Park = weight.Hold, nil
		}
		in := &deadlineReader{in: resp.Body, c: c, e: &e, quiet: quiet}
		a.body, err = c.bodies.Read(resp, in, s, e.like)
		a.silence = max(a.silence, in.longest)
	}
	if heavy := (*body.WeighError)(nil); errors.As(err, &heavy) {
		return nil, true, err
	}
	if err != nil {
		a.broken = c.credential.clean(throttle.CauseOf(ctx, err))
	}
	a.at = c.o.Now()
	a.took = a.at.Sub(began) - waited
	c.readLimits(a, placeOf(e.purpose.target))
	return a, true, nil
}

// wantsBody is false for answers whose body is not used.
func (c *Client) wantsBody(status int) bool {
	s := c.o.Source.Spec
	return status >= 200 && status != http.StatusNoContent && (status < 300 || status >= 400) &&
		(!s.Auth.IsRefusal(status) || slices.Contains(s.Limits.Statuses, status))
}

// request carries the key's URI exactly, and our credential.
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

// via says that this server forwards requests (RFC 9110, 7.6.3). A frontend of ours
// that gets such a request knows that it does not come from a person at this machine.
const via = "1.1 understudy"

// settings are the limits without history.
func (c *Client) settings() limits { return limits{first: c.o.FirstByte, stall: c.o.Stall} }

// lostError is a connection, or a stream of one, that was lost in a body.
type lostError struct{ error }

func (e lostError) Unwrap() error { return e.error }

// deadlineReader extends the deadline with every read and notes the longest wait. It
// distinguishes a lost connection from a body that ended too early.
type deadlineReader struct {
	in      io.Reader
	c       *Client
	e       *httpRequest
	quiet   *throttle.Deadline
	longest time.Duration
}

func (r *deadlineReader) Read(p []byte) (int, error) {
	began := r.c.o.Now()
	n, err := r.in.Read(p)
	if n > 0 {
		now := r.c.o.Now()
		r.longest = max(r.longest, now.Sub(began))
		r.e.came.set(now)
		r.c.connections.came.set(now)
		r.quiet.Reset(r.e.limits.stall)
	}
	if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		err = lostError{err}
	}
	return n, err
}

// isDial reports errors of connections that could not be made.
func isDial(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// resets are the errors of a connection that upstream has broken: POSIX's, and
// WSAECONNABORTED and WSAECONNRESET of Windows (Windows Sockets Error Codes).
var resets = [...]syscall.Errno{syscall.ECONNRESET, syscall.EPIPE, 10053, 10054}

func isReset(err error) bool {
	return slices.ContainsFunc(resets[:], func(e syscall.Errno) bool { return errors.Is(err, e) })
}
