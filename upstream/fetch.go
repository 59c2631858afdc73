// Fetch: a GET within breaker and budget, tried again where that is safe.

package upstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/kit/header"
	"understudy/kit/retry"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream/body"
	"understudy/upstream/throttle"
)

const (
	backOffMin = 200 * time.Millisecond
	backOffMax = 5 * time.Second
)

// Fetch asks upstream for a target and returns the page it answered. An answer about
// the request (400, 404, 410 …) is a page too. Otherwise the error is an
// *understudy.UpstreamError, the context's, that of f.Reserve, or ErrClosed; never nil.
// When ctx ends by its deadline while upstream is silent, the error is an UpstreamError
// too.
//
// A try that failed without an answer, with 429 or with 5xx is followed by another.
// That one begins within f.Retry of the start, as long as ctx leaves time for it.
// Between them lies a random part of a wait that doubles, or the wait that Retry-After
// names. Each try may take as long as this source usually takes (latencies.limits).
func (c *Client) Fetch(ctx context.Context, f request.Fetch) (*understudy.Page, error) {
	ctx, done := c.life.until(ctx)
	defer done()
	g := &attempt{c: c, f: &f, reason: f.Reason, key: f.Target.Key.URI, end: c.o.Now().Add(f.RetryWindow)}
	page, failure, err := g.run(ctx)
	if g.sent && errors.Is(err, context.DeadlineExceeded) {
		return nil, &understudy.UpstreamError{Why: understudy.FailUnreachable, Err: fmt.Errorf("no answer in time: %w", err)}
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("upstream: fetch %s: %w", understudy.Clip(f.Target.Key.String()), endOf(ctx, err))
	case failure != nil:
		if g.sent {
			c.breaker.Pause(g.key, failure)
		}
		return nil, c.resources.outward(failure)
	}
	page.Generation = f.Generation
	return page, nil
}

// endOf is ErrClosed when Close ended ctx.
func endOf(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), understudy.ErrClosed) {
		return understudy.ErrClosed
	}
	return err
}

// attempt is one fetch under way.
type attempt struct {
	c      *Client
	f      *request.Fetch
	reason request.Reason // rises to Waiting when promoted
	key    string
	sent   bool
	end    time.Time // of the time in which tries may begin
	// replaced: the last try was refused with a credential that has been replaced since, or
	// beside which another is free. The refusal does not count.
	replaced bool
	tries    int  // sent
	silent   int  // tries that ended in silence
	dropped  bool // the last of them did so while upstream answered other requests
}

func (g *attempt) run(ctx context.Context) (*understudy.Page, *understudy.UpstreamError, error) {
	var failure *understudy.UpstreamError
	for try := 0; ; try++ {
		probe, refused, err := g.enter(ctx)
		if err != nil {
			return nil, nil, err
		}
		if refused != nil {
			if failure == nil {
				failure = refused
			}
			return nil, failure, nil
		}
		page, failed, err := g.try(ctx, probe)
		if err != nil || page != nil {
			return page, nil, err
		}
		if failed == nil || g.replaced {
			g.replaced = false
			continue
		}
		failure = failed
		wait := max(rand.N(longestBackOff(try)), failed.RetryAfter) // full jitter
		if !again(failed) || g.c.o.Now().Add(wait).After(g.end) || !g.c.hasTime(ctx, wait) {
			return nil, failure, nil
		}
		if g.f.OnRetry != nil {
			g.f.OnRetry(failed)
		}
		if err := retry.Sleep(ctx, wait); err != nil {
			return nil, nil, err
		}
	}
}

// again reports whether a GET that failed so is worth another try.
func again(e *understudy.UpstreamError) bool {
	switch e.Why {
	case understudy.FailUnreachable, understudy.FailLimited, understudy.FailServer:
		return true
	case understudy.FailUnusable:
		return errors.Is(e.Err, body.ErrCut)
	}
	return false
}

func longestBackOff(try int) time.Duration { return retry.Backoff(backOffMin, backOffMax, try) }

// hasTime reports whether ctx still lasts after d.
func (c *Client) hasTime(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return !ok || deadline.Sub(c.o.Now()) > d
}

