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

// viewerSnapshot returns what people see of a source.
func (h *figures) viewerSnapshot(ctx context.Context, source string) page.Snapshot {
	// The page that says a request took too long still tells what is held.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countTime)
	defer cancel()
	m, c, health := h.mirror.Stats(source), h.clients[source].Stats(), h.clients[source].Health()
	queue, day := h.clients[source].Queue(), h.traffic.day.Of(source)
	s := page.Snapshot{
		State: health.State, Why: health.Why, Since: health.Since, NextProbe: health.NextProbe,
		Kinds: map[string]page.Held{},
		Day: page.Day{Warm: day.Warm, Stale: day.Stale, Cold: day.Cold, Composed: day.Composed, Readers: day.Readers,
			Walks: day.Walks, Upstream: day.Upstream},
		Sending:   page.Sending{Upstream: c.Requests, AtOnce: queue.AtOnce, AtOnceWhy: queue.Why},
		Latencies: page.Latencies{Ours: h.traffic.recent[source].last(), Theirs: health.Recent},
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
		held := page.Held{Records: k.Records, CaughtUp: m.CaughtUp[k.Kind], Lists: knownScores(lists, k.Kind)}
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

// walkHeld adds what is known of a kind's walks to what people see.
func (h *figures) walkHeld(ctx context.Context, source, kind string, held *page.Held) {
	s, err := h.walker.ReadState(ctx, source, kind)
	if err != nil || !s.Kept {
		return
	}
	held.Complete, held.Why, held.Running, held.Done, held.Total, held.Walk, held.ETA = s.Complete, s.Why, s.Running, s.Done, max(s.Total, 0),
		s.Walk, s.ETA
	if !s.CaughtUp.IsZero() {
		held.CaughtUp = s.CaughtUp
	}
}

// addTimes adds how long our answers took, and upstream's, these also by kind and reason.
func (h *figures) addTimes(source string, to *page.Latencies) {
	list, all := h.clients[source].Times()
	for _, t := range list {
		out := viewerTime(t.Whole)
		out.Kind, out.Reason, out.Lost = t.Kind, t.Reason.String(), t.Lost
		to.Times = append(to.Times, out)
	}
	to.TheirTimes = viewerTime(all.Whole)
	to.TheirTimes.Lost = all.Lost
	to.HeldTimes = viewerTime(h.traffic.recent[source].held.Stat().Summary())
	to.AskedTimes = viewerTime(h.traffic.recent[source].asked.Stat().Summary())
}

func viewerTime(s onlinestat.Summary) page.Times {
	of := func(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
	return page.Times{Answers: s.Count, Mean: of(s.Mean), Deviation: of(s.Deviation), Min: of(s.Min), Max: of(s.Max), P50: of(s.P50),
		P99: of(s.P99)}
}

// traffic counts the answers of the drop-in ports.
type traffic struct {
	recent   map[string]*recent       // by source
	noPlace  map[string]*atomic.Int64 // writes that found no place, by source
	tooLarge atomic.Int64             // bodies of writes beyond the limit
	day      *lastday.Days
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

// last returns the latest times of answers from what is held, oldest first.
func (r *recent) last() []time.Duration {
	n := r.n.Load()
	out := make([]time.Duration, 0, recentCount)
	for i := n - min(n, recentCount); i < n; i++ {
		out = append(out, time.Duration(r.times[i%recentCount].Load()))
	}
	return out
}
