// This file forwards a request to a generic source unchanged.

package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/request"
	"understudy/upstream/body"
	"understudy/upstream/throttle"
)

// Exchange sends a request once, unchanged except for the source's credential and Via, and returns the answer
// unchanged, whatever its status and type. It does not follow redirects. It returns when the header was received. If
// the complete body is wanted (x.WantBody) and is not longer than x.MaxBody, Exchange reads it within the memory for
// bodies. The caller must close the answer, which ends the request. Every wait has a limit, but a stream may take any
// time.
//
// Any answer means that the upstream works. An *understudy.UpstreamError means that there was no answer.
// ErrUnknownOutcome means that there was no answer to a request that may have changed data. Other errors are
// ErrInvalid, ErrClosed and that of the context.
func (c *Client) Exchange(ctx context.Context, x request.Exchange) (*request.ExchangeResponse, error) {
	s := &stream{c: c, request: &request.MediaRequest{Target: x.Target}, left: endless}
	ctx, s.done = c.life.withLifetime(ctx)
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.quiet = throttle.NewDeadline(s.cancel, nil, time.Hour)
	s.quiet.Stop()
	got, failure, err := s.exchange(&x)
	switch {
	case err != nil:
		err = fmt.Errorf("upstream: %s %s: %w", understudy.Clip(x.Method), understudy.Clip(x.Target.Key.URI), wrapEnd(ctx, err))
	case failure != nil:
		err = c.resources.publicFailure(failure)
	}
	if err != nil || got.Stream == nil {
		_ = s.Close() // closes the stream, because the rest of the body is not needed
	}
	if err != nil {
		return nil, err
	}
	return got, nil
}

// endless is a number of bytes that no stream can have.
const endless = 1 << 62

// exchange waits for the breaker and the budget, and sends the request. It gives the slot back when the header was
// received.
func (s *stream) exchange(x *request.Exchange) (*request.ExchangeResponse, *understudy.UpstreamError, error) {
	c := s.c
	f := request.Fetch{Target: x.Target, Reason: x.Reason, Flow: x.Flow, MaxQueueWait: writeQueue}
	f.Deadline, _ = s.ctx.Deadline()
	g := &attempt{c: c, f: &f, reason: f.Reason, key: x.Target.Key.URI}
	probe, refused, err := g.enter(s.ctx)
	if err != nil || refused != nil {
		return nil, refused, err
	}
	began := c.o.Now()
	c.counts.AddRequest(g.reason, f.Flow, began)
	resp, maybe, err := s.pass(x)
	c.budget.Release()
	if err != nil {
		return nil, s.unansweredFailure(x, err, probe, maybe), s.checkEnd(x, err, maybe)
	}
	at := c.o.Now()
	c.counts.AddAnswer(at.Sub(began))
	c.breaker.RecordSuccess(g.key, probe)
	s.body = resp.Body
	got := &request.ExchangeResponse{
		Response: request.Response{
			Page: &understudy.Page{Key: x.Target.Key, Status: resp.StatusCode, ContentType: resp.Header.Get("Content-Type"), At: at,
				Took: at.Sub(began)},
			Outcome: request.Cold, UpstreamTime: at.Sub(began),
		},
		Header: c.credential.stripHeader(resp.Header), Stream: s, Length: resp.ContentLength, Trailer: resp.Trailer, SentAt: began,
	}
	bare := x.Method == http.MethodHead || resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified
	whole := x.WantBody != nil && x.WantBody(resp.StatusCode, got.Header, began, at)
	switch {
	case bare:
		got.Stream = nil
	case whole && resp.ContentLength <= x.MaxBody:
		if err := s.readWhole(got, x.MaxBody); err != nil {
			return nil, &understudy.UpstreamError{Why: bodyFailure(err), Err: err}, nil
		}
	}
	return got, nil, nil
}

// unansweredFailure reports to the breaker that there was no answer. A connection that upstream accepted and
// then closed says something only about this request.
func (s *stream) unansweredFailure(x *request.Exchange, err error, probe, maybe bool) *understudy.UpstreamError {
	c := s.c
	failure := &understudy.UpstreamError{Why: understudy.FailUnreachable, Err: err}
	switch {
	case errors.As(err, &failure), errors.Is(err, understudy.ErrInvalid), s.ctx.Err() != nil && !throttle.IsLate(s.ctx):
		if probe {
			c.breaker.RecordAbandonedProbe()
		}
	case isDial(err) || throttle.IsLate(s.ctx):
		c.counts.AddFailure(c.o.Now())
		c.reportFailure(x.Target.Key.URI, failure, probe)
	default:
		c.counts.AddFailure(c.o.Now())
		if probe {
			c.breaker.RecordAbandonedProbe()
		}
	}
	return failure
}