// enter passes breaker and budget. On success a slot is held.
func (g *attempt) enter(ctx context.Context) (probe bool, refused *understudy.UpstreamError, err error) {
	if _, err := g.c.o.Source.Spec.BuildURL(g.f.Target.Key, g.c.o.Base); err != nil {
		return false, nil, err
	}
	for {
		probe, refused, err = g.pass(ctx)
		if err != nil || refused != nil {
			return false, refused, err
		}
		claim := g.claim()
		g.reason, err = g.c.budget.Take(ctx, claim)
		if err != nil {
			if probe {
				g.c.breaker.ProbeUnused()
			}
			if refused := throttle.Refusal(err); refused != nil {
				return false, refused, nil
			}
			return false, nil, err
		}
		// The breaker may have closed while the fetch was in the queue.
		if g.c.breaker.StillOpen(g.key, claim.Of, probe) {
			return probe, nil, nil
		}
		if probe {
			g.c.breaker.ProbeUnused()
		}
		claim.Reason = g.reason
		g.c.budget.Refund(claim)
	}
}

// claim is what the fetch wants of the budget.
func (g *attempt) claim() throttle.Claim {
	return throttle.Claim{Reason: g.reason, Flow: g.f.Flow, Of: g.limit(), Queue: g.f.MaxQueueWait, By: g.f.Deadline, Promote: g.f.Promote}
}

// limit is which of upstream's limits the fetch counts for.
func (g *attempt) limit() string { return g.c.resources.of(placeOf(g.f.Target)) }

// purpose is whom the request is for.
func (g *attempt) purpose() purpose {
	return purpose{reason: g.reason, flow: g.f.Flow, target: g.f.Target}
}

