// Hedge: a second request beside a late one, and replacing silent connections.

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

// outcome is the result of one request of a try.
type outcome struct {
	a      *answer
	failed *understudy.UpstreamError
	err    error
}

// isGood reports whether an outcome is final, so that no other request need be awaited.
func (o *outcome) isGood() bool {
	return o.err == nil && o.failed == nil && o.a.bodyErr == nil && o.a.status < 500 && o.a.status != http.StatusTooManyRequests
}

// maxHedges is how many requests may be sent beside the first one. Each is sent after twice the wait before the
// previous one.
const maxHedges = 3

// sendHedged sends the request. If the answer is late and upstream is silent, it sends the request once more,
// if the budget has room. The first good answer counts, and the other request is cancelled (J. Dean, L. A.
// Barroso: The Tail at Scale, CACM 56(2), 2013, "hedged requests").
func (g *attempt) sendHedged(ctx context.Context, e httpRequest) (*answer, *understudy.UpstreamError, error) {
	if !e.limits.hedges || e.limits.hedge == 0 && e.limits.early {
		return g.c.sendOnce(ctx, g.reason, e)
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
			o.a, o.failed, o.err = g.c.sendOnce(ctx, g.reason, e)
			ended <- o
		})
	}
	began := g.c.o.Now()
	e.lastData = &moment{}
	start(e, func() {})
	late := time.NewTimer(cmp.Or(e.limits.hedge, minDeadline))
	defer late.Stop()
	for running, hedges, pause := 1, 0, e.limits.hedge; ; {
		select {
		case o := <-ended:
			if running--; running == 0 || o.isGood() {
				return o.a, o.failed, o.err
			}
		case <-late.C:
			silent := g.c.o.Now().Sub(e.lastData.timeAfter(began))
			if e.limits.hedge == 0 { // there was no history at the start, but there may be some now
				now := g.limits(false)
				if pause = now.hedge; pause == 0 && now.early {
					pause = now.first
				}
				if pause == 0 || silent < pause {
					late.Reset(max(minDeadline, pause-silent))
					continue
				}
				e.limits.hedge = pause
			}
			switch short := e.limits.hedge / 4; {
			case silent < short:
				late.Reset(short - silent) // the timer starts again, because data is arriving
			case g.c.breaker.CanSend(g.key, g.limit(), false) && g.c.budget.TryTake(g.claim()):
				g.c.counts.AddHedge(g.reason)
				g.c.connections.replaceSilent(began)
				running++
				if hedges++; hedges < maxHedges {
					pause *= 2
					late.Reset(pause)
				}
				hedge := e
				hedge.lastData, hedge.park = nil, nil
				start(hedge, g.c.budget.Release)
			default:
				late.Reset(short) // the budget may have room by then
			}
		}
	}
}

// agedTransport is a transport and the time of its creation.
type agedTransport struct {
	*http.Transport
	since time.Time
}

// connections are the connections to the source. If no transport was given, they are the client's own and are
// replaced when all are silent.
type connections struct {
	now            func() time.Time
	givenTransport http.RoundTripper
	ownTransport   atomic.Pointer[agedTransport] // nil if a transport was given
	lastData       moment                        // time of the last data on any connection
}

func newConnections(o *Options) *connections {
	c := &connections{now: o.Now, givenTransport: o.Transport}
	if o.Transport == nil {
		c.ownTransport.Store(&agedTransport{newTransport(o), o.Now()})
	}
	return c
}

// transport returns the transport for requests.
func (c *connections) transport() http.RoundTripper {
	if w := c.ownTransport.Load(); w != nil {
		return w
	}
	return c.givenTransport
}

// checkFinal returns ErrUnreadable for an answer that is no HTTP, or whose status is not final: a status below
// 200, such as 000, or a switch to another protocol, which was not requested. Such a status cannot be passed
// on.
func checkFinal(resp *http.Response, err error) (*http.Response, error) {
	if err != nil && unreadableErrors.MatchString(err.Error()) {
		return nil, fmt.Errorf("%w: %w", understudy.ErrUnreadable, err)
	}
	if err != nil || resp.StatusCode >= http.StatusOK {
		return resp, err
	}
	_ = resp.Body.Close()
	return nil, fmt.Errorf("%w: the status %03d ends no request", understudy.ErrUnreadable, resp.StatusCode)
}

// unreadableErrors matches the errors of net/http for an answer that it cannot read; they have no names.
var unreadableErrors = regexp.MustCompile(`malformed (HTTP|MIME)|(multiple|bad|empty) Content-Length|unsupported transfer encoding`)

// close closes idle connections.
func (c *connections) close() {
	if w := c.ownTransport.Load(); w != nil {
		w.CloseIdleConnections()
	}
}

// moment is the time of the last data. A nil moment stores nothing.
type moment struct{ at atomic.Pointer[time.Time] }

// set stores the time, unless the moment is nil.
func (m *moment) set(at time.Time) {
	if m != nil {
		m.at.Store(&at)
	}
}

// timeAfter returns the stored time, or began if that is later.
func (m *moment) timeAfter(began time.Time) time.Time {
	if at := m.at.Load(); at != nil && at.After(began) {
		return *at
	}
	return began
}

// replaceSilent replaces all connections if none of them has received data since began. A silence on one may be
// a silence on all, and HTTP/2 has only one. Requests that wait on the old connections end with them.
func (c *connections) replaceSilent(began time.Time) {
	old := c.ownTransport.Load()
	if old == nil || old.since.After(began) || c.lastData.timeAfter(began).After(began) {
		return
	}
	if c.ownTransport.CompareAndSwap(old, &agedTransport{old.Clone(), c.now()}) {
		old.CloseIdleConnections()
	}
}
