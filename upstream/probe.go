// This file sends requests to a source that is down, to find out whether it works again.

package upstream

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"understudy/request"
	"understudy/spec"
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