// pass asks the breaker until it admits the fetch, or for as long as the fetch may
// wait.
func (g *attempt) pass(ctx context.Context) (probe bool, refused *understudy.UpstreamError, err error) {
	for {
		if err := ctx.Err(); err != nil {
			return false, nil, err
		}
		g.promoted()
		waiting := g.reason == request.ReasonWaiting
		v := g.c.breaker.Admit(g.key, g.limit(), waiting)
		if v.Err == nil {
			return v.Probe, nil, nil
		}
		if !waiting || g.f.CanWaitForProbe == nil || !g.f.CanWaitForProbe() {
			return false, v.Err, nil
		}
		left, worth := g.patience(ctx, v.Until)
		if !worth {
			return false, v.Err, nil
		}
		if g.f.OnRetry != nil {
			g.f.OnRetry(v.Err)
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-v.Changed:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// patience is how long to wait at the breaker, until it opens or the probe under way
// ends (until is zero). worth is false when a try could not begin in time: an SDK gives
// up after ten seconds and would never learn the reason.
func (g *attempt) patience(ctx context.Context, until time.Time) (left time.Duration, worth bool) {
	now := g.c.o.Now()
	most := g.c.o.Total
	if g.f.RetryWindow > 0 {
		most = g.end.Sub(now)
	}
	if until.IsZero() {
		return most, most > 0
	}
	left = until.Sub(now)
	return left, (g.f.RetryWindow == 0 || left <= most) && g.c.hasTime(ctx, left)
}

// promoted notes whether a reader waits by now.
func (g *attempt) promoted() {
	if g.f.Promote == nil {
		return
	}
	select {
	case <-g.f.Promote:
		g.reason = request.ReasonWaiting
	default:
	}
}

// try sends the request once. In every case it gives the slot back and tells the
// breaker the result. Page and failure are both nil after a 304 about another page: the next
// try is unconditional.
func (g *attempt) try(ctx context.Context, probe bool) (*understudy.Page, *understudy.UpstreamError, error) {
	c := g.c
	release := sync.OnceFunc(c.budget.Release)
	defer release()
	// The goroutine that swaps it first tells the breaker how a probe went.
	var decided atomic.Bool
	probing := probe
	park := func() { // upstream has answered: other requests may go, and the probe is over
		release()
		if probing && !decided.Swap(true) {
			c.breaker.Succeeded(g.key, true)
		}
	}
	told := false
	defer func() {
		if probe && !told {
			c.breaker.ProbeAbandoned()
		}
	}()
	if g.sent {
		c.counts.Retried(g.reason)
	}
	g.sent = true
	g.tries++
	began, limits := c.o.Now(), g.limits(probe)
	method, uri, content, contentType := g.f.Target.UpstreamRequest()
	a, failed, err := g.round(ctx, httpRequest{
		method: method, uri: uri, body: content, contentType: contentType, header: g.condition(),
		weigh: g.f.Reserve, keeps: g.f.BodyInUse, park: park, like: likeOf(g.f.Target), limits: limits, purpose: g.purpose(),
	})
	probe = probe && !decided.Swap(true)
	if err != nil {
		return nil, nil, err
	}
	var page *understudy.Page
	switch {
	case failed != nil:
	case a.status == http.StatusNotModified && g.f.Stored != nil && !header.MatchTag(g.f.Stored.HeaderField("Etag"), a.header.Get("Etag")):
		g.f.Stored = nil
	case a.status == http.StatusNotModified && g.f.Stored != nil:
		page = c.pages.confirmed(g.f.Stored, a)
	default:
		page, failed = c.pages.judge(g.f.Target, a)
	}
	if ctx.Err() != nil && failed != nil {
		return nil, nil, ctx.Err() // its reader left: no failure of upstream
	}
	told = true
	if a != nil && failed != nil && a.by.again(failed) {
		g.replaced = true
		c.counts.Failed(c.o.Now())
		if probe {
			c.breaker.ProbeUnused()
		}
		return nil, failed, nil
	}
	if failed != nil {
		c.counts.Failed(c.o.Now())
		if !throttle.IsSilence(failed.Err) || g.unheard(limits, began) {
			c.failed(g.key, failed, probe)
		}
		return nil, failed, nil
	}
	c.pace.answered(g.f.Target, g.reason, a)
	c.breaker.Succeeded(g.key, probe)
	return page, nil, nil
}

// condition has upstream send the page only if it is another one than what is held (RFC
// 9110, 13.1.2).
func (g *attempt) condition() http.Header {
	if g.f.Stored == nil {
		return nil
	}
	return http.Header{"If-None-Match": {g.f.Stored.HeaderField("Etag")}}
}

// failed counts a body that was too large and tells the breaker of a failed try.
func (c *Client) failed(key string, e *understudy.UpstreamError, probe bool) {
	if errors.Is(e.Err, body.ErrTooLarge) {
		c.counts.TooLarge()
	}
	c.breaker.Failed(key, e, probe)
}

// likeOf names targets whose answers are about as long, or is "".
func likeOf(t *spec.Target) string {
	if t.List == nil {
		return ""
	}
	return t.List.Path + " " + strconv.Itoa(t.PageSize)
}

// round sends one request and counts it. The error is the context's, or says that the
// request cannot be made.
func (c *Client) round(ctx context.Context, reason request.Reason, e httpRequest) (*answer, *understudy.UpstreamError, error) {
	e.purpose.reason = reason
	began, sort := c.o.Now(), sortOf(e.method, e.purpose.target)
	a, sent, err := c.send(ctx, e)
	var heavy *body.WeighError
	var failed *understudy.UpstreamError
	switch {
	case errors.As(err, &heavy):
		return nil, nil, heavy.Err
	case err == nil:
		c.counts.Answered(a.took)
		c.noteLimits(a, sort)
		return a, nil, nil
	}
	if sent { // no head came, or not before its reader left
		c.budget.Observe(throttle.Observation{Sort: sort, Began: began, Took: c.o.Now().Sub(began), Lost: true})
	}
	switch {
	case ctx.Err() != nil:
		return nil, nil, sentError(sent, ctx.Err())
	case errors.Is(err, understudy.ErrInvalid):
		return nil, nil, err
	case errors.As(err, &failed):
		return nil, failed, nil // there is no token
	case headTooLong(err):
		return nil, &understudy.UpstreamError{Why: understudy.FailUnusable, Err: err}, nil
	}
	return nil, &understudy.UpstreamError{Why: understudy.FailUnreachable, Err: sentError(sent, err)}, nil
}

// headTooLong reports whether upstream answered with more header than is read: to ask again
// gets the same. The error of net/http has no name.
func headTooLong(err error) bool {
	return strings.Contains(err.Error(), "response headers exceeded") || strings.Contains(err.Error(), "response header list larger")
}

// maybeSent marks an error of a request that may have reached upstream.
type maybeSent struct{ error }

func (e maybeSent) Unwrap() error { return e.error }

func sentError(sent bool, err error) error {
	if sent {
		return maybeSent{err}
	}
	return err
}
