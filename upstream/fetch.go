// This file sends GET requests within the limits of the breaker and the budget, and retries them if that is safe.

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
	minBackOff = 200 * time.Millisecond
	maxBackOff = 5 * time.Second
)

// Fetch requests a target from the upstream and returns the page of the answer. An answer about the request (400, 404,
// 410 …) is a page too. The error is an *understudy.UpstreamError, that of the context or of f.Reserve, or ErrClosed.
// Page and error are never both nil. If ctx reaches its deadline before the upstream answers, the error is an
// UpstreamError.
//
// An attempt that failed without an answer, with 429 or with 5xx is retried. A retry begins within f.RetryWindow of the
// start, if ctx leaves time for it. The wait before a retry is a random part of a doubling back-off, or the time in
// Retry-After. Each attempt may take as long as answers of this source usually take (latencies.limits).
func (c *Client) Fetch(ctx context.Context, f request.Fetch) (*understudy.Page, error) {
	ctx, done := c.life.withLifetime(ctx)
	defer done()
	g := &attempt{c: c, f: &f, reason: f.Reason, key: f.Target.Key.URI, retryEnd: c.o.Now().Add(f.RetryWindow)}
	page, failure, err := g.run(ctx)
	if g.sent && errors.Is(err, context.DeadlineExceeded) {
		return nil, &understudy.UpstreamError{Why: understudy.FailUnreachable, Err: fmt.Errorf("no answer in time: %w", err)}
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("upstream: fetch %s: %w", understudy.Clip(f.Target.Key.String()), wrapEnd(ctx, err))
	case failure != nil:
		if g.sent {
			c.breaker.Pause(g.key, failure)
		}
		return nil, c.resources.publicFailure(failure)
	}
	page.Generation = f.Generation
	return page, nil
}

// wrapEnd returns ErrClosed if Close ended ctx, else err.
func wrapEnd(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), understudy.ErrClosed) {
		return understudy.ErrClosed
	}
	return err
}

// attempt is one running fetch, with all its tries.
type attempt struct {
	c        *Client
	f        *request.Fetch
	reason   request.Reason // becomes ReasonWaiting if a reader begins to wait
	key      string
	sent     bool
	retryEnd time.Time // the time after which no further try may begin
	// replaced means that the last try was refused, but that its credential was replaced meanwhile or another secret is
	// free. Such a refusal does not count as a failed try.
	replaced       bool
	tries          int  // the number of tries that were sent
	silentTries    int  // the number of tries that received no data
	connectionLost bool // whether the upstream answered other requests during the last try without data
}

// run sends the request. It retries the request until it succeeds or may not be retried.
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
		wait := max(rand.N(maxRetryDelay(try)), failed.RetryAfter) // a random part of the maximum delay (full jitter)
		if !isRetryable(failed) || g.c.o.Now().Add(wait).After(g.retryEnd) || !g.c.hasTime(ctx, wait) {
			return nil, failure, nil
		}
		if g.f.OnRetry != nil {
			g.f.OnRetry(failed)
		}
		if err := retry.Wait(ctx, wait); err != nil {
			return nil, nil, err
		}
	}
}

// isRetryable reports whether a GET request that failed with this error may succeed in another try.
func isRetryable(e *understudy.UpstreamError) bool {
	switch e.Why {
	case understudy.FailUnreachable, understudy.FailLimited, understudy.FailServer:
		return true
	case understudy.FailUnusable:
		return errors.Is(e.Err, body.ErrCut)
	}
	return false
}

// maxRetryDelay returns the longest wait before the next try.
func maxRetryDelay(try int) time.Duration { return retry.Backoff(minBackOff, maxBackOff, try) }

// hasTime reports whether ctx lasts longer than d.
func (c *Client) hasTime(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return !ok || deadline.Sub(c.o.Now()) > d
}

