// This file requests the media content of a record, as a stream.

package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/request"
	"understudy/upstream/body"
	"understudy/upstream/throttle"
)

// Open requests the content that a media path names. It returns at the first byte; the rest is read from the response.
// The caller must close the response, which ends the request. Open follows at most 5 redirects, and sends the
// credential only to the source's own hosts. Of the upstream's answer, only the fields of MediaResponse are forwarded.
//
// The statuses are 200, 206, 304, 404, 410 and 416; the last four have no content. Errors are as for Fetch, but there
// is only one try. A content may take any time, but every wait and the size have a limit.
func (c *Client) Open(ctx context.Context, a request.MediaRequest) (*request.MediaResponse, error) {
	if a.Target == nil || a.Target.Media == nil {
		return nil, fmt.Errorf("upstream: open: %w: no media path", understudy.ErrInvalid)
	}
	s := &stream{c: c, request: &a}
	ctx, s.done = c.life.withLifetime(ctx)
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.quiet = throttle.NewDeadline(s.cancel, nil, time.Hour)
	s.quiet.Stop()
	m, failure, err := s.open()
	if m != nil {
		return m, nil
	}
	defer s.Close()
	if failure != nil {
		return nil, c.resources.publicFailure(failure)
	}
	return nil, fmt.Errorf("upstream: open %s: %w", understudy.Clip(a.Target.Key.String()), wrapEnd(ctx, err))
}

// open waits for a stream slot and the budget, and sends the request. It sends the request once more if the
// credential was replaced meanwhile.
func (s *stream) open() (*request.MediaResponse, *understudy.UpstreamError, error) {
	c := s.c
	if err := c.media.enter(s.ctx); err != nil {
		return nil, throttle.Refusal(err), err
	}
	s.hasSlot = true
	f := request.Fetch{Target: s.request.Target, Reason: s.request.Reason, Flow: s.request.Flow, MaxQueueWait: mediaQueue}
	f.Deadline, _ = s.ctx.Deadline()
	g := &attempt{c: c, f: &f, reason: f.Reason, key: f.Target.Key.URI}
	for {
		probe, refused, err := g.enter(s.ctx)
		if err != nil || refused != nil {
			return nil, refused, err
		}
		m, failure, err := s.try(g, probe)
		if !g.replaced {
			return m, failure, err
		}
		g.replaced = false
	}
}

// try sends the request and reports the result to the breaker. It gives the slot back when the header was received. The
// budget counts requests, and a listener may take minutes for the rest.
func (s *stream) try(g *attempt, probe bool) (*request.MediaResponse, *understudy.UpstreamError, error) {
	c := s.c
	defer c.budget.Release()
	began := c.o.Now()
	c.counts.AddRequest(g.reason, g.f.Flow, c.o.Now())
	resp, by, away, failure := s.follow(g.key)
	took := c.o.Now().Sub(began)
	var m *request.MediaResponse
	if failure == nil {
		c.counts.AddAnswer(took)
		s.body, s.isOutside = resp.Body, away
		a := &answer{status: resp.StatusCode, header: resp.Header, at: c.o.Now(), took: took, signature: by}
		if !away { // another host's limits are not those of the source
			c.readLimits(a, placeOf(s.request.Target))
			c.noteLimits(a, sortOf(http.MethodGet, s.request.Target))
		}
		if m, failure = s.mediaResponse(resp, a); m != nil {
			m.Upstream = took
		} else {
			_ = resp.Body.Close()
		}
	}
	switch {
	case failure == nil:
		c.breaker.RecordSuccess(g.key, probe)
		return m, nil, nil
	case s.ctx.Err() != nil && !throttle.IsLate(s.ctx):
		if probe {
			c.breaker.RecordAbandonedProbe()
		}
		return nil, nil, s.ctx.Err()
	}
	c.counts.AddFailure(c.o.Now())
	if !away && by.canRetry(failure) {
		g.replaced = true
		if probe {
			c.breaker.RecordUnusedProbe()
		}
		return nil, failure, nil
	}
	if away {
		c.breaker.RecordSuccess(g.key, probe) // the source itself has answered, with a redirect
	} else {
		c.reportFailure(g.key, failure, probe)
	}
	c.breaker.Pause(g.key, failure)
	return nil, failure, nil
}

// maxRedirects is the number of redirects that are followed.
const maxRedirects = 5

// follow sends the request to uri and to the targets of redirects. away is true if the failure or the answer
// comes from another host than the source's. by is the credential of the request.
func (s *stream) follow(uri string) (resp *http.Response, by signature, away bool, failure *understudy.UpstreamError) {
	c := s.c
	total := time.AfterFunc(c.o.Total, func() { s.cancel(&throttle.LateError{What: "upstream did not start to answer", After: c.o.Total}) })
	defer total.Stop()
	defer s.quiet.Stop()
	to, err := c.o.Source.Spec.BuildURL(understudy.Key{Source: c.o.Source.Name, URI: uri}, c.o.Base)
	if err != nil {
		return nil, by, false, &understudy.UpstreamError{Why: understudy.FailUnusable, Err: err}
	}
	at, err := url.Parse(to)
	if err != nil {
		return nil, by, false, &understudy.UpstreamError{Why: understudy.FailUnusable, Err: errors.New("the address cannot be parsed")}
	}
	if by, err = c.credential.take(s.ctx, c.resources.limitFor(placeOf(s.request.Target))); err != nil {
		if !errors.As(err, &failure) {
			failure = &understudy.UpstreamError{Why: understudy.FailUnreachable, Err: err}
		}
		return nil, by, false, failure
	}
	for hops := 0; ; hops++ {
		// After a redirect to another host the credential is never sent again, because that host decides where
		// the next redirect leads.
		away = away || !c.media.isHome(at)
		resp, err := s.sendTo(at, by, away)
		if err != nil {
			return nil, by, away, &understudy.UpstreamError{Why: understudy.FailUnreachable, Err: c.credential.clean(throttle.FindCause(s.ctx, err))}
		}
		if !isRedirect(resp.StatusCode) {
			return resp, by, away, nil
		}
		next, err := c.media.resolveRedirect(at, resp.Header.Get("Location"))
		_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // a short rest is read, so that the connection can be reused
		_ = resp.Body.Close()
		if err == nil && hops == maxRedirects {
			err = fmt.Errorf("more than %d redirects", maxRedirects)
		}
		if err != nil {
			return nil, by, true, &understudy.UpstreamError{Why: understudy.FailUnusable, Err: err}
		}
		at = next
	}
}

