// This file measures how long answers usually take, and computes how long a try may receive no data.

package upstream

import (
	"cmp"
	"slices"
	"time"

	"understudy/kit/lockwatch"
	"understudy/kit/onlinestat"
	"understudy/request"
	"understudy/spec"
)

// Parameters of the deadline of a try.
const (
	minDeadline    = time.Second // the shortest deadline of a try
	minAnswers     = 3           // the number of answers that must be known before deadlines are computed
	deadlineFactor = 3           // a try ends after this multiple of the usual time
	hedgeFactor    = 1.5         // a second request is sent after this multiple of the usual time
	largePage      = 200         // a page with more rows than this is large
)

// latencies measures the good answers to GET requests. The time of an answer depends on the kind of its records and on
// their number. The reason of the request is stored only for people. The zero value is ready to use.
type latencies struct {
	mu    lockwatch.Mutex
	kinds map[string]*kindLatency
	all   estimate // the times of all kinds and sizes, used for a kind and size without answers so far
}

// kindLatency has the times of a kind; "" is the kind of paths that the spec does not name.
type kindLatency struct {
	reasons [request.ReasonCount]*answerTimes
	sizes   [3]estimate // the times of answers with single records, with pages and with large pages
}

// answerTimes are the times of the answers for one kind and reason, in seconds, since the client was created.
type answerTimes struct {
	first, whole onlinestat.Stat
	lost         int64 // the number of tries that received no data
}

// estimate has the times of at least the last 256 answers of one kind and size, in seconds.
type estimate struct {
	silence onlinestat.Window // the longest waits for data in each answer, including the wait for the first byte
	whole   onlinestat.Window
	last    float64 // the longest wait for data in the newest answer
	lost    int     // the number of consecutive tries whose deadline passed; each deadline is twice the previous one
}

// sizeOf returns the index of a target's estimate in kindLatency.sizes.
func sizeOf(t *spec.Target) int {
	switch {
	case t.List == nil:
		return 0
	case t.PageSize > largePage:
		return 2
	}
	return 1
}

// estimateOf returns the times of a target's answers. The caller holds the lock.
func (p *latencies) estimateOf(t *spec.Target) (*kindLatency, *estimate) {
	name := ""
	if t.Kind != nil {
		name = t.Kind.Name
	}
	k := p.kinds[name]
	if k == nil {
		if p.kinds == nil {
			p.kinds = map[string]*kindLatency{}
		}
		k = &kindLatency{}
		p.kinds[name] = k
	}
	return k, &k.sizes[sizeOf(t)]
}

// timesOf returns the times for a reason and creates them if needed.
func (k *kindLatency) timesOf(r request.Reason) *answerTimes {
	if k.reasons[r] == nil {
		k.reasons[r] = &answerTimes{}
	}
	return k.reasons[r]
}

// addAnswer records a good answer.
func (p *latencies) addAnswer(t *spec.Target, r request.Reason, a *answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k, u := p.estimateOf(t)
	k.timesOf(r).first.Add(a.firstByte.Seconds())
	k.timesOf(r).whole.Add(a.took.Seconds())
	for _, u := range []*estimate{u, &p.all} {
		u.silence.Add(a.longestWait.Seconds())
		u.whole.Add(a.took.Seconds())
		u.last = a.longestWait.Seconds()
	}
	u.lost = 0
}

// addSilence records a try whose deadline passed. If several tries run at the same time, only one of them doubles the
// next deadline (as in RFC 6298, 5.5).
func (p *latencies) addSilence(t *spec.Target, r request.Reason, l tryLimits) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k, u := p.estimateOf(t)
	k.timesOf(r).lost++
	if l.early && l.lost >= u.lost {
		u.lost = l.lost + 1
	}
}

// tryLimits are how long one try may receive no data.
type tryLimits struct {
	first, stall time.Duration // the maximum waits for the first byte, and between two reads of the body
	hedges       bool          // whether a slow request may be sent a second time while the first is still running
	hedge        time.Duration // the wait before the second request; 0 means that none is sent
	early        bool          // whether the maximum waits are shorter than those in the settings
	grown        bool          // whether shorter waits have already been doubled to their maximum
	lost         int           // the number of consecutive tries before this one whose deadline passed
}

// tryTimes is how much time a fetch has for its next try.
type tryTimes struct {
	left        time.Duration // the time within which the next try must begin; 0 means no limit
	maxDeadline time.Duration // the maximum deadline of the try, half of the time that the reader still waits; 0 means no limit
	tries       int           // the number of tries of this fetch whose deadline passed, without the first of them
	dropped     bool          // whether the upstream answered other requests during the last try without data
	setting     tryLimits
}

