// Latency: how long answers usually take, and how long a try may be silent.

package upstream

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"understudy/kit/onlinestat"
	"understudy/request"
	"understudy/spec"
)

// The bounds of a try's deadline.
const (
	soonest  = time.Second // no deadline is earlier
	enough   = 3           // answers after which there are deadlines
	patient  = 3           // times what is usual: then a try is over
	hedging  = 1.5         // times what is usual: then a second one goes out beside it
	largeRow = 200         // rows of a page above which it is large
)

// latencies measures the good answers to GETs. What an answer takes depends on the
// kind of record and on how many of them it holds; the reason is for people.
// Its zero value works.
type latencies struct {
	mu    sync.Mutex
	kinds map[string]*kindLatency
	all   estimate // of any kind and size: stands in for one that has no history
}

// kindLatency is the pace of a kind; "" is of what the spec does not name.
type kindLatency struct {
	reasons [request.ReasonCount]*taken
	sizes   [3]estimate // one record, a page, a large page
}

// taken is what the answers of one kind for one reason took, in seconds, since
// the client was made.
type taken struct {
	first, whole onlinestat.Stat
	lost         int64 // tries that ended in silence
}

// estimate is what the last answers of one kind and size took, in seconds: the
// last 256 at least.
type estimate struct {
	silence onlinestat.Window // the longest wait for a next byte, the first one's included
	whole   onlinestat.Window
	last    float64 // silence of the newest
	lost    int     // deadlines in a row that passed, each twice the one before
}

// sizeOf is where the pace of a target's answers is kept.
func sizeOf(t *spec.Target) int {
	switch {
	case t.List == nil:
		return 0
	case t.PageSize > largeRow:
		return 2
	}
	return 1
}

// of is the pace of a target's answers; the lock is held.
func (p *latencies) of(t *spec.Target) (*kindLatency, *estimate) {
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

func (k *kindLatency) reason(r request.Reason) *taken {
	if k.reasons[r] == nil {
		k.reasons[r] = &taken{}
	}
	return k.reasons[r]
}

// answered notes a good answer.
func (p *latencies) answered(t *spec.Target, r request.Reason, a *answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k, u := p.of(t)
	k.reason(r).first.Add(a.first.Seconds())
	k.reason(r).whole.Add(a.took.Seconds())
	for _, u := range []*estimate{u, &p.all} {
		u.silence.Add(a.silence.Seconds())
		u.whole.Add(a.took.Seconds())
		u.last = a.silence.Seconds()
	}
	u.lost = 0
}

// silent notes a try whose deadline passed. Of those under way together only
// one doubles the next deadline (RFC 6298, 5.5, does the same).
func (p *latencies) silent(t *spec.Target, r request.Reason, l limits) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k, u := p.of(t)
	k.reason(r).lost++
	if l.early && l.lost >= u.lost {
		u.lost = l.lost + 1
	}
}

// limits are how long one try may hear nothing.
type limits struct {
	first, stall time.Duration // to the first byte, and between two reads
	hedges       bool          // a second request may go out beside one
	hedge        time.Duration // until a second one goes out beside it; 0: none does
	early        bool          // they are earlier than the settings'
	grown        bool          // of those that are: as late as they become
	lost         int           // how many deadlines passed before
}

// waits is what a fetch can give a try.
type waits struct {
	left    time.Duration // in which the next try must have begun; 0: there is none
	most    time.Duration // the longest deadline: half of what its reader has; 0: any
	tries   int           // of this fetch whose deadline passed, but the first
	dropped bool          // the last deadline that passed did so while upstream answered other requests
	setting limits
}

// limits are those of the next try for a target. With fewer than three answers seen,
// and for the last try for which its reader waits, they are the settings'. They are
// also the settings' when answers usually take longer than a reader has for two tries.
//
// Otherwise the deadline is three times the usual time: the 99th percentile of the last
// answers (the slowest of fewer than 100), or the newest answer's time when that is
// longer. A target without history uses the slowest answer of any kind. The deadline
// doubles with each one that passes, until an answer comes, and so does the wait before
// a hedge. So a source that has become slow is neither cut off for ever nor asked twice
// each time. While upstream answers other fetches, a silent fetch doubles only its own
// deadlines, and its hedges come earlier: a connection was dropped, and the next may be.
func (p *latencies) limits(t *spec.Target, w waits) limits {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, u := p.of(t)
	out := w.setting
	out.lost = max(u.lost, w.tries)
	takes, whole := u.takes(0.99)
	if u.silence.Count() < enough {
		if p.all.silence.Count() < enough {
			return out
		}
		takes, whole = p.all.takes(1)
	}
	usually, doubled := max(soonest, patient*takes), min(out.lost, 10)
	most := cmp.Or(w.most, out.first)
	deadline := min(usually<<doubled, most)
	if takes < most && deadline < out.first && (w.left == 0 || deadline < w.left) {
		out.early, out.grown = true, out.lost > 0 && deadline >= min(4*usually, most)
		out.first, out.stall = deadline, min(deadline, out.stall)
	}
	hedge := max(soonest, time.Duration(hedging*float64(whole))) << min(u.lost, 10)
	if w.dropped {
		hedge = max(soonest/4, whole)
	}
	if hedge < out.first {
		out.hedge = hedge
	}
	return out
}

// limits are those of the next try. A probe has the settings': its result counts for
// all requests.
func (g *attempt) limits(probe bool) limits {
	w := waits{tries: max(0, g.silent-1), dropped: g.dropped, setting: g.c.settings()} // one may have been lost; two are slow
	if probe {
		return w.setting
	}
	if retry := g.f.RetryWindow; retry > 0 {
		now := g.c.o.Now().Add(longestBackOff(g.tries - 1)) // before the next one
		w.most, w.left = retry/2, max(1, g.end.Sub(now))
		if by := g.f.Deadline; !by.IsZero() {
			w.most = min(w.most, max(1, by.Sub(g.end.Add(-retry))/2))
			w.left = min(w.left, max(1, by.Sub(now)))
		}
	}
	l := g.c.pace.limits(g.f.Target, w)
	l.hedges = g.f.RetryWindow > 0 && g.f.Reserve == nil && g.reason == request.ReasonWaiting
	return l
}

// unheard notes a try that ended in silence, and reports whether that counts against
// upstream. The first early deadline that passes may only have been too early.
func (g *attempt) unheard(l limits, began time.Time) bool {
	g.silent++
	g.dropped = g.c.connections.came.since(began).After(began)
	g.c.pace.silent(g.f.Target, g.reason, l)
	g.c.connections.forsake(began)
	return !l.early || l.grown
}

// takes are the silence and the whole time that a share of answers does not
// exceed.
func (u *estimate) takes(share float64) (silence, whole time.Duration) {
	return seconds(max(u.silence.Quantile(share), u.last)), seconds(u.whole.Quantile(share))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Times are what upstream's answers took since New, and how many tries ended
// in silence. Kind "" is of paths the spec does not name. Writes and contents
// are not in it.
type Times struct {
	Kind         string
	Reason       request.Reason
	First, Whole onlinestat.Summary // seconds, to the first and to the last byte
	Lost         int64
}

// Times are those of each kind and reason, by name, and of all together, whose
// Kind is "*".
func (c *Client) Times() (each []Times, all Times) { return c.pace.times() }

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
