// Fetching: a response that is missing or stale is fetched from upstream.

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

// join joins the flight that fetches the response for the request.
func (c *Cache) join(ctx context.Context, r *reading) (*request.ExchangeResponse, error) {
	h := &handoff{}
	p, joined, err := c.flights.Join(ctx, r.flight(), r.exchange.Flow, r.q.MustAskUpstream(), c.fetch(r, h))
	got := h.take()
	if err != nil {
		return c.answerAfterFailure(ctx, r, err)
	}
	switch {
	case got != nil && isServerError(got.Response.Page.Status) && r.stored != nil && r.decision.AnswerIfError:
		_ = got.Close() // upstream's error response is not used, because a stale response may replace it
		return c.answerStored(r, "stale: upstream "+strconv.Itoa(got.Response.Page.Status)), nil
	case got != nil:
		if got.Response.Outcome != request.Warm {
			got.Response.ForwardReason = r.forwardReason()
		}
		return got, nil
	case joined && !c.canAnswer(ctx, r, p):
		return c.exchangeForOne(ctx, r) // the flight's response is for another request, so this request is sent on its own
	}
	return c.answerFetched(r, p, joined), nil
}

// canAnswer reports whether the page of a joined flight also answers this request. The page must still be stored. It
// is not if there has been a write since.
func (c *Cache) canAnswer(ctx context.Context, r *reading, p *understudy.Page) bool {
	if p.NotStored != "" {
		return false
	}
	now := reading{exchange: r.exchange, q: r.q}
	err := c.lookUp(ctx, &now)
	return err == nil && now.decision.Answer && now.stored.page.Key == p.Key && now.stored.page.At.Equal(p.At)
}

// answerFetched answers with a response that has been fetched and stored.
func (c *Cache) answerFetched(r *reading, p *understudy.Page, joined bool) *request.ExchangeResponse {
	s, now := c.newStored(p), c.now()
	life, _ := s.response.Lifetime()
	h := s.response.Header
	if !joined && len(r.privateFields) > 0 {
		h = h.Clone()
		maps.Copy(h, r.privateFields)
	}
	return &request.ExchangeResponse{Response: request.Response{Page: p, Outcome: request.Cold, Stored: p.NotStored == "", Joined: joined,
		Age: max(0, now.Sub(p.At)), TTL: life - s.response.Age(now), ForwardReason: r.forwardReason(), UpstreamTime: p.Took,
		Detail: detailOf(p)}, Header: h}
}

func detailOf(p *understudy.Page) string {
	if p.NotStored == "" {
		return ""
	}
	return "not stored: " + p.NotStored
}

// reasonOneRequest is the reason why a response that is only for one request is not stored.
const reasonOneRequest = "it answers only this request"

// fetch returns the function that sends the request to upstream and stores the response. A response that may not be
// stored is passed to h, or if h is nil, is dropped. The returned page is then only for the flight itself. If the
// response has been stored since the request looked for it, nothing is sent.
func (c *Cache) fetch(r *reading, h *handoff) Fetch {
	return func(flight context.Context) (*understudy.Page, error) {
		now := reading{exchange: r.exchange, q: r.q}
		if err := c.lookUp(flight, &now); err != nil {
			return nil, err
		}
		if now.decision.Answer && !now.decision.Refresh {
			if h != nil {
				h.give(c.answerStored(&now, ""))
			}
			return now.stored.page, nil
		}
		// A stream may last longer than the flight, but its header must arrive before the flight ends.
		ctx, cancel := context.WithCancel(context.WithoutCancel(flight))
		stop := context.AfterFunc(flight, cancel)
		defer stop()
		x := r.exchange
		x.Header = httpcache.RemoveConditions(r.exchange.Header)
		if r.stored != nil {
			maps.Copy(x.Header, r.stored.response.Conditions())
		}
		if h != nil {
			x.OnInformational = h.forwardEarly(r.exchange.OnInformational)
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
			got.Stream = &cancelingStream{got.Stream, cancel}
		} else {
			defer cancel()
		}
		left := *got.Response.Page
		left.NotStored = reasonOneRequest
		if h == nil || !h.give(got) {
			_ = got.Close() // the request no longer waits for the response
		}
		return &left, nil
	}
}

