// Feed: its settings, and how it is joined to the house.

package main

import (
	"context"
	"net/http"
	"strings"
	"time"

	"understudy"
	"understudy/internal/diagnostics"
	"understudy/internal/feed"
	"understudy/internal/jobs"
)

func (p policy) feed() feed.Policy {
	return feed.Policy{Gate: p.gate, Callers: p.book, Hooks: p.hooks}
}

// openFeed makes the feed. Its streams end before the viewer's port waits for
// its last answers.
func (h *house) openFeed(ctx context.Context, p policy) error {
	c := h.cfg.Feed
	f, err := feed.New(ctx, feed.Options{
		Sources: h.sources, Store: h.db, Policy: p.feed(), Token: h.plan.dir.token, Enqueue: h.jobs.Enqueue, Seen: h.mirror.Reading, Now: time.Now, Logger: h.log,
		Limits: feed.Limits{
			Subscribers: c.Subscribers, Each: c.SubscribersEach, Buffer: c.Buffer, Heartbeat: c.Heartbeat.Std(), Stall: c.Stall.Std(),
			Wait: c.Wait.Std(), Look: c.Look.Std(), Pause: c.Pause.Std(),
		},
	})
	if err != nil {
		return err
	}
	h.feed = f
	h.landed.Subscribe(func(_ context.Context, l understudy.Landed) error { f.Ring(l); return nil })
	h.faces[0].server.RegisterOnShutdown(f.End)
	return nil
}

// controlFeed puts the feed's routes beside the others under /-/.
func (h *house) controlFeed(mux *http.ServeMux) {
	for _, route := range feed.Routes() {
		if _, path, _ := strings.Cut(route, " "); path != "" {
			mux.Handle(path, h.feed.Handler())
		}
	}
}

// deliverKind is the job that sends a webhook what it has not had. It is tried
// until the feed pauses the webhook.
func (h *house) deliverKind() jobs.Kind {
	return jobs.Kind{
		Name: feed.DeliverKind, Lane: understudy.Steady, Concurrency: 4, Attempts: 1000, Backoff: 5 * time.Second,
		Run: func(ctx context.Context, r *jobs.Run) error { return h.feed.Deliver(ctx, r) },
	}
}

func (h *house) feedLoad() diagnostics.Limit {
	s := h.feed.Stats()
	return diagnostics.Limit{Limit: int64(s.Limit), Now: int64(s.Subscribers), Refused: s.Refused, Dropped: s.Stalled}
}

func (h *house) webhookStats() (all []diagnostics.Webhook) {
	for _, s := range h.feed.Webhooks() {
		all = append(all, diagnostics.Webhook(s))
	}
	return all
}