// enter waits for the breaker and the budget. If it returns no error, the caller has a slot.
func (g *attempt) enter(ctx context.Context) (probe bool, refused *understudy.UpstreamError, err error) {
	if _, err := g.c.o.Source.Spec.BuildURL(g.f.Target.Key, g.c.o.Base); err != nil {
		return false, nil, err
	}
	cause := request.TraceOf(ctx)
	defer cause.End(cause.Begin("budget"), 0)
	for {
		probe, refused, err = g.passBreaker(ctx)
		if err != nil || refused != nil {
			return false, refused, err
		}
		claim := g.claim()
		g.reason, err = g.c.budget.Take(ctx, claim)
		if err != nil {
			if probe {
				g.c.breaker.RecordUnusedProbe()
			}
			if refused := throttle.Refusal(err); refused != nil {
				return false, refused, nil
			}
			return false, nil, err
		}
		// The breaker may have closed while the fetch was in the queue.
		if g.c.breaker.CanSend(g.key, claim.LimitName, probe) {
			return probe, nil, nil
		}
		if probe {
			g.c.breaker.RecordUnusedProbe()
		}
		claim.Reason = g.reason
		g.c.budget.Refund(claim)
	}
}

// claim returns what the fetch claims from the budget.
func (g *attempt) claim() throttle.Claim {
	return throttle.Claim{Reason: g.reason, Flow: g.f.Flow, LimitName: g.limit(), MaxWait: g.f.MaxQueueWait,
		LeavesAt: g.f.Deadline, Promote: g.f.Promote}
}

// limit returns the upstream limit for which the fetch counts.
func (g *attempt) limit() string { return g.c.resources.limitFor(placeOf(g.f.Target)) }

// purpose returns why and for whom the request is sent.
func (g *attempt) purpose() purpose {
	return purpose{reason: g.reason, flow: g.f.Flow, target: g.f.Target}
}

// passBreaker waits until the breaker admits the fetch, or as long as the fetch may wait.
func (g *attempt) passBreaker(ctx context.Context) (probe bool, refused *understudy.UpstreamError, err error) {
	for {
		if err := ctx.Err(); err != nil {
			return false, nil, err
		}
		g.updateReason()
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
		select {
		case <-time.After(left):
		case <-v.Changed:
		case <-ctx.Done():
		}
	}
}

// patience returns how long to wait at the breaker until it admits a request. A zero until means that a probe is
// running. worth is false if a try could not begin in time: an SDK gives up after ten seconds and would never receive
// the reason.
func (g *attempt) patience(ctx context.Context, until time.Time) (left time.Duration, worth bool) {
	now := g.c.o.Now()
	most := g.c.o.Total
	if g.f.RetryWindow > 0 {
		most = g.retryEnd.Sub(now)
	}
	if until.IsZero() {
		return most, most > 0
	}
	left = until.Sub(now)
	return left, (g.f.RetryWindow == 0 || left <= most) && g.c.hasTime(ctx, left)
}

// updateReason changes the reason to Waiting if a reader waits now.
func (g *attempt) updateReason() {
	if g.f.Promote == nil {
		return
	}
	select {
	case <-g.f.Promote:
		g.reason = request.ReasonWaiting
	default:
	}
}