// limits returns the limits of the next try for a target. They are the limits of the settings if fewer than three
// answers are known, and for the last try for which the reader waits. They are also those of the settings if answers
// usually take longer than a reader waits for two tries.
//
// Otherwise the deadline is three times the usual time. That is the 99th percentile of the last answers (the slowest of
// fewer than 100), or the time of the newest answer if that is longer. For a target without answers the slowest answer
// of any kind is used. The deadline, and the wait before a second request, double with each deadline that passes, until
// an answer arrives. So if a source becomes slow, its answers are not cut off for ever, and it does not get two
// requests each time. If the upstream answers other fetches meanwhile, only the deadlines of the silent fetch double.
// Its second requests are then sent earlier, because its connection was lost and the next may be lost too.
func (p *latencies) limits(t *spec.Target, w tryTimes) tryLimits {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, u := p.estimateOf(t)
	out := w.setting
	out.lost = max(u.lost, w.tries)
	takes, whole := u.quantiles(0.99)
	if u.silence.Count() < minAnswers {
		if p.all.silence.Count() < minAnswers {
			return out
		}
		takes, whole = p.all.quantiles(1)
	}
	usually, doubled := max(minDeadline, deadlineFactor*takes), min(out.lost, 10)
	most := cmp.Or(w.maxDeadline, out.first)
	deadline := min(usually<<doubled, most)
	if takes < most && deadline < out.first && (w.left == 0 || deadline < w.left) {
		out.early, out.grown = true, out.lost > 0 && deadline >= min(4*usually, most)
		out.first, out.stall = deadline, min(deadline, out.stall)
	}
	hedge := max(minDeadline, time.Duration(hedgeFactor*float64(whole))) << min(u.lost, 10)
	if w.dropped {
		hedge = max(minDeadline/4, whole)
	}
	if hedge < out.first {
		out.hedge = hedge
	}
	return out
}

// limits returns the limits of the next try. A probe has the limits of the settings, because its result counts for all
// requests.
func (g *attempt) limits(probe bool) tryLimits {
	// A single try without data may be a lost connection, but two mean that the source is slow.
	w := tryTimes{tries: max(0, g.silentTries-1), dropped: g.connectionLost, setting: g.c.settings()}
	if probe {
		return w.setting
	}
	if retry := g.f.RetryWindow; retry > 0 {
		now := g.c.o.Now().Add(maxRetryDelay(g.tries - 1)) // the time at which the next try would begin
		w.maxDeadline, w.left = retry/2, max(1, g.retryEnd.Sub(now))
		if by := g.f.Deadline; !by.IsZero() {
			w.maxDeadline = min(w.maxDeadline, max(1, by.Sub(g.retryEnd.Add(-retry))/2))
			w.left = min(w.left, max(1, by.Sub(now)))
		}
	}
	l := g.c.pace.limits(g.f.Target, w)
	l.hedges = g.f.RetryWindow > 0 && g.f.Reserve == nil && g.reason == request.ReasonWaiting
	return l
}

// addSilentTry records a try that ended without any data. It reports whether that counts against the upstream. The
// first shortened deadline that passes may only have been too short.
func (g *attempt) addSilentTry(l tryLimits, began time.Time) bool {
	g.silentTries++
	g.connectionLost = g.c.connections.lastData.timeAfter(began).After(began)
	g.c.pace.addSilence(g.f.Target, g.reason, l)
	g.c.connections.replaceSilent(began)
	return !l.early || l.grown
}

// quantiles returns the longest wait for data and the total time that a given share of the answers does not exceed.
func (u *estimate) quantiles(share float64) (silence, whole time.Duration) {
	return seconds(max(u.silence.Quantile(share), u.last)), seconds(u.whole.Quantile(share))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Times are the times of the upstream's answers since New, and the number of tries that ended without any data. Kind ""
// is for paths that the spec does not name. Writes and media contents are not included.
type Times struct {
	Kind         string
	Reason       request.Reason
	First, Whole onlinestat.Summary // the times to the first and to the last byte of an answer, in seconds
	Lost         int64
}

// Times returns the times of each kind and reason, sorted by name, and the sum of all, whose Kind is "*".
func (c *Client) Times() (each []Times, all Times) { return c.pace.times() }

// times returns the times of each kind and reason, and the sum of all, as Client.Times does.
func (p *latencies) times() (each []Times, all Times) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var first, whole onlinestat.Stat
	for name, k := range p.kinds {
		for r, t := range k.reasons {
			if t == nil {
				continue
			}
			each = append(each, Times{name, request.Reason(r), t.first.Summary(), t.whole.Summary(), t.lost})
			first.Merge(&t.first)
			whole.Merge(&t.whole)
			all.Lost += t.lost
		}
	}
	slices.SortFunc(each, func(a, b Times) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Reason, b.Reason)) })
	all.Kind, all.First, all.Whole = "*", first.Summary(), whole.Summary()
	return each, all
}