func isRedirect(status int) bool {
	return status >= 301 && status <= 303 || status == 307 || status == 308
}

// sendTo sends the request to one host.
func (s *stream) sendTo(at *url.URL, by signature, away bool) (*http.Response, error) {
	c := s.c
	s.quiet.ResetCause(&throttle.LateError{What: "upstream did not start to answer", After: c.o.FirstByte}, c.o.Connect+c.o.FirstByte)
	ctx := httptrace.WithClientTrace(s.ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { s.quiet.Reset(c.o.FirstByte) },
	})
	method := http.MethodGet
	if s.request.Head {
		method = http.MethodHead
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://invalid.invalid", nil)
	if err != nil {
		return nil, err
	}
	req.URL, req.Host = at, at.Host
	h := req.Header
	h.Set("Accept", "*/*")
	h.Set("Accept-Encoding", "identity") // without compression, because a range counts uncompressed bytes
	h.Set("User-Agent", c.o.UserAgent)
	h.Set("Via", via)
	r := s.request
	for name, value := range map[string]string{"Range": r.Range, "If-Range": r.IfRange, "If-None-Match": r.IfNoneMatch} {
		if value != "" {
			h.Set(name, value)
		}
	}
	if away {
		return checkFinal(c.media.outside.RoundTrip(req))
	}
	for name, value := range c.o.Source.Spec.Headers.Send {
		if name != "Accept" { // the Accept field of the API does not apply to media contents
			h.Set(name, value)
		}
	}
	by.sign(req)
	cause := request.TraceOf(ctx)
	defer cause.End(cause.BeginUpstream(h), 0)
	return checkFinal(c.connections.transport().RoundTrip(req))
}

// mediaResponse turns an answer into the response for readers, or into a failure.
func (s *stream) mediaResponse(resp *http.Response, a *answer) (*request.MediaResponse, *understudy.UpstreamError) {
	decided := answerFailure(s.c.o.Source.Spec, a)
	fail := func(why understudy.Failure, err error) (*request.MediaResponse, *understudy.UpstreamError) {
		e := decided
		e.Why, e.Err = why, err
		return nil, &e
	}
	m := &request.MediaResponse{
		ReadCloser: s, Status: resp.StatusCode, Size: resp.ContentLength, Outcome: request.Cold,
		ContentType: mediaType(resp.Header.Get("Content-Type")), ETag: entityTag(resp.Header.Get("Etag")),
	}
	m.Modified, _ = http.ParseTime(resp.Header.Get("Last-Modified"))
	switch status := resp.StatusCode; {
	case status == http.StatusOK, status == http.StatusPartialContent:
		if err := s.check(resp, m); err != nil {
			return fail(understudy.FailUnusable, err)
		}
		return m, nil
	case status == http.StatusNotModified && s.request.IfNoneMatch != "", status == http.StatusNotFound, status == http.StatusGone,
		status == http.StatusRequestedRangeNotSatisfiable && s.request.Range != "":
		m.ContentRange = contentRange(resp.Header.Get("Content-Range"))
		m.ReadCloser, m.Size, m.ContentType = http.NoBody, 0, ""
		s.Close()
		return m, nil
	case decided.Why != understudy.FailNone && !(decided.Why == understudy.FailCredential && s.isOutside):
		return nil, &decided
	}
	return fail(understudy.FailUnusable, errors.New("no content"))
}

// check returns an error if a successful answer cannot be forwarded to readers.
func (s *stream) check(resp *http.Response, m *request.MediaResponse) error {
	kind, _, _ := mime.ParseMediaType(m.ContentType)
	switch coding := resp.Header.Get("Content-Encoding"); {
	case coding != "" && !strings.EqualFold(coding, "identity"):
		return fmt.Errorf("content encoding %q was not requested", understudy.Clip(coding))
	case !s.isOutside && isAPIType(kind) && !slices.Contains(s.request.Target.Media.Types, kind):
		// The API's own text may contain data that the caller must not see. Only in a page could such data be removed.
		return fmt.Errorf("upstream sent a content of type %s, which the spec does not name", kind)
	case m.Size > s.c.media.limit:
		return body.NewTooLarge(s.c.o.Source.Name, "max_media", s.c.media.limit)
	}
	if s.left = s.c.media.limit; m.Status == http.StatusPartialContent {
		m.ContentRange = contentRange(resp.Header.Get("Content-Range"))
		if s.request.Range == "" || !strings.Contains(m.ContentRange, "-") {
			return errors.New("upstream sent a part that was not requested")
		}
	}
	return nil
}

// isAPIType reports whether a content type is one in which an API answers, rather than that of media.
func isAPIType(kind string) bool {
	switch kind {
	case "application/json", "application/xml", "text/xml", "text/html", "application/xhtml+xml", "application/x-www-form-urlencoded":
		return true
	}
	return strings.HasSuffix(kind, "+json")
}