// try sends the request once. It always gives the slot back and reports the result to the breaker. Page and failure are
// both nil after a 304 for another page. Then the next try is unconditional.
func (g *attempt) try(ctx context.Context, probe bool) (*understudy.Page, *understudy.UpstreamError, error) {
	c := g.c
	release := sync.OnceFunc(c.budget.Release)
	defer release()
	// The goroutine that sets decided first reports the result of a probe to the breaker.
	var decided atomic.Bool
	probing := probe
	park := func() { // called when the upstream has answered, so that other requests may be sent and a probe is over
		release()
		if probing && !decided.Swap(true) {
			c.breaker.RecordSuccess(g.key, true)
		}
	}
	told := false
	defer func() {
		if probe && !told {
			c.breaker.RecordAbandonedProbe()
		}
	}()
	if g.sent {
		c.counts.AddRetry(g.reason)
	}
	g.sent = true
	g.tries++
	began, limits := c.o.Now(), g.limits(probe)
	method, uri, content, contentType := g.f.Target.UpstreamRequest()
	a, failed, err := g.sendHedged(ctx, httpRequest{
		method: method, uri: uri, body: content, contentType: contentType, header: g.condition(),
		reserve: g.f.Reserve, bodyInUse: g.f.BodyInUse, park: park, sizeGroup: sizeGroup(g.f.Target), limits: limits, purpose: g.purpose(),
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
		page = c.pages.confirmPage(g.f.Stored, a)
	default:
		page, failed = c.pages.judge(g.f.Target, a)
	}
	if ctx.Err() != nil && failed != nil {
		return nil, nil, ctx.Err() // the reader left, which is not a failure of the upstream
	}
	told = true
	if a != nil && failed != nil && a.signature.canRetry(failed) {
		g.replaced = true
		c.counts.AddFailure(c.o.Now())
		if probe {
			c.breaker.RecordUnusedProbe()
		}
		return nil, failed, nil
	}
	if failed != nil {
		c.counts.AddFailure(c.o.Now())
		if !throttle.IsSilence(failed.Err) || g.addSilentTry(limits, began) {
			c.reportFailure(g.key, failed, probe)
		}
		return nil, failed, nil
	}
	c.pace.addAnswer(g.f.Target, g.reason, a)
	c.breaker.RecordSuccess(g.key, probe)
	return page, nil, nil
}

// condition returns a header that makes the upstream send the page only if it differs from the stored page (RFC 9110,
// 13.1.2).
func (g *attempt) condition() http.Header {
	if g.f.Stored == nil {
		return nil
	}
	return http.Header{"If-None-Match": {g.f.Stored.HeaderField("Etag")}}
}

// reportFailure counts a body that was too large and reports a failed try to the breaker.
func (c *Client) reportFailure(key string, e *understudy.UpstreamError, probe bool) {
	if errors.Is(e.Err, body.ErrTooLarge) {
		c.counts.AddTooLarge()
	}
	c.breaker.RecordFailure(key, e, probe)
}

// sizeGroup returns a common name for targets whose answers have about the same length, or "".
func sizeGroup(t *spec.Target) string {
	if t.List == nil {
		return ""
	}
	return t.List.Path + " " + strconv.Itoa(t.PageSize)
}

// sendOnce sends one request and counts it. The error is that of the context, or says why the request cannot be sent.
func (c *Client) sendOnce(ctx context.Context, reason request.Reason, e httpRequest) (*answer, *understudy.UpstreamError, error) {
	e.purpose.reason = reason
	began, sort := c.o.Now(), sortOf(e.method, e.purpose.target)
	a, sent, err := c.send(ctx, e)
	var heavy *body.WeighError
	var failed *understudy.UpstreamError
	switch {
	case errors.As(err, &heavy):
		return nil, nil, heavy.Err
	case err == nil:
		c.counts.AddAnswer(a.took)
		c.noteLimits(a, sort)
		return a, nil, nil
	}
	if sent { // no header arrived, or the reader left before it arrived
		c.budget.Observe(throttle.Observation{Sort: sort, Began: began, Took: c.o.Now().Sub(began), Lost: true})
	}
	switch {
	case ctx.Err() != nil:
		return nil, nil, markSent(sent, ctx.Err())
	case errors.Is(err, understudy.ErrInvalid):
		return nil, nil, err
	case errors.As(err, &failed):
		return nil, failed, nil // no token could be obtained
	case isHeaderTooLong(err):
		return nil, &understudy.UpstreamError{Why: understudy.FailUnusable, Err: err}, nil
	}
	return nil, &understudy.UpstreamError{Why: understudy.FailUnreachable, Err: markSent(sent, err)}, nil
}

// isHeaderTooLong reports whether the header of the answer was longer than the limit, so that a retry would fail too.
// net/http has no error value for that.
func isHeaderTooLong(err error) bool {
	return strings.Contains(err.Error(), "response headers exceeded") || strings.Contains(err.Error(), "response header list larger")
}

// maybeSent marks the error of a request that the upstream may have received.
type maybeSent struct{ error }

func (e maybeSent) Unwrap() error { return e.error }

// markSent marks an error if the request was sent.
func markSent(sent bool, err error) error {
	if sent {
		return maybeSent{err}
	}
	return err
}
