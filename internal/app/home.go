// Home: what people see of a source on the home page.

package app

import (
	"context"
	"sync/atomic"
	"time"

	"understudy/internal/app/lastday"
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
		Kinds:     map[string]page.Held{},
		Day:       page.Day(h.day.Of(source)),
		Sending:   page.Sending{Upstream: c.Requests, AtOnce: queue.AtOnce, AtOnceWhy: queue.Why},
		Latencies: page.Latencies{Ours: h.recent[source].last(), Theirs: health.Recent},
		DropIn:    h.Address(source),
	}
	h.addTimes(source, &s.Latencies)
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

// countDay begins to keep what is answered in a day.
func (h figures) countDay(ctx context.Context) {
	var names []string
	for _, src := range h.sources {
		names = append(names, src.Name)
	}
	h.day = lastday.New(ctx, lastday.Options{KV: h.db, Sources: names, Now: time.Now, Log: h.log, Read: func(source string) lastday.Counts {
		m, c := h.mirror.Stats(source), h.clients[source].Stats()
		return lastday.Counts{Warm: m.Warm, Stale: m.Stale, Cold: m.Cold, Composed: m.Composed,
			Readers: c.ByReason[request.Waiting], Upstream: c.Requests}
	}})
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

// addTimes adds how long our answers took, and upstream's, these also by kind and reason.
func (h figures) addTimes(source string, to *page.Latencies) {
	list, all := h.clients[source].Times()
	for _, t := range list {
		out := viewerTime(t.Whole)
		out.Kind, out.Reason, out.Lost = t.Kind, t.Reason.String(), t.Lost
		to.Times = append(to.Times, out)
	}
	to.TheirTimes = viewerTime(all.Whole)
	to.TheirTimes.Lost = all.Lost
	to.HeldTimes = viewerTime(h.recent[source].held.Stat().Summary())
	to.AskedTimes = viewerTime(h.recent[source].asked.Stat().Summary())
}

func viewerTime(s onlinestat.Summary) page.Times {
	of := func(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
	return page.Times{Answers: s.Count, Mean: of(s.Mean), Deviation: of(s.Deviation), Min: of(s.Min), Max: of(s.Max), P50: of(s.P50),
		P99: of(s.P99)}
}

// recentCount is how many answer times are kept.
const recentCount = 120

// recent keeps how long answers of one source took, without a lock: a time that is
// overwritten while it is read is one wrong dot in a picture.
type recent struct {
	n           atomic.Uint64
	times       [recentCount]atomic.Int64
	held, asked *onlinestat.Sharded // seconds, of answers from what is held and of those that upstream was asked for
}

func newRecent() *recent {
	return &recent{held: onlinestat.NewSharded(), asked: onlinestat.NewSharded()}
}

// add keeps one more time of an answer. how is the word of its outcome, "" for an answer of
// our own, which is not kept.
func (r *recent) add(how string, took time.Duration) {
	switch how {
	case "":
		return
	case request.Cold.String():
		r.asked.Add(took.Seconds())
		return
	}
	i := r.n.Add(1) - 1
	r.times[i%recentCount].Store(int64(took))
	r.held.Add(took.Seconds())
}

// last are the latest times of answers from what is held, oldest first.
func (r *recent) last() []time.Duration {
	n := r.n.Load()
	out := make([]time.Duration, 0, recentCount)
	for i := n - min(n, recentCount); i < n; i++ {
		out = append(out, time.Duration(r.times[i%recentCount].Load()))
	}
	return out
}
