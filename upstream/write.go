// This file sends requests that change something at the upstream.

package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy"
	"understudy/kit/retry"
	"understudy/request"
)

// writeQueue is the maximum time that a write may wait for the budget. SDKs give up after ten seconds, and nobody
// expects a write that is sent after that.
const writeQueue = 8 * time.Second

// Write sends a write once and returns the upstream's answer: a page without a key, with secrets emptied. If the body
// is a record, the page contains it. Write waits in the queue of readers. It retries once only if the answer was lost
// and a second request does no harm: the write has an Idempotency-Key, or only reads.
//
// If the upstream may have received the request and there was no complete answer (none, an incomplete one, a redirect),
// the error is ErrUnknownOutcome: the write may or may not have happened. If nothing was sent, or the credential was
// refused, nothing has happened. Then the error is an *understudy.UpstreamError, ErrClosed or that of the context.
func (c *Client) Write(ctx context.Context, w request.Write) (*understudy.Page, error) {
	ctx, done := c.life.withLifetime(ctx)
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
		return nil, unknown(wrapEnd(ctx, maybe.error))
	case err != nil:
		return nil, fmt.Errorf("upstream: %s %s: %w", understudy.Clip(w.Method), understudy.Clip(g.key), wrapEnd(ctx, err))
	case a == nil && errors.As(failed.Err, &maybe):
		return nil, unknown(maybe.error)
	case a == nil:
		return nil, c.resources.publicFailure(failed)
	case failed != nil && failed.Why == understudy.FailCredential:
		return nil, failed
	case a.bodyErr != nil:
		return nil, unknown(fmt.Errorf("status %d, but %w", a.status, a.bodyErr))
	case a.status < 200 || a.status >= 300 && a.status < 400:
		return nil, unknown(fmt.Errorf("status %d: %w", a.status, describeRedirect(a.header)))
	}
	page, err := c.pages.makeWritePage(w.Target, a)
	if err != nil {
		return nil, unknown(fmt.Errorf("status %d, but %w", a.status, err))
	}
	return page, nil
}

// idempotencyKey is the header field that makes the upstream perform the same write only once, however often it is sent
// (IETF draft httpapi-idempotency-key-header).
const idempotencyKey = "Idempotency-Key"

// isAnswerLost reports whether the upstream may have received a write to which there was no complete answer.
func isAnswerLost(ctx context.Context, a *answer, failed *understudy.UpstreamError, err error) bool {
	switch {
	case ctx.Err() != nil || err != nil:
		return false
	case a != nil:
		return a.bodyErr != nil && a.status < 300
	}
	return failed != nil && errors.As(failed.Err, new(maybeSent))
}

// write sends a write. If its credential was refused, the upstream has done nothing. Then write sends it once more with
// another credential, if there is one.
func (g *attempt) write(ctx context.Context, w request.Write) (*answer, *understudy.UpstreamError, error) {
	c := g.c
	for {
		probe, refused, err := g.enter(ctx)
		if err != nil || refused != nil {
			return nil, refused, err
		}
		e := httpRequest{method: w.Method, uri: g.key, body: w.Body, contentType: w.ContentType, header: w.Header,
			purpose: g.purpose()}
		a, failed, err := c.sendOnce(ctx, request.ReasonWaiting, e)
		if (w.ReadOnly || w.Header.Get(idempotencyKey) != "") && isAnswerLost(ctx, a, failed, err) && retry.Wait(ctx, minBackOff) == nil {
			c.counts.AddRetry(request.ReasonWaiting)
			a, failed, err = c.sendOnce(ctx, request.ReasonWaiting, e)
		}
		c.budget.Release()
		if err == nil && failed == nil && a.bodyErr == nil {
			if e := answerFailure(c.o.Source.Spec, a); e.Why != understudy.FailNone {
				failed = &e
			}
		}
		if a == nil || failed == nil || !a.signature.canRetry(failed) {
			c.note(g.key, a, failed, probe)
			return a, failed, err
		}
		c.counts.AddFailure(c.o.Now())
		if probe {
			c.breaker.RecordUnusedProbe()
		}
	}
}

// note reports the result of a write to the breaker and the counters. A write without an answer and without a failure
// of the upstream says nothing about the upstream's health.
func (c *Client) note(key string, a *answer, failed *understudy.UpstreamError, probe bool) {
	switch {
	case failed != nil:
		c.counts.AddFailure(c.o.Now())
		c.reportFailure(key, failed, probe)
	case a != nil && a.bodyErr == nil:
		c.breaker.RecordSuccess(key, probe)
	case probe:
		c.breaker.RecordAbandonedProbe()
	}
}