// exchange sends a GET. If the response may be stored, or if it confirms the stored response, p is the stored page.
// Otherwise got is the response as upstream sent it.
func (c *Cache) exchange(ctx context.Context, r *reading, x request.Exchange) (got *request.ExchangeResponse,
	p *understudy.Page, err error) {
	written, held := c.enter(x.Target.Key), r.stored
	defer c.exit(x.Target.Key)
	if held != nil && r.source.invalidations.Load() != r.invalidations { // a write may have invalidated the response, so it is looked up again
		held, x.Header = nil, httpcache.RemoveConditions(x.Header)
	}
	var came httpcache.Response
	x.MaxBody = c.maxBody
	storable := false
	x.WantBody = func(status int, h http.Header, asked, at time.Time) bool {
		came = httpcache.NewResponse(status, h, asked, at)
		// a stale response may replace this one (RFC 9111, 4.3.3)
		keepsOld := r.stored != nil && r.decision.AnswerIfError && isServerError(status)
		storable = came.CanStore(&r.q) && !keepsOld
		return storable && !hasTooManyLines(came.Header)
	}
	if got, err = r.source.Exchange(ctx, x); err != nil {
		return nil, nil, fmt.Errorf("mirror: fetch %s: %w", x.Target.Key, err)
	}
	switch {
	case came.Status == http.StatusNotModified && held != nil &&
		(!held.response.IsSelectedBy(&came) || hasTooManyLines(held.response.Update(&came).Header)):
		again := *r
		again.stored, x.Header = nil, httpcache.RemoveConditions(x.Header)
		return c.exchange(ctx, &again, x)
	case came.Status == http.StatusNotModified && held != nil && held.response.Conditions() != nil:
		came = held.response.Update(&came)
		p = c.newPage(r, &came, held.page.Body, got.Response.Page.Took)
		if !came.CanStore(&r.q) {
			p.NotStored = reasonOneRequest
		}
	case storable && got.Stream == nil:
		p = c.newPage(r, &came, got.Response.Page.Body, got.Response.Page.Took)
	default:
		if storable && hasTooManyLines(came.Header) {
			got.Response.Detail = fmt.Sprintf("not stored: its header has more than %d lines", understudy.MaxParams)
		}
		got.Header = httpcache.EndToEnd(got.Header)
		return got, nil, nil
	}
	r.privateFields = came.PrivateFields()
	c.storePage(r, p, written)
	return nil, p, nil
}

// hasTooManyLines reports whether a header has more lines than the store accepts.
func hasTooManyLines(h http.Header) bool {
	lines := 0
	for _, values := range h {
		lines += len(values)
	}
	return lines > understudy.MaxParams
}

// exchangeForOne sends the request unchanged, and gives the response only to this request. It stores the response if
// that is permitted.
func (c *Cache) exchangeForOne(ctx context.Context, r *reading) (*request.ExchangeResponse, error) {
	if err := c.flights.Enter(r.exchange.Flow); err != nil {
		return nil, fmt.Errorf("mirror: %s: %w", r.exchange.Target.Key, err)
	}
	defer c.flights.Exit(r.exchange.Flow)
	fwd := r.forwardReason()
	plain := *r
	plain.stored = nil // the request has its own conditions, so the stored response adds none
	got, p, err := c.exchange(ctx, &plain, r.exchange)
	if err != nil {
		return c.answerAfterFailure(ctx, r, err)
	}
	if p != nil {
		a := c.answerFetched(&plain, p, false)
		a.Response.ForwardReason = fwd
		return a, nil
	}
	got.Response.ForwardReason = fwd
	return got, nil
}

// exchangeUnstored sends a request and does not store the response. fwd says why the request is sent.
func (c *Cache) exchangeUnstored(ctx context.Context, r *reading, x request.Exchange, fwd string) (*request.ExchangeResponse, error) {
	if err := c.flights.Enter(r.exchange.Flow); err != nil {
		return nil, fmt.Errorf("mirror: %s: %w", r.exchange.Target.Key, err)
	}
	defer c.flights.Exit(r.exchange.Flow)
	got, err := r.source.Exchange(ctx, x)
	if err != nil {
		return nil, fmt.Errorf("mirror: %s %s: %w", understudy.Clip(x.Method), x.Target.Key, err)
	}
	got.Header, got.Response.ForwardReason = httpcache.EndToEnd(got.Header), fwd
	return got, nil
}

// cancelingStream is a stream whose Close also ends the context of the request.
type cancelingStream struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close closes the stream.
func (e *cancelingStream) Close() error {
	defer e.cancel()
	return e.ReadCloser.Close()
}

// handoff passes a response that is only for one request from the flight to the request.
type handoff struct {
	mu   sync.Mutex
	left bool
	got  *request.ExchangeResponse
}

// give passes the response on. It returns false if the request no longer waits.
func (h *handoff) give(got *request.ExchangeResponse) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left {
		return false
	}
	h.got = got
	return true
}

// take ends the wait and returns the response. It returns nil if none has been given.
func (h *handoff) take() *request.ExchangeResponse {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left = true
	return h.got
}

// forwardEarly returns a function that passes informational responses (status 1xx) on while the request waits.
func (h *handoff) forwardEarly(to func(int, http.Header)) func(int, http.Header) {
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
