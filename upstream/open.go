// Open: the content of a record, streamed as it comes.

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

// Open asks upstream for the content that a media path names. It returns at the first
// byte; the rest comes as the reader takes it. The response must be closed, which ends
// the request. Redirects are followed, at most 5, and the credential goes to the
// source's own hosts alone. Only the fields of MediaResponse are passed on from
// upstream.
//
// The statuses are 200, 206, 304, 404, 410 and 416; the last four bring no
// bytes. Errors are as for Fetch; there is one try. A content may take any
// time, but there is a limit on every wait and on its size.
func (c *Client) Open(ctx context.Context, a request.MediaRequest) (*request.MediaResponse, error) {
	if a.Target == nil || a.Target.Media == nil {
		return nil, fmt.Errorf("upstream: open: %w: no media path", understudy.ErrInvalid)
	}
	s := &stream{c: c, ask: &a}
	ctx, s.done = c.life.until(ctx)
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.quiet = throttle.NewDeadline(s.cancel, nil, time.Hour)
	s.quiet.Stop()
	m, failure, err := s.open()
	if m != nil {
		return m, nil
	}
	defer s.Close()
	if failure != nil {
		return nil, c.resources.outward(failure)
	}
	return nil, fmt.Errorf("upstream: open %s: %w", understudy.Clip(a.Target.Key.String()), endOf(ctx, err))
}

