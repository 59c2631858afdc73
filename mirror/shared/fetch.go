// Fetch: what is not stored, or is past fresh, comes from upstream.

package shared

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"understudy"
	"understudy/mirror/httpcache"
	"understudy/request"
)

// join joins the flight of the answer that the request wants.
func (c *Cache) join(ctx context.Context, r *reading) (*request.Exchanged, error) {
	h := &handoff{}
	p, joined, err := c.flights.Join(ctx, r.flight(), r.exchange.Flow, r.q.Forces(), c.fetch(r, h))
	got := h.take()
	if err != nil {
		return c.rescued(ctx, r, err)
	}
	switch {
	case got != nil && failed(got.Response.Page.Status) && r.held != nil && r.decision.Error:
		_ = got.Close() // the stale answer goes out in its place
		return c.hit(r, "stale: upstream "+strconv.Itoa(got.Response.Page.Status)), nil
	case got != nil:
		if got.Response.Outcome != request.Warm {
			got.Response.Fwd = r.fwd()
		}
		return got, nil
	case joined && !c.serves(ctx, r, p):
		return c.aside(ctx, r) // it is for another request
	}
	return c.fetched(r, p, joined), nil
}

// serves reports whether what a joined flight brought answers this request too: it is still
// what is stored, as a write may have been answered since.
func (c *Cache) serves(ctx context.Context, r *reading, p *understudy.Page) bool {
	if p.NotStored != "" {
		return false
	}
	now := reading{exchange: r.exchange, q: r.q}
	err := c.look(ctx, &now)
	return err == nil && now.decision.Answer && now.held.page.Key == p.Key && now.held.page.At.Equal(p.At)
}

// fetched is an answer that is stored now.
func (c *Cache) fetched(r *reading, p *understudy.Page, joined bool) *request.Exchanged {
	s, now := c.storedOf(p), c.now()
	life, _ := s.response.Lifetime()
	h := s.response.Header
	if !joined && len(r.own) > 0 {
		h = h.Clone()
		maps.Copy(h, r.own)
	}
	return &request.Exchanged{Response: request.Response{Page: p, Outcome: request.Cold, Stored: p.NotStored == "", Joined: joined,
		Age: max(0, now.Sub(p.At)), TTL: life - s.response.Age(now), Fwd: r.fwd(), Upstream: p.Took, Detail: detailOf(p)}, Header: h}
}

func detailOf(p *understudy.Page) string {
	if p.NotStored == "" {
		return ""
	}
	return "not stored: " + p.NotStored
}

// refresh renews what was answered past fresh, behind the answer.
func (c *Cache) refresh(r *reading) {
	again := *r
	again.exchange.Reason = request.Refresh
	c.flights.FetchInBackground(r.flight(), c.fetch(&again, nil))
}

// oneRequest is why an answer is not stored that is for who asked.
const oneRequest = "it is for one request"

// fetch is one exchange, and the storing of what it brought. What may not be stored goes to
// h; nil: nobody wants it. The page that it returns then is for nobody. An answer that was
// stored between the request's look and its flight saves the exchange.
func (c *Cache) fetch(r *reading, h *handoff) Fetch {
	return func(flight context.Context) (*understudy.Page, error) {
		now := reading{exchange: r.exchange, q: r.q}
		if err := c.look(flight, &now); err != nil {
			return nil, err
		}
		if now.decision.Answer && !now.decision.Refresh {
			if h != nil {
				h.give(c.hit(&now, ""))
			}
			return now.held.page, nil
		}
		// A stream outlives the flight; until its header has come it ends with it.
		ctx, cancel := context.WithCancel(context.WithoutCancel(flight))
		stop := context.AfterFunc(flight, cancel)
		defer stop()
		x := r.exchange
		x.Header = httpcache.Unconditional(r.exchange.Header)
		if r.held != nil {
			maps.Copy(x.Header, r.held.response.Conditions())
		}
		if h != nil {
			x.Early = h.early(r.exchange.Early)
		}
		got, p, err := c.exchange(ctx, r, x)
		switch {
		case err != nil:
			cancel()
			return nil, err
		case p != nil:
			cancel()
			return p, nil
		}
		if got.Stream != nil {
			got.Stream = &ending{got.Stream, cancel}
		} else {
			defer cancel()
		}
		left := *got.Response.Page
		left.NotStored = oneRequest
		if h == nil || !h.give(got) {
			_ = got.Close() // its reader has left
		}
		return &left, nil
	}
}

