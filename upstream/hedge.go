// This file sends a second request while the first is late, and replaces connections that receive no data.

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

// outcome is the result of one of the requests of a try.
type outcome struct {
	a      *answer
	failed *understudy.UpstreamError
	err    error
}

// isGood reports whether an outcome is final, so that the other requests of the try are not needed.
func (o *outcome) isGood() bool {
	return o.err == nil && o.failed == nil && o.a.bodyErr == nil && o.a.status < 500 && o.a.status != http.StatusTooManyRequests
}

// maxHedges is the maximum number of requests that may be sent while the first is late. Each is sent after twice the
// wait before the previous request.
const maxHedges = 3

// sendHedged sends the request. If the answer is late and no data arrives, it sends the request once more, if the
// budget has room. The first good answer counts, and the other request is cancelled (J. Dean, L. A. Barroso: The Tail
// at Scale, CACM 56(2), 2013, "hedged requests").
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
			if e.limits.hedge == 0 { // no answer times were known at the start, but some may be known now
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
				late.Reset(short - silent) // wait again, because data has arrived since
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
				late.Reset(short) // try again later, when the budget may have room
			}
		}
	}
}

// agedTransport is a transport and the time of its creation.
type agedTransport struct {
	*http.Transport
	since time.Time
}

// connections are the connections to the source. If Options.Transport is nil, they are the client's own, and are
// replaced when no data arrives on any of them.
type connections struct {
	now            func() time.Time
	givenTransport http.RoundTripper
	ownTransport   atomic.Pointer[agedTransport] // the client's own transport, or nil if Options.Transport is set
	lastData       moment                        // the time of the last data on any connection
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

// checkFinal returns ErrUnreadable for an answer that is not valid HTTP, or whose status is not final: a status below
// 200, such as 000, or a switch to another protocol, which was not requested. Such a status cannot be forwarded.
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

// unreadableErrors matches the texts of net/http's errors for an answer that it cannot read. These errors have no
// exported values.
var unreadableErrors = regexp.MustCompile(`malformed (HTTP|MIME)|(multiple|bad|empty) Content-Length|unsupported transfer encoding`)

// close closes idle connections.
func (c *connections) close() {
	if w := c.ownTransport.Load(); w != nil {
		w.CloseIdleConnections()
	}
}

// moment is the time at which data was last received. A nil moment stores nothing.
type moment struct{ at atomic.Pointer[time.Time] }

// set stores the time, unless the moment is nil.
func (m *moment) set(at time.Time) {
	if m != nil {
		m.at.Store(&at)
	}
}

// timeAfter returns the stored time, or began if the stored time is earlier.
func (m *moment) timeAfter(began time.Time) time.Time {
	if at := m.at.Load(); at != nil && at.After(began) {
		return *at
	}
	return began
}

// replaceSilent replaces all connections if none of them has received data since began. If one connection receives no
// data, the others may not either, and HTTP/2 has only one. Requests that wait on the old connections end with them.
func (c *connections) replaceSilent(began time.Time) {
	old := c.ownTransport.Load()
	if old == nil || old.since.After(began) || c.lastData.timeAfter(began).After(began) {
		return
	}
	if c.ownTransport.CompareAndSwap(old, &agedTransport{old.Clone(), c.now()}) {
		old.CloseIdleConnections()
	}
}