// open waits for a stream and for budget, and sends the request. It sends it once more
// when the credential was replaced meanwhile.
func (s *stream) open() (*request.MediaResponse, *understudy.UpstreamError, error) {
	c := s.c
	if err := c.media.enter(s.ctx); err != nil {
		return nil, throttle.Refusal(err), err
	}
	s.placed = true
	f := request.Fetch{Target: s.ask.Target, Reason: s.ask.Reason, Flow: s.ask.Flow, MaxQueueWait: mediaQueue}
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

// try sends the request. The slot is given back when the head has come: the budget
// counts requests, and a listener may take minutes for the rest. The breaker learns the
// result.
func (s *stream) try(g *attempt, probe bool) (*request.MediaResponse, *understudy.UpstreamError, error) {
	c := s.c
	defer c.budget.Release()
	began := c.o.Now()
	c.counts.Sent(g.reason, g.f.Flow, c.o.Now())
	resp, by, away, failure := s.follow(g.key)
	took := c.o.Now().Sub(began)
	var m *request.MediaResponse
	if failure == nil {
		c.counts.Answered(took)
		s.body, s.away = resp.Body, away
		a := &answer{status: resp.StatusCode, header: resp.Header, at: c.o.Now(), took: took, by: by}
		if !away { // another host's limits are not the source's
			c.readLimits(a, placeOf(s.ask.Target))
			c.noteLimits(a, sortOf(http.MethodGet, s.ask.Target))
		}
		if m, failure = s.medium(resp, a); m != nil {
			m.Upstream = took
		} else {
			_ = resp.Body.Close()
		}
	}
	switch {
	case failure == nil:
		c.breaker.Succeeded(g.key, probe)
		return m, nil, nil
	case s.ctx.Err() != nil && !throttle.IsLate(s.ctx):
		if probe {
			c.breaker.ProbeAbandoned()
		}
		return nil, nil, s.ctx.Err()
	}
	c.counts.Failed(c.o.Now())
	if !away && by.again(failure) {
		g.replaced = true
		if probe {
			c.breaker.ProbeUnused()
		}
		return nil, failure, nil
	}
	if away {
		c.breaker.Succeeded(g.key, probe) // the source itself answered with a redirect
	} else {
		c.failed(g.key, failure, probe)
	}
	c.breaker.Pause(g.key, failure)
	return nil, failure, nil
}

// maxRedirects is how many are followed.
const maxRedirects = 5

// follow sends the request to uri and to the targets of redirects. away says that the
// failure or the answer comes from another host than the source's; by is what was signed with.
func (s *stream) follow(uri string) (resp *http.Response, by signature, away bool, failure *understudy.UpstreamError) {
	c := s.c
	total := time.AfterFunc(c.o.Total, func() { s.cancel(&throttle.LateError{What: "no answer began", After: c.o.Total}) })
	defer total.Stop()
	defer s.quiet.Stop()
	to, err := c.o.Source.Spec.BuildURL(understudy.Key{Source: c.o.Source.Name, URI: uri}, c.o.Base)
	if err != nil {
		return nil, by, false, &understudy.UpstreamError{Why: understudy.FailUnusable, Err: err}
	}
	at, err := url.Parse(to)
	if err != nil {
		return nil, by, false, &understudy.UpstreamError{Why: understudy.FailUnusable, Err: errors.New("the address cannot be read")}
	}
	if by, err = c.credential.take(s.ctx, c.resources.of(placeOf(s.ask.Target))); err != nil {
		if !errors.As(err, &failure) {
			failure = &understudy.UpstreamError{Why: understudy.FailUnreachable, Err: err}
		}
		return nil, by, false, failure
	}
	for hops := 0; ; hops++ {
		// A redirect to another host never gets the credential again: that host decides where
		// the next redirect leads.
		away = away || !c.media.isHome(at)
		resp, err := s.roundTrip(at, by, away)
		if err != nil {
			return nil, by, away, &understudy.UpstreamError{Why: understudy.FailUnreachable, Err: c.credential.clean(throttle.CauseOf(s.ctx, err))}
		}
		if !isRedirect(resp.StatusCode) {
			return resp, by, away, nil
		}
		next, err := c.media.next(at, resp.Header.Get("Location"))
		_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // so that the connection serves again
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

// roundTrip asks one host.
func (s *stream) roundTrip(at *url.URL, by signature, away bool) (*http.Response, error) {
	c := s.c
	s.quiet.Next(&throttle.LateError{What: "no answer began", After: c.o.FirstByte}, c.o.Connect+c.o.FirstByte)
	ctx := httptrace.WithClientTrace(s.ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { s.quiet.Reset(c.o.FirstByte) },
	})
	method := http.MethodGet
	if s.ask.Head {
		method = http.MethodHead
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://invalid.invalid", nil)
	if err != nil {
		return nil, err
	}
	req.URL, req.Host = at, at.Host
	h := req.Header
	h.Set("Accept", "*/*")
	h.Set("Accept-Encoding", "identity") // a range is of the bytes as they are
	h.Set("User-Agent", c.o.UserAgent)
	h.Set("Via", via)
	for name, value := range map[string]string{"Range": s.ask.Range, "If-Range": s.ask.IfRange, "If-None-Match": s.ask.IfNoneMatch} {
		if value != "" {
			h.Set(name, value)
		}
	}
	if away {
		return final(c.media.outside.RoundTrip(req))
	}
	for name, value := range c.o.Source.Spec.Headers.Send {
		if name != "Accept" { // a content has another type
			h.Set(name, value)
		}
	}
	by.sign(req)
	return final(c.connections.transport().RoundTrip(req))
}

// medium turns an answer into what readers get, or the failure it is.
func (s *stream) medium(resp *http.Response, a *answer) (*request.MediaResponse, *understudy.UpstreamError) {
	decided := decision(s.c.o.Source.Spec, a)
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
	case status == http.StatusNotModified && s.ask.IfNoneMatch != "", status == http.StatusNotFound, status == http.StatusGone,
		status == http.StatusRequestedRangeNotSatisfiable && s.ask.Range != "":
		m.ContentRange = contentRange(resp.Header.Get("Content-Range"))
		m.ReadCloser, m.Size, m.ContentType = http.NoBody, 0, ""
		s.Close()
		return m, nil
	case decided.Why != understudy.FailNone && !(decided.Why == understudy.FailCredential && s.away):
		return nil, &decided
	}
	return fail(understudy.FailUnusable, errors.New("no content"))
}

// check looks whether a good answer can be passed on.
func (s *stream) check(resp *http.Response, m *request.MediaResponse) error {
	kind, _, _ := mime.ParseMediaType(m.ContentType)
	switch coding := resp.Header.Get("Content-Encoding"); {
	case coding != "" && !strings.EqualFold(coding, "identity"):
		return fmt.Errorf("content encoding %q was not asked for", understudy.Clip(coding))
	case !s.away && speaks(kind) && !slices.Contains(s.ask.Target.Media.Types, kind):
		// What the API says of itself may name what a caller must not see;
		// only a page can be shown in parts.
		return fmt.Errorf("a content of type %s, which the spec does not name", kind)
	case m.Size > s.c.media.limit:
		return body.TooLarge(s.c.o.Source.Name, "max_media", s.c.media.limit)
	}
	if s.left = s.c.media.limit; m.Status == http.StatusPartialContent {
		m.ContentRange = contentRange(resp.Header.Get("Content-Range"))
		if s.ask.Range == "" || !strings.Contains(m.ContentRange, "-") {
			return errors.New("a part that was not asked for")
		}
	}
	return nil
}

// speaks reports types in which an API answers, rather than what is kept there.
func speaks(kind string) bool {
	switch kind {
	case "application/json", "application/xml", "text/xml", "text/html", "application/xhtml+xml", "application/x-www-form-urlencoded":
		return true
	}
	return strings.HasSuffix(kind, "+json")
}
