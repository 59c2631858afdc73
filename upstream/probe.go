// This file sends requests to find out whether a source works, again or at all.

package upstream

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"understudy"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream/throttle"
)

// Run sends probes while the source is down or refuses the credential. The first probe is sent after 1 s, the next
// after 2, 4 … 60 s, each up to a fifth earlier. If a reader's fetch is waiting when a probe is due, the fetch is sent
// as the probe. Run returns nil when ctx ends. There may be at most one Run for each client.
func (c *Client) Run(ctx context.Context) error {
	ctx, done := c.life.withLifetime(ctx)
	defer done()
	for ctx.Err() == nil {
		t, _ := chooseProbeTarget(c.o.Source)
		limit := c.resources.limitFor(placeOf(t))
		if c.breaker.TakeProbe(limit) {
			c.probe(ctx)
			continue
		}
		at, changed := c.breaker.NextProbe(limit)
		var timer *time.Timer
		var tick <-chan time.Time
		if !at.IsZero() {
			timer = time.NewTimer(max(time.Millisecond, at.Sub(c.o.Now())))
			tick = timer.C
		}
		select {
		case <-tick:
		case <-changed:
		case <-ctx.Done():
		}
		if timer != nil {
			timer.Stop()
		}
	}
	return nil
}

// probe requests the cheapest list. It counts as a request of ReasonCheck, but waits in the queue of readers, because
// readers wait for its result.
func (c *Client) probe(ctx context.Context) {
	t, err := chooseProbeTarget(c.o.Source)
	if err != nil {
		c.breaker.RecordAbandonedProbe()
		return
	}
	g := &attempt{c: c, f: &request.Fetch{Target: t}, reason: request.ReasonWaiting, key: t.Key.URI}
	if _, err := c.budget.Take(ctx, g.claim()); err != nil {
		c.breaker.RecordAbandonedProbe()
		return
	}
	g.reason = request.ReasonCheck
	// The result is only for the breaker, so the page is discarded.
	_, _, _ = g.try(ctx, true)
}

// Check requests the cheapest list once, without another try, for a person who looks for a fault. The status is 0 if there was no
// answer. failed says why the answer cannot be used. left is nil if the upstream does not say how many requests it still accepts.
func (c *Client) Check(ctx context.Context) (status int, h http.Header, left *throttle.Allowance,
	failed *understudy.UpstreamError, err error) {
	t, err := chooseProbeTarget(c.o.Source)
	if err != nil {
		return 0, nil, nil, nil, err
	}
	g := &attempt{c: c, f: &request.Fetch{Target: t}, reason: request.ReasonCheck, key: t.Key.URI}
	if _, err := c.budget.Take(ctx, g.claim()); err != nil {
		return 0, nil, nil, nil, err
	}
	defer c.budget.Release()
	method, uri, content, contentType := t.UpstreamRequest()
	a, failed, err := c.sendOnce(ctx, g.reason, httpRequest{method: method, uri: uri, body: content, contentType: contentType,
		purpose: g.purpose()})
	if a == nil {
		return 0, nil, nil, failed, err
	}
	if a.hasAllowance {
		left = &a.allowance
	}
	_, failed = c.pages.judge(t, a)
	return a.status, c.credential.stripHeader(a.header), left, failed, nil
}

// chooseProbeTarget returns the first list of the spec whose path can be filled, with a page size of 1 if the
// list has page sizes.
func chooseProbeTarget(s *spec.Source) (*spec.Target, error) {
	for _, k := range s.Spec.Kinds {
		for _, l := range k.Lists {
			if path, ok := l.Template().FillEscaped(s.PathVar); ok && !l.HasRequiredFilter() {
				query := ""
				if p := s.Spec.PagingOf(l); p.Size != "" {
					query = url.QueryEscape(p.Size) + "=" + strconv.Itoa(1)
				}
				return s.Spec.Resolve(s.Name, path, query)
			}
		}
	}
	return s.Spec.Resolve(s.Name, "/", "")
}
