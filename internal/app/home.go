// This file collects what the home page shows of a source.

package app

import (
	"context"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/app/lastday"
	"understudy/internal/viewer/page"
	"understudy/kit/onlinestat"
	"understudy/request"
)

// countTimeout is the maximum time for reading the counts for a page.
const countTimeout = time.Second

// viewerSnapshot returns what the home page shows of a source.
func (h *figures) viewerSnapshot(ctx context.Context, source string) page.Snapshot {
	// The page that reports a timeout still shows what is stored, so the request's deadline does not apply.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countTimeout)
	defer cancel()
	m, c, health := h.mirror.Stats(source), h.clients[source].Stats(), h.clients[source].Health()
	queue, day := h.clients[source].Queue(), h.traffic.day.Sum(source)
	s := page.Snapshot{
		State: health.State, Why: health.Why, Since: health.Since, NextProbe: health.NextProbe,
		Kinds: map[string]page.StoredKind{},
		Day: page.Day{Warm: day.Warm, Stale: day.Stale, Cold: day.Cold, Composed: day.Composed, Readers: day.Readers,
			Walks: day.Walks, Upstream: day.Upstream},
		Requests:  page.RequestCounts{Upstream: c.Requests, AtOnce: queue.AtOnce, AtOnceWhy: queue.Why},
		Latencies: page.Latencies{StoredDurations: h.traffic.recent[source].storedTimes(), UpstreamDurations: health.Recent},
		DropIn:    h.ports.address(source),
	}
	h.addTimes(source, &s.Latencies)
	lists := h.mirror.Shadow().Scores(source)
	kinds, err := h.db.ReadKinds(ctx, source)
	if err != nil && !h.uncounted.Swap(true) {
		h.log.Error("home page: counts", "err", err)
	} else if err == nil {
		h.uncounted.Store(false)
	}
	for _, k := range kinds {
		held := page.StoredKind{Records: k.Records, CaughtUp: m.CaughtUp[k.Kind], Lists: knownScores(lists, k.Kind)}
		if s, err := h.crawler.ReadState(ctx, source, k.Kind); err == nil && s.Kept {
			held.Complete, held.Why, held.Running, held.Done, held.Total = s.Complete, s.Why, s.Running, s.Done, max(s.Total, 0)
			held.Walk, held.ETA = s.Walk, s.ETA
			if !s.CaughtUp.IsZero() {
				held.CaughtUp = s.CaughtUp
			}
		}
		s.Kinds[k.Kind] = held
	}
	for _, w := range h.feed.Webhooks() {
		if w.Source == source {
			s.Webhooks = append(s.Webhooks, w)
		}
	}
	return s
}

// addTimes adds the response times of this server and of the upstream. It adds the upstream's times also by kind
// and reason.
func (h *figures) addTimes(source string, to *page.Latencies) {
	list, all := h.clients[source].Times()
	for _, t := range list {
		out := viewerTime(t.Whole)
		out.Kind, out.Reason, out.Unanswered = t.Kind, t.Reason.String(), t.Lost
		to.Times = append(to.Times, out)
	}
	to.UpstreamTimes = viewerTime(all.Whole)
	to.UpstreamTimes.Unanswered = all.Lost
	to.StoredTimes = viewerTime(h.traffic.recent[source].fromStore.Stat().Summary())
	to.ColdTimes = viewerTime(h.traffic.recent[source].fromUpstream.Stat().Summary())
}

func viewerTime(s onlinestat.Summary) page.Times {
	of := func(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
	return page.Times{Answers: s.Count, Mean: of(s.Mean), Deviation: of(s.Deviation), Min: of(s.Min), Max: of(s.Max), P50: of(s.P50),
		P99: of(s.P99)}
}

// traffic counts the responses of the drop-in ports.
type traffic struct {
	recent        map[string]*recent       // the latest response times, by source
	refusedWrites map[string]*atomic.Int64 // the number of writes refused because too many were running, by source
	tooLarge      atomic.Int64             // the number of writes whose body exceeded the limit
	day           *lastday.Days
}

// recentCount is the number of response times that are kept for each source.
const recentCount = 120

// recent keeps the latest response times of one source without a lock. If a time is overwritten while it is read,
// one dot in a chart is wrong.
type recent struct {
	n                       atomic.Uint64
	times                   [recentCount]atomic.Int64
	fromStore, fromUpstream *onlinestat.Sharded // the response times in seconds, without and with an upstream request
	strangers               understudy.Usage    // counts the requests without a valid credential
}

func newRecent() *recent {
	return &recent{fromStore: onlinestat.NewSharded(), fromUpstream: onlinestat.NewSharded()}
}

// add records the time of a response. how is the word for the response's outcome. It is "" for a response that this
// server made itself, which is not recorded.
func (r *recent) add(how string, took time.Duration) {
	switch how {
	case "":
		return
	case request.Cold.String():
		r.fromUpstream.Add(took.Seconds())
		return
	}
	i := r.n.Add(1) - 1
	r.times[i%recentCount].Store(int64(took))
	r.fromStore.Add(took.Seconds())
}

// storedTimes returns the latest times of responses from the store, the oldest first.
func (r *recent) storedTimes() []time.Duration {
	n := r.n.Load()
	out := make([]time.Duration, 0, recentCount)
	for i := n - min(n, recentCount); i < n; i++ {
		out = append(out, time.Duration(r.times[i%recentCount].Load()))
	}
	return out
}
