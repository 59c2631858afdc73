// Feed and watches: their settings, and how they are joined to the application.

package app

import (
	"context"
	"net/http"
	"strings"
	"time"

	"understudy"
	"understudy/internal/config"
	"understudy/internal/feed"
	"understudy/internal/jobs"
	"understudy/internal/search"
	"understudy/internal/watch"
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

// watchers joins the watches to the application.
type watchers struct{ *App }

// open reads the watches.
func (h watchers) open(ctx context.Context) (err error) {
	h.watches, err = watch.Open(ctx, watch.Options{Sources: h.sources, Records: h.db, KV: h.db, Key: h.searching.key,
		Enqueue: h.jobs.Enqueue, Audit: audits(h).auditor(), Now: time.Now, Logger: h.log})
	if err != nil {
		return err
	}
	h.saved.Subscribe(func(_ context.Context, l request.PageSaved) error {
		if len(l.Changes) > 0 {
			h.watches.Ring()
		}
		return nil
	})
	return nil
}

// policy is what watches go by.
func (h watchers) policy(cfg *config.Settings, p policy, s *search.Searcher) watch.Policy {
	return watch.Policy{Search: s, Owners: p.book, Rules: cfg.WatchRules(), Mailer: p.mailer, URL: people(h).publicViewer(cfg)}
}

// kind is the job that tells. It is tried until the watch is stopped.
func (h watchers) kind() jobs.Kind {
	return jobs.Kind{
		Name: watch.Kind, Lane: understudy.Steady, Concurrency: 4, Attempts: 1000, Backoff: 5 * time.Second,
		Run: func(ctx context.Context, r *jobs.Run) error { return h.watches.Tell(ctx, r) },
	}
}

// known is told of every request whose caller was found: what an owner may do is known
// from then.
func (h watchers) known(r *http.Request, c understudy.Caller) {
	h.names.Note(c)
	h.profiles.Known(r, c)
	h.watches.Seen(c)
}
