// Feed: its settings, and how it is joined to the application.

package app

import (
	"context"
	"net/http"
	"strings"
	"time"

	"understudy"
	"understudy/internal/feed"
	"understudy/internal/jobs"
	"understudy/request"
)

// feeds joins the feed to the application.
type feeds struct{ *App }

// open makes the feed. Its streams end before the viewer's port waits for
// its last answers.
func (h feeds) open(ctx context.Context, p policy) error {
	c := h.cfg.Feed
	f, err := feed.New(ctx, feed.Options{
		Sources: h.sources, Store: h.db, Policy: p.feed(), Token: h.opts.Dir.Token, Enqueue: h.jobs.Enqueue, Seen: h.mirror.Reading,
		Audit: audits(h).auditor(),
		Now:   time.Now, Logger: h.log,
		Limits: feed.Limits{
			Subscribers: c.Subscribers, Each: c.SubscribersEach, Buffer: c.Buffer, Heartbeat: c.Heartbeat.Std(), Stall: c.Stall.Std(),
			Wait: c.Wait.Std(), Look: c.Look.Std(), Pause: c.Pause.Std(),
		},
	})
	if err != nil {
		return err
	}
	h.feed = f
	h.saved.Subscribe(func(_ context.Context, l request.PageSaved) error { f.Ring(l); return nil })
	h.servers[0].OnShutdown(f.End)
	return nil
}

// control puts the feed's routes beside the others under /-/.
func (h feeds) control(mux *http.ServeMux) {
	for _, route := range feed.Routes() {
		if _, path, _ := strings.Cut(route, " "); path != "" {
			mux.Handle(path, h.feed.Handler())
		}
	}
}

// kind is the job that sends a webhook what it has not had. It is tried
// until the feed pauses the webhook.
func (h feeds) kind() jobs.Kind {
	return jobs.Kind{
		Name: feed.DeliverKind, Lane: understudy.Steady, Concurrency: 4, Attempts: 1000, Backoff: 5 * time.Second,
		Run: func(ctx context.Context, r *jobs.Run) error { return h.feed.Deliver(ctx, r) },
	}
}