// checkEnd returns the error of an exchange if the error is more than a failure of the upstream. Otherwise it returns
// nil.
func (s *stream) checkEnd(x *request.Exchange, err error, maybe bool) error {
	switch {
	case errors.Is(err, understudy.ErrInvalid):
		return err
	case maybe && x.Method != http.MethodGet && x.Method != http.MethodHead:
		return fmt.Errorf("%w: %w", understudy.ErrUnknownOutcome, err)
	case s.ctx.Err() != nil && !throttle.IsLate(s.ctx):
		return s.ctx.Err()
	}
	return nil
}

// pass sends the request. maybe is true if the upstream may have received the request.
func (s *stream) pass(x *request.Exchange) (resp *http.Response, maybe bool, err error) {
	c := s.c
	s.quiet.ResetCause(&throttle.LateError{What: "upstream did not start to answer", After: c.o.FirstByte}, c.o.Connect+c.o.FirstByte)
	defer s.quiet.Stop()
	var connected atomic.Bool
	var early sync.Mutex
	over := false
	defer func() {
		early.Lock()
		over = true
		early.Unlock()
	}()
	ctx := httptrace.WithClientTrace(s.ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true); s.quiet.Reset(c.o.FirstByte) },
		Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
			s.quiet.Reset(c.o.FirstByte)
			early.Lock()
			defer early.Unlock()
			if x.OnInformational != nil && status != http.StatusContinue && !over {
				x.OnInformational(status, c.credential.stripHeader(http.Header(h)))
			}
			return nil
		},
	})
	req, err := c.newForwardRequest(ctx, x)
	if err != nil {
		return nil, false, err
	}
	cause := request.TraceOf(ctx)
	stage := cause.BeginUpstream(req.Header)
	if resp, err = checkFinal(c.connections.transport().RoundTrip(req)); err != nil {
		cause.End(stage, 0)
		return nil, connected.Load(), c.credential.clean(throttle.FindCause(s.ctx, err))
	}
	cause.End(stage, resp.StatusCode)
	return resp, true, nil
}

// newForwardRequest returns the request to the upstream. It is only sent to the source's own host. If the source has a
// credential, it replaces any other credential.
func (c *Client) newForwardRequest(ctx context.Context, x *request.Exchange) (*http.Request, error) {
	to, err := c.o.Source.Spec.BuildURL(x.Target.Key, c.o.Base)
	if err != nil {
		return nil, err
	}
	at, err := url.Parse(to)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", understudy.ErrInvalid, understudy.Clip(x.Target.Key.RequestURI()))
	}
	var content io.Reader
	if len(x.Body) > 0 {
		content = bytes.NewReader(x.Body)
	}
	req, err := http.NewRequestWithContext(ctx, x.Method, "http://invalid.invalid", content)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", understudy.ErrInvalid, understudy.Clip(x.Method))
	}
	req.URL, req.Host = at, at.Host
	h := x.Header.Clone()
	for _, name := range []string{"Host", "Content-Length", "Expect"} {
		delete(h, name)
	}
	if h["User-Agent"] == nil {
		h["User-Agent"] = []string{""} // prevents net/http from adding a User-Agent of its own
	}
	if lines := h["Via"]; len(lines) > 0 {
		h["Via"] = []string{strings.Join(append(lines, via), ", ")}
	} else {
		h["Via"] = []string{via}
	}
	h["Te"] = []string{"trailers"}
	for name, value := range c.o.Source.Spec.Headers.Send {
		h[name] = []string{value}
	}
	req.Header = h
	by, err := c.credential.take(ctx, "")
	if err != nil {
		return nil, err
	}
	by.sign(req)
	return req, nil
}

// readWhole reads the body of an answer into memory, within the limit for all bodies. If the body has more than most
// bytes, it stays a stream.
func (s *stream) readWhole(got *request.ExchangeResponse, most int64) error {
	weight := body.Room{All: s.c.o.Bodies}
	defer weight.Release()
	expected := got.Length
	if expected < 0 {
		expected = 32 << 10
	}
	var buf []byte
	for {
		if len(buf) == cap(buf) {
			grown := min(max(expected+1, 2*int64(cap(buf))), most+1)
			if int64(len(buf)) == most+1 {
				got.Stream = &prefixed{io.MultiReader(bytes.NewReader(buf), s), s}
				return nil
			}
			if err := weight.Hold(s.ctx, grown); err != nil {
				return err
			}
			buf = append(make([]byte, 0, grown), buf...)
		}
		n, err := s.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case err == io.EOF:
			got.Response.Page.Body, got.Stream, got.Length = buf, nil, int64(len(buf))
			return nil
		case err != nil:
			return err
		}
	}
}

// prefixed is a stream of which the beginning was already read.
type prefixed struct {
	io.Reader
	io.Closer
}
