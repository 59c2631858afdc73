// Hedge: a second request beside a late one, and leaving a connection that is silent.

package upstream

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"understudy"
)

// outcome is how one request of a try ended.
type outcome struct {
	a      *answer
	failed *understudy.UpstreamError
	err    error
}

// good reports an answer that need not wait for another.
func (o *outcome) good() bool {
	return o.err == nil && o.failed == nil && o.a.broken == nil && o.a.status < 500 && o.a.status != http.StatusTooManyRequests
}

// maxHedges is how many requests may go out beside one, each after twice the wait
// before the last.
const maxHedges = 3

// round sends the request. When the answer is late and upstream is silent, the request
// goes out once more, if the budget allows it now. The first good answer counts, and
// the other request ends (J. Dean, L. A. Barroso: The Tail at Scale, CACM 56(2), 2013,
// "hedged requests").
func (g *attempt) round(ctx context.Context, e httpRequest) (*answer, *understudy.UpstreamError, error) {
	if !e.limits.hedges || e.limits.hedge == 0 && e.limits.early {
		return g.c.round(ctx, g.reason, e)
	}
	ctx, cancel := context.WithCancel(ctx)
	var under sync.WaitGroup
	defer under.Wait()
	defer cancel()
	ended := make(chan outcome, 1+maxHedges)
	start := func(e httpRequest, done func()) {
		under.Go(func() {
			defer done()
			var o outcome
			o.a, o.failed, o.err = g.c.round(ctx, g.reason, e)
			ended <- o
		})
	}
	began := g.c.o.Now()
	e.came = &moment{}
	start(e, func() {})
	late := time.NewTimer(cmp.Or(e.limits.hedge, soonest))
	defer late.Stop()
	for running, hedges, pause := 1, 0, e.limits.hedge; ; {
		select {
		case o := <-ended:
			if running--; running == 0 || o.good() {
				return o.a, o.failed, o.err
			}
		case <-late.C:
			silent := g.c.o.Now().Sub(e.came.since(began))
			if e.limits.hedge == 0 { // it began without history, and there may be one now
				now := g.limits(false)
				if pause = now.hedge; pause == 0 && now.early {
					pause = now.first
				}
				if pause == 0 || silent < pause {
					late.Reset(max(soonest, pause-silent))
					continue
				}
				e.limits.hedge = pause
			}
			switch short := e.limits.hedge / 4; {
			case silent < short:
				late.Reset(short - silent) // something comes
			case g.c.breaker.StillOpen(g.key, g.limit(), false) && g.c.budget.TryTake(g.claim()):
				g.c.counts.Hedged(g.reason)
				g.c.connections.forsake(began)
				running++
				if hedges++; hedges < maxHedges {
					pause *= 2
					late.Reset(pause)
				}
				hedge := e
				hedge.came, hedge.park = nil, nil
				start(hedge, g.c.budget.Release)
			default:
				late.Reset(short) // the budget may have room then
			}
		}
	}
}

// wires are the connections in use.
type wires struct {
	*http.Transport
	since time.Time
}

// connections lead to the source. They are the client's own, and replaced when
// they fall silent, unless a transport was given.
type connections struct {
	now   func() time.Time
	given http.RoundTripper
	own   atomic.Pointer[wires] // nil when a transport was given
	came  moment                // of any answer
}

func newConnections(o *Options) *connections {
	c := &connections{now: o.Now, given: o.Transport}
	if o.Transport == nil {
		c.own.Store(&wires{newTransport(o), o.Now()})
	}
	return c
}

// transport is what requests are sent with.
func (c *connections) transport() http.RoundTripper {
	if w := c.own.Load(); w != nil {
		return w
	}
	return c.given
}

// final returns ErrUnreadable in place of an answer that is no HTTP, or whose status ends no request: one below
// 200, such as 000, or another protocol, which was not asked for. No such status can be passed on.
func final(resp *http.Response, err error) (*http.Response, error) {
	if err != nil && noHTTP.MatchString(err.Error()) {
		return nil, fmt.Errorf("%w: %w", understudy.ErrUnreadable, err)
	}
	if err != nil || resp.StatusCode >= http.StatusOK {
		return resp, err
	}
	_ = resp.Body.Close()
	return nil, fmt.Errorf("%w: the status %03d ends no request", understudy.ErrUnreadable, resp.StatusCode)
}

// noHTTP are the errors of net/http for an answer that it cannot read; they have no names.
var noHTTP = regexp.MustCompile(`malformed (HTTP|MIME)|(multiple|bad|empty) Content-Length|unsupported transfer encoding`)

// close closes idle connections.
func (c *connections) close() {
	if w := c.own.Load(); w != nil {
		w.CloseIdleConnections()
	}
}

// moment is the time of the last answer. A nil moment keeps nothing.
type moment struct{ at atomic.Pointer[time.Time] }

func (m *moment) set(at time.Time) {
	if m != nil {
		m.at.Store(&at)
	}
}

// since is that time, but not before began.
func (m *moment) since(began time.Time) time.Time {
	if at := m.at.Load(); at != nil && at.After(began) {
		return *at
	}
	return began
}

// forsake leaves all connections when no answer has come over any of them since began.
// A silence on one may be a silence on all, and HTTP/2 has only one. Requests that wait
// on them end with them.
func (c *connections) forsake(began time.Time) {
	old := c.own.Load()
	if old == nil || old.since.After(began) || c.came.since(began).After(began) {
		return
	}
	if c.own.CompareAndSwap(old, &wires{old.Clone(), c.now()}) {
		old.CloseIdleConnections()
	}
}
