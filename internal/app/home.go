// Home: what people see of a source on the home page.

package app

import (
	"context"
	"sync/atomic"
	"time"

	"understudy/internal/viewer/page"
	"understudy/kit/onlinestat"
	"understudy/request"
)

// countTime bounds reading the counts for a page.
const countTime = time.Second

// viewerSnapshot is the same for one source, as people see it.
func (h figures) viewerSnapshot(ctx context.Context, source string) page.Snapshot {
	// The page that says a request took too long still tells what is held.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countTime)
	defer cancel()
	m, c, health := h.mirror.Stats(source), h.clients[source].Stats(), h.clients[source].Health()
	queue := h.clients[source].Queue()
	s := page.Snapshot{
		State: health.State, Why: health.Why, Since: health.Since, NextProbe: health.NextProbe,
		Kinds: map[string]page.Held{},
		Answers: page.Answers{
			Warm: m.Warm, Stale: m.Stale, Cold: m.Cold, Composed: m.Composed, Coalesced: m.Coalesced, Upstream: c.Requests,
			AtOnce: queue.AtOnce, AtOnceWhy: queue.Why,
		},
		Latencies: page.Latencies{Ours: h.recent[source].last(), Theirs: health.Recent},
		DropIn:    h.Address(source),
	}
	s.OurTimes, s.TheirTimes, s.Times = h.viewerTimes(source)
	lists := h.mirror.Scores(source)
	kinds, err := h.db.Kinds(ctx, source)
	if err != nil && !h.uncounted.Swap(true) {
		h.log.Error("home page: counts", "err", err)
	} else if err == nil {
		h.uncounted.Store(false)
	}
	for _, k := range kinds {
		held := page.Held{Records: k.Records, CaughtUp: m.CaughtUp[k.Kind], Lists: scoresOf(lists, k.Kind)}
		h.walkHeld(ctx, source, k.Kind, &held)
		s.Kinds[k.Kind] = held
	}
	for _, w := range h.feed.Webhooks() {
		if w.Source == source {
			s.Webhooks = append(s.Webhooks, w)
		}
	}
	return s
}

// walkHeld adds the same to what people see.
func (h figures) walkHeld(ctx context.Context, source, kind string, held *page.Held) {
	s, err := h.walker.State(ctx, source, kind)
	if err != nil || !s.Kept {
		return
	}
	held.Complete, held.Why, held.Running, held.Done, held.Total, held.Walk, held.ETA = s.Complete, s.Why, s.Running, s.Done, max(s.Total, 0),
		s.Walk, s.ETA
	if !s.CaughtUp.IsZero() {
		held.CaughtUp = s.CaughtUp
	}
}

// administration is what people who administer see and do beside the figures.
type administration struct{ *App }

// Spending is what a source was sent lately.
func (h administration) Spending(source string) []request.Spending {
	return h.clients[source].Spending(h.names.Of)
}

// Webhooks are the receivers of changes.
func (h administration) Webhooks() []request.Webhook { return h.feed.Webhooks() }

// Resume sets a webhook going again.
func (h administration) Resume(ctx context.Context, name string, after *int64) error {
	return h.feed.Resume(ctx, name, after)
}

// Pause stops a webhook.
func (h administration) Pause(ctx context.Context, name, by string) error {
	return h.feed.Pause(ctx, name, by)
}

// viewerTimes are our times, upstream's, and these by kind and reason.
func (h figures) viewerTimes(source string) (ours, theirs page.Times, each []page.Times) {
	list, all := h.clients[source].Times()
	for _, t := range list {
		out := viewerTime(t.Whole)
		out.Kind, out.Reason, out.Lost = t.Kind, t.Reason.String(), t.Lost
		each = append(each, out)
	}
	theirs = viewerTime(all.Whole)
	theirs.Lost = all.Lost
	return viewerTime(h.recent[source].stat.Stat().Summary()), theirs, each
}

func viewerTime(s onlinestat.Summary) page.Times {
	of := func(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
	return page.Times{Answers: s.Count, Mean: of(s.Mean), Deviation: of(s.Deviation), Min: of(s.Min), Max: of(s.Max), P50: of(s.P50),
		P99: of(s.P99)}
}

// recentCount is how many answer times are kept.
const recentCount = 120

// recent keeps the last answer times of one source without a lock: a time that
// is overwritten while it is read is one wrong dot in a picture.
type recent struct {
	n     atomic.Uint64
	times [recentCount]atomic.Int64
	stat  *onlinestat.Sharded // seconds
}

func newRecent() *recent { return &recent{stat: onlinestat.NewSharded()} }

// add keeps one more time.
func (r *recent) add(took time.Duration) {
	i := r.n.Add(1) - 1
	r.times[i%recentCount].Store(int64(took))
	r.stat.Add(took.Seconds())
}

// last are the kept times, oldest first.
func (r *recent) last() []time.Duration {
	n := r.n.Load()
	out := make([]time.Duration, 0, recentCount)
	for i := n - min(n, recentCount); i < n; i++ {
		out = append(out, time.Duration(r.times[i%recentCount].Load()))
	}
	return out
}
