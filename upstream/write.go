// Write: a request that changes something upstream goes out once.

package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy"
	"understudy/kit/retry"
	"understudy/request"
	"understudy/spec"
)

// writeQueue is how long a write may wait for budget. SDKs give up at ten seconds, and
// a write that goes out after that is no longer expected.
const writeQueue = 8 * time.Second

// Write passes a write on, once, and returns whatever upstream answered: a page without
// a key, with the record it shows when its body is one, secrets emptied. It waits in
// the queue of readers. It is tried again, once, only where its answer was lost and it has
// an Idempotency-Key, so that upstream does it once, or only reads.
//
// When the request may have reached upstream and no whole answer came (none,
// one that was cut, a redirect), the error is ErrUnknownOutcome; the write may
// or may not have happened. When nothing was sent, or our credential was
// refused, it is an *understudy.UpstreamError, the context's, or ErrClosed:
// nothing happened.
func (c *Client) Write(ctx context.Context, w request.Write) (*understudy.Page, error) {
	ctx, done := c.life.until(ctx)
	defer done()
	f := request.Fetch{Target: w.Target, Reason: request.ReasonWaiting, Flow: w.Flow, MaxQueueWait: writeQueue}
	f.Deadline, _ = ctx.Deadline()
	g := &attempt{c: c, f: &f, reason: request.ReasonWaiting, key: w.Target.Key.URI}
	a, failed, err := g.write(ctx, w)
	unknown := func(err error) error {
		if w.ReadOnly {
			return fmt.Errorf("upstream: %s: %w", understudy.Clip(g.key), &understudy.UpstreamError{Why: understudy.FailUnusable, Err: err})
		}
		return fmt.Errorf("upstream: %s %s: %w: %w", understudy.Clip(w.Method), understudy.Clip(g.key), understudy.ErrUnknownOutcome, err)
	}
	var maybe maybeSent
	switch {
	case err != nil && errors.As(err, &maybe):
		return nil, unknown(endOf(ctx, maybe.error))
	case err != nil:
		return nil, fmt.Errorf("upstream: %s %s: %w", understudy.Clip(w.Method), understudy.Clip(g.key), endOf(ctx, err))
	case a == nil && errors.As(failed.Err, &maybe):
		return nil, unknown(maybe.error)
	case a == nil:
		return nil, c.resources.outward(failed)
	case failed != nil && failed.Why == understudy.FailCredential:
		return nil, failed
	case a.broken != nil:
		return nil, unknown(fmt.Errorf("status %d, but %w", a.status, a.broken))
	case a.status < 200 || a.status >= 300 && a.status < 400:
		return nil, unknown(fmt.Errorf("status %d: %w", a.status, redirect(a.header)))
	}
	page, err := c.pages.written(w.Target, a)
	if err != nil {
		return nil, unknown(fmt.Errorf("status %d, but %w", a.status, err))
	}
	return page, nil
}

// idempotencyKey is the field with which the same write is done once, however often it is
// sent (IETF draft httpapi-idempotency-key-header).
const idempotencyKey = "Idempotency-Key"

// lost reports whether a write may have reached upstream and no whole answer came.
func lost(ctx context.Context, a *answer, failed *understudy.UpstreamError, err error) bool {
	var maybe maybeSent
	switch {
	case ctx.Err() != nil || err != nil:
		return false
	case a != nil:
		return a.broken != nil && a.status < 300
	}
	return failed != nil && errors.As(failed.Err, &maybe)
}

// write sends a write, once more when what it was signed with was refused and there is
// another: upstream has done nothing then.
func (g *attempt) write(ctx context.Context, w request.Write) (*answer, *understudy.UpstreamError, error) {
	c := g.c
	for {
		probe, refused, err := g.enter(ctx)
		if err != nil || refused != nil {
			return nil, refused, err
		}
		e := httpRequest{method: w.Method, uri: g.key, body: w.Body, contentType: w.ContentType, header: w.Header,
			purpose: g.purpose()}
		a, failed, err := c.round(ctx, request.ReasonWaiting, e)
		if (w.ReadOnly || w.Header.Get(idempotencyKey) != "") && lost(ctx, a, failed, err) && retry.Sleep(ctx, backOffMin) == nil {
			c.counts.Retried(request.ReasonWaiting)
			a, failed, err = c.round(ctx, request.ReasonWaiting, e)
		}
		c.budget.Release()
		if err == nil && failed == nil && a.broken == nil {
			failed = decisionOf(c.o.Source.Spec, a)
		}
		if a == nil || failed == nil || !a.by.again(failed) {
			c.note(g.key, a, failed, probe)
			return a, failed, err
		}
		c.counts.Failed(c.o.Now())
		if probe {
			c.breaker.ProbeUnused()
		}
	}
}

// decisionOf is what an answer to a write says of upstream's health: nil when upstream
// is well.
func decisionOf(s *spec.Spec, a *answer) *understudy.UpstreamError {
	if e := decision(s, a); e.Why != understudy.FailNone {
		return &e
	}
	return nil
}

// note tells breaker and counters how a write went. A write without an answer and
// without a failure of upstream says nothing about its health.
func (c *Client) note(key string, a *answer, failed *understudy.UpstreamError, probe bool) {
	switch {
	case failed != nil:
		c.counts.Failed(c.o.Now())
		c.failed(key, failed, probe)
	case a != nil && a.broken == nil:
		c.breaker.Succeeded(key, probe)
	case probe:
		c.breaker.ProbeAbandoned()
	}
}