// exchange passes a GET on and stores its answer, where that may be stored, or the
// confirmation of what is stored: then p is the page. Else got is the answer as it comes.
func (c *Cache) exchange(ctx context.Context, r *reading, x request.Exchange) (got *request.Exchanged, p *understudy.Page, err error) {
	written, held := c.enter(x.Target.Key), r.held
	defer c.exit(x.Target.Key)
	if held != nil && r.up.ended.Load() != r.ended { // a write may have ended it
		held, x.Header = nil, httpcache.Unconditional(x.Header)
	}
	var came httpcache.Response
	x.Most = c.most
	storable := false
	x.Whole = func(status int, h http.Header, asked, at time.Time) bool {
		came = httpcache.Received(status, h, asked, at)
		keepsOld := r.held != nil && r.decision.Error && failed(status) // RFC 9111, 4.3.3
		storable = came.Storable(&r.q) && !keepsOld
		return storable && !isLong(came.Header)
	}
	if got, err = r.up.Exchange(ctx, x); err != nil {
		return nil, nil, fmt.Errorf("mirror: fetch %s: %w", x.Target.Key, err)
	}
	switch {
	case came.Status == http.StatusNotModified && held != nil &&
		(!held.response.IsSelectedBy(&came) || isLong(held.response.Update(&came).Header)):
		again := *r
		again.held, x.Header = nil, httpcache.Unconditional(x.Header)
		return c.exchange(ctx, &again, x)
	case came.Status == http.StatusNotModified && held != nil && held.response.Conditions() != nil:
		came = held.response.Update(&came)
		p = c.pageOf(r, &came, held.page.Body, got.Response.Page.Took)
		if !came.Storable(&r.q) {
			p.NotStored = oneRequest
		}
	case storable && got.Stream == nil:
		p = c.pageOf(r, &came, got.Response.Page.Body, got.Response.Page.Took)
	default:
		if storable && isLong(came.Header) {
			got.Response.Detail = fmt.Sprintf("not stored: its header has more than %d lines", understudy.MaxParams)
		}
		got.Header = httpcache.EndToEnd(got.Header)
		return got, nil, nil
	}
	r.own = came.Own()
	c.keep(r, p, written)
	return nil, p, nil
}

// isLong reports a header with more lines than can be stored.
func isLong(h http.Header) bool {
	lines := 0
	for _, values := range h {
		lines += len(values)
	}
	return lines > understudy.MaxParams
}

// aside is an exchange of this request alone, as it came. What it brings is stored where it
// may be.
func (c *Cache) aside(ctx context.Context, r *reading) (*request.Exchanged, error) {
	if err := c.flights.Enter(r.exchange.Flow); err != nil {
		return nil, fmt.Errorf("mirror: %s: %w", r.exchange.Target.Key, err)
	}
	defer c.flights.Exit(r.exchange.Flow)
	fwd := r.fwd()
	plain := *r
	plain.held = nil // its conditions are its own
	got, p, err := c.exchange(ctx, &plain, r.exchange)
	if err != nil {
		return c.rescued(ctx, r, err)
	}
	if p != nil {
		a := c.fetched(&plain, p, false)
		a.Response.Fwd = fwd
		return a, nil
	}
	got.Response.Fwd = fwd
	return got, nil
}

// alone passes a request on, and stores nothing. fwd says why.
func (c *Cache) alone(ctx context.Context, r *reading, x request.Exchange, fwd string) (*request.Exchanged, error) {
	if err := c.flights.Enter(r.exchange.Flow); err != nil {
		return nil, fmt.Errorf("mirror: %s: %w", r.exchange.Target.Key, err)
	}
	defer c.flights.Exit(r.exchange.Flow)
	got, err := r.up.Exchange(ctx, x)
	if err != nil {
		return nil, fmt.Errorf("mirror: %s %s: %w", understudy.Clip(x.Method), x.Target.Key, err)
	}
	got.Header, got.Response.Fwd = httpcache.EndToEnd(got.Header), fwd
	return got, nil
}

// ending is a stream that ends its context too.
type ending struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close ends the stream.
func (e *ending) Close() error {
	defer e.cancel()
	return e.ReadCloser.Close()
}

// handoff gives the answer of a flight that is for one request alone to that request, if it
// waits still.
type handoff struct {
	mu   sync.Mutex
	left bool
	got  *request.Exchanged
}

// give reports false when the request waits no more.
func (h *handoff) give(got *request.Exchanged) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left {
		return false
	}
	h.got = got
	return true
}

// take ends the wait. It is nil when nothing was given.
func (h *handoff) take() *request.Exchanged {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left = true
	return h.got
}

// early passes informational answers on while the request waits.
func (h *handoff) early(to func(int, http.Header)) func(int, http.Header) {
	if to == nil {
		return nil
	}
	return func(status int, header http.Header) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if !h.left {
			to(status, httpcache.EndToEnd(header))
		}
	}
}
